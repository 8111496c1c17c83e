"""Names of columns that Pinot takes: any, but for those with a blank in them.

Pinot's `SchemaUtils.validate` asks Java's `StringUtils.containsWhitespace` of each, in 0.11 and in 1.5, and
refuses the schema.
"""

from __future__ import annotations

import re
from typing import Final

_BLANKS: Final = re.compile(
    "[\t-\r\x1c-\x1f \u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000]+",
)
"""`Character.isWhitespace`: without the blanks at which no line is broken, as U+00A0."""


def has_blank(name: str) -> bool:
    """Whether Pinot refuses the name."""
    return _BLANKS.search(name) is not None


def without_blanks(name: str) -> str:
    """A name for it that Pinot takes."""
    return _BLANKS.sub("_", name).strip("_") or "column"
