"""Text of others as it may be shown on a terminal or in a log."""

from __future__ import annotations

import re
from typing import Final

_STEERING: Final = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line feed
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # turn the direction of what follows
    "\u2028\u2029"  # lines that are no line feeds
    "\ud800-\udfff"  # halves of characters, which cannot be written at all
    "\U000e0000-\U000e007f"  # tags, which nothing shows
    "]"
)


def visible(text: str) -> str:
    r"""The text with what would steer a terminal written out: `\x1b[2J`, `\u202e`."""
    return _STEERING.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)
