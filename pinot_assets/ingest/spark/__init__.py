"""Spark: sessions, jobs, SQL of a spec. Only here is pyspark imported."""
