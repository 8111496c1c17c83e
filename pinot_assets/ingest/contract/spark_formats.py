"""Which formats Spark's own readers read."""

from __future__ import annotations

from typing import Final

SPARK_LACKS: Final = frozenset({"avro"})
"""Formats that Spark itself has no reader for: the package's own reader gives their rows to Spark SQL.
Spark's reader of Avro is a jar of its own, which not every release of Spark has."""
