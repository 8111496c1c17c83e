"""Values that a driver and its workers exchange: the build spec, its result, the reason of a failure.

Imports neither Spark nor a file format.
"""
