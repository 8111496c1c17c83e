"""Pinot's ingestion functions and time formats, in Spark's words."""
