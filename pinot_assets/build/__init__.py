"""Holds only the module that Spark's setting `spark.python.daemon.module` names."""
