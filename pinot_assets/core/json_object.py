"""Types for JSON documents and untyped objects of libraries; all uses of `Any` for values are named here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JsonObject = dict[str, Any]
"""A document, or a part of one, whose shape the reader knows: Pinot's, Helix's, a table spec's."""
JsonMapping = Mapping[str, Any]
"""The same, for code that only reads it."""
JsonValue = Any
"""One value of a document, of any JSON type."""
Foreign = Any
"""An object that a library returns without a useful type: boto3, obstore, protobuf, kafka-python, typer."""
