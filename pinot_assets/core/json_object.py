"""JSON documents, and objects of libraries without types: the one place where a value may be anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JsonObject = dict[str, Any]
"""A document, or a part of one, whose shape its reader knows: Pinot's, Helix's, a table spec's."""
JsonMapping = Mapping[str, Any]
"""The same where it is only read."""
JsonValue = Any
"""One value of a document, of any of JSON's kinds."""
Foreign = Any
"""What a library hands over without a type that says more: boto3, obstore, protobuf, kafka-python, typer."""
