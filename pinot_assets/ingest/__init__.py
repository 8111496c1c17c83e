"""Turn files into staged segments, in Spark tasks.

Import `SparkBuilder` from `pinot_assets.ingest.spark.builder`. It is not imported here: a task on an
executor, or code that only checks settings, must not load PySpark's driver side.
"""
