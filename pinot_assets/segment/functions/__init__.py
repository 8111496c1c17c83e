"""Pinot's ingestion functions and time formats, translated for Spark."""
