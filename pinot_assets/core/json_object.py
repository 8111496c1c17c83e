"""Types for JSON documents.

A reader checks a `JsonValue` before it uses it: with `isinstance`, or with `typed` of `core.untrusted`. The
values inside a `JsonObject` stay `Any`: Pinot, Helix or this package define those documents, readers name
hundreds of their keys, and `structured` checks a stored document as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JsonObject = dict[str, Any]
"""A document, or a part of one, whose shape the reader knows: Pinot's, Helix's, a table spec's."""
JsonMapping = Mapping[str, Any]
"""The same, for code that only reads it."""
JsonValue = object
"""One value of a document, of any JSON type."""
