"""Make text fit to be shown: foreign text on a terminal or in a log, our marks where there is only ASCII."""

from __future__ import annotations

import codecs
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


STAND_INS: Final = {
    "✓": "ok",
    "✗": "x",
    "→": "->",
    "…": "~",
    "–": "-",
    "−": "-",
    "·": "-",
    "×": "x",
    "≥": ">=",
    "≤": "<=",
    "’": "'",
    **dict.fromkeys(map(chr, range(0x2800, 0x2900)), "*"),
}
"""Replacements for our characters that cannot be shown; braille are the pictures of a spinner. What rich
draws itself (an ellipsis, a spinner) has stand-ins of the same width."""

ASCII_STAND_INS: Final = "pinot_assets.stand_ins"
"""Name of the error handler of `str.encode` that writes them, and other characters as escapes."""


def _stand_in(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    shown = (STAND_INS.get(c) or c.encode("ascii", "backslashreplace").decode("ascii") for c in lost)
    return "".join(shown), error.end


codecs.register_error(ASCII_STAND_INS, _stand_in)
