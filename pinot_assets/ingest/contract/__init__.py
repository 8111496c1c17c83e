"""What a driver and its workers tell each other: the build's spec, its result, why it failed.

Imports neither Spark nor a file format.
"""
