"""The path that Spark's setting `spark.python.daemon.module` names. Nothing else lives here."""
