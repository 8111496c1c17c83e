"""Spark: sessions, jobs, SQL of a table spec. Besides this package, only `build` imports pyspark."""
