"""Files become staged segments, one Spark task per file.

`SparkBuilder` is imported from `pinot_assets.ingest.spark.builder`, so that an executor's task, and whoever
only checks settings, does not pay for PySpark's driver side.
"""
