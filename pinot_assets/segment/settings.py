"""JSON values of a schema or table config as Pinot's own classes read them."""

from __future__ import annotations


def is_true(value: object) -> bool:
    """A JSON switch as Jackson reads it: the text "true" counts."""
    return value is True or (isinstance(value, str) and value.lower() == "true")
