"""Make foreign text safe to show on a terminal or in a log."""

from __future__ import annotations

import re
from typing import Final

_STEERING: Final = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and line feed
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # change the direction of the text after them
    "\u2028\u2029"  # line separators other than line feed
    "\ud800-\udfff"  # surrogates, which UTF-8 cannot encode
    "\U000e0000-\U000e007f"  # tag characters, which are invisible
    "]"
)


def visible(text: str) -> str:
    r"""Return the text with characters that control a terminal shown as escapes: `\x1b[2J`, `\u202e`."""
    return _STEERING.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)
