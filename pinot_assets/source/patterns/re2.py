"""Texts of RE2, which matches in time proportional to its text, whatever the pattern: Arrow's engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

Range = tuple[int, int]
"""Characters from one code to another one, both of them in it."""

LAST: Final = 0x10FFFF
ANY: Final = r"[^\n\r\x{85}\x{2028}\x{2029}]"
"""Java's dot leaves out line terminators."""

_CASE: Final = 32
"""Between a letter of ASCII and the same in the other case."""


def one(char: str, ignore_case: bool = False) -> str:
    """A character, and where case is ignored the same letter of ASCII in the other one."""
    if ignore_case and char.isascii() and char.isalpha():
        return f"[{char.lower()}{char.upper()}]"
    return char if char.isascii() and char.isalnum() else _code(ord(char))


def any_of(ranges: Iterable[Range], *, negated: bool = False, ignore_case: bool = False) -> str:
    """A class. One without any character matches nothing."""
    found = list(ranges)
    if ignore_case:
        found += [(low - _CASE, high - _CASE) for low, high in _both(found, ord("a"), ord("z"))] + [
            (low + _CASE, high + _CASE) for low, high in _both(found, ord("A"), ord("Z"))
        ]
    inside = "".join(_code(low) if low == high else f"{_code(low)}-{_code(high)}" for low, high in found)
    if not inside:
        inside, negated = f"{_code(0)}-{_code(LAST)}", not negated
    return f"[{'^' if negated else ''}{inside}]"


def but(ranges: Iterable[Range]) -> list[Range]:
    """Every character that is in none of these."""
    found: list[Range] = []
    place = 0
    for low, high in sorted(ranges):
        if low > place:
            found.append((place, low - 1))
        place = max(place, high + 1)
    return [*found, (place, LAST)] if place <= LAST else found


def compiled(regex: str) -> str:
    """The expression for whole texts.

    :raises ValueError: RE2 does not take it; says why.
    """
    whole = rf"\A(?:{regex})\z"
    try:
        for text in (regex, whole):  # by itself, too: `a)(b` would close the group around it and open another
            # Of a null: an array made of Python's values would import pandas, where that is installed.
            pc.match_substring_regex(pa.nulls(1, pa.string()), text)
    except pa.ArrowInvalid as error:
        raise ValueError(str(error).removeprefix("Invalid regular expression: ")) from None
    return whole


def matching(regex: str, texts: Sequence[str]) -> list[bool]:
    """Which of some texts match, in one go.

    :param regex: as `compiled` gives it.
    """
    # Half a surrogate pair, as Python reads bytes that are no UTF-8, is a character that is none to RE2.
    plain = pa.array([text.encode(errors="replace").decode() for text in texts], pa.string())
    found: list[bool] = pc.match_substring_regex(plain, regex).to_pylist()
    return found


def _code(code: int) -> str:
    return rf"\x{{{code:x}}}"


def _both(ranges: Iterable[Range], low: int, high: int) -> list[Range]:
    return [(max(a, low), min(b, high)) for a, b in ranges if max(a, low) <= min(b, high)]
