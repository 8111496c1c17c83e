"""What an error of Spark's JVM says, without its stack traces."""

from __future__ import annotations


def cause_of(error: Exception) -> str:
    """Return the line of a Py4J error that names the cause; of another error, its first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    thrown = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    named = [line for line in (*thrown, *lines) if line.startswith("org.apache.spark.SparkException")]
    return (named or thrown or lines or [type(error).__name__])[0][:500]
