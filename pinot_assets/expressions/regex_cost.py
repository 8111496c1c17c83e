"""Check that engines which backtrack match a regular expression in bounded time.

Java's engine (Pinot, Spark) and Python's try one way after the other: `(a+)+b` takes them hours for thirty
letters. So a pattern of a table spec is read here first. What it repeats without a bound must match in one
way only. The rest may have few ways to match, and few repetitions may have several places to end. Back
references, look-arounds and atomic groups are refused; none of them is needed to find a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pinot_assets.expressions.syntax import ExpressionRefused

MOST_LENGTH: Final = 1_000
"""Limit of the characters of a pattern."""
MOST_WAYS: Final = 10_000
"""Limit of the ways to match one text at one place, not counting repetitions without a bound."""
MOST_LOOSE: Final = 4
"""Limit of unbounded repetitions without a character that shows their end: each is one more nested loop."""
_MOST_DEPTH: Final = 20
_MOST_TIMES: Final = 1_000
"""Limit of a bounded repetition."""

_QUANTIFIER: Final = re.compile(r"(?:([*+?])|\{(\d{1,20})(,(\d{0,20}))?\})[?+]?", re.ASCII)
_GROUP: Final = re.compile(r"\?(?:P?<[A-Za-z]\w*>|:|[imsu]*(?:-[imsu]+)?(?::|(?=\))))", re.ASCII)
_CODE: Final = re.compile(r"x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})")
_NAMED: Final = re.compile(r"\{[^}]*\}?")
_SETS: Final = {"d": r"[0-9]", "w": r"[0-9A-Za-z_]", "s": r"\s"}
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}

Matches = Callable[[str], bool]
"""Whether a part of a pattern may match a character; True if that is not known."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """What is known about a part of a pattern.

    :ivar ways: number of ways in which it can match, not counting its unbounded repetitions.
    :ivar loose: number of its unbounded repetitions without a clear end.
    :ivar varies: whether it has any unbounded repetition.
    :ivar matches: for a single character, which characters it may match.
    """

    ways: int = 1
    loose: int = 0
    varies: bool = False
    matches: Matches | None = None


def check_pattern(pattern: str, most_loose: int = MOST_LOOSE) -> None:
    """Refuse a pattern that may take long to match.

    :param pattern: in the syntax of Java or Python.
    :raises ExpressionRefused: it may take long, or is not read here; the reason continues after "a pattern".
    """
    if len(pattern) > MOST_LENGTH:
        raise ExpressionRefused(f"has more than {MOST_LENGTH:,} characters", "write a shorter one")
    reader = _PatternReader(pattern)
    piece = reader.alternatives(0)
    if reader.place < len(pattern):
        raise ExpressionRefused("has a ) without its (")
    if piece.loose > most_loose:
        raise ExpressionRefused(
            f"has more than {most_loose} repetitions that may end at several places",
            "after each, write a character that it does not match: [^,]*, instead of .*,",
        )


def check_wildcards(pattern: str, sign: str = "%") -> None:
    """Refuse a pattern of LIKE, or a similar one, with too many wildcards: each may match at many places.

    :param sign: the wildcard that matches any text.
    :raises ExpressionRefused: it has too many of them, or is too long.
    """
    if len(pattern) > MOST_LENGTH:
        raise ExpressionRefused(f"has more than {MOST_LENGTH:,} characters", "write a shorter one")
    if len(re.findall(f"{re.escape(sign)}+", pattern)) > MOST_LOOSE + 1:
        raise ExpressionRefused(f"has more than {MOST_LOOSE + 1} {sign}", "write several conditions")


class _PatternReader:
    """One pass over a pattern, from left to right."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.place = 0

    def alternatives(self, depth: int) -> _Piece:
        """Read up to the parenthesis that closes the group, or to the end."""
        if depth > _MOST_DEPTH:
            raise ExpressionRefused("has too many groups in each other")
        pieces = [self._sequence(depth)]
        while self._sees("|"):
            self.place += 1
            pieces.append(self._sequence(depth))
        return _Piece(
            _few(sum(piece.ways for piece in pieces)),
            sum(piece.loose for piece in pieces),
            any(piece.varies for piece in pieces),
        )

    def _sequence(self, depth: int) -> _Piece:
        ways, loose, varies = 1, 0, False
        while self.place < len(self.pattern) and self.pattern[self.place] not in "|)":
            piece = self._repeated(self._atom(depth))
            ways, loose, varies = _few(ways * piece.ways), loose + piece.loose, varies or piece.varies
        return _Piece(ways, loose, varies)

    def _repeated(self, piece: _Piece) -> _Piece:
        if (match := _QUANTIFIER.match(self.pattern, self.place)) is None:
            return piece
        self.place = match.end()
        if _QUANTIFIER.match(self.pattern, self.place):
            raise ExpressionRefused("repeats a repetition")
        least, most = _times(match)
        if most is not None and most < least:
            raise ExpressionRefused("repeats something with a maximum below its minimum")
        if max(least, most or 0) > _MOST_TIMES:
            raise ExpressionRefused(f"repeats something more than {_MOST_TIMES:,} times", "write * or +")
        if most == least:
            return _Piece(_power(piece.ways, least), piece.loose * least, piece.varies)
        if most == 1:
            return _Piece(_few(piece.ways + 1), piece.loose, piece.varies)
        if piece.varies or (piece.ways > 1 and most is None):
            raise ExpressionRefused(
                "repeats what can itself match in several ways",
                "repeat a single character or class: [ab]* instead of (a|b)*, [^/]* instead of ([^/]+)*",
            )
        if most is None:
            return _Piece(1, 0 if self._ends_plainly(piece) else 1, varies=True)
        if self._ends_plainly(piece):
            return _Piece()
        return _Piece(_few(sum(_power(piece.ways, n) for n in range(least, most + 1))))

    def _ends_plainly(self, piece: _Piece) -> bool:
        """Whether a character follows that shows where the repetition must end."""
        place = self.place
        while self.pattern.startswith(")", place) and not _QUANTIFIER.match(self.pattern, place + 1):
            place += 1
        if piece.matches is None or place == len(self.pattern) or self.pattern[place] in "()|[.^$*+?{":
            return False
        ahead = _PatternReader(self.pattern)
        ahead.place = place
        following = ahead.literal()
        behind = _QUANTIFIER.match(self.pattern, ahead.place)
        if not following or (behind is not None and _times(behind)[0] == 0):
            return False
        return not any(map(piece.matches, (following.lower(), following.upper())))

    def literal(self) -> str:
        """Read one character of the pattern; "" if it is a set of characters or none."""
        char = self._take()
        if char != "\\":
            return char
        char = self._take()
        if not char.isalnum():
            return char
        if match := _CODE.match(self.pattern, self.place - 1):
            self.place = match.end()
            return chr(min(int(match[1] or match[2] or match[3], 16), 0x10FFFF))
        return _CONTROLS.get(char, "")

    def _atom(self, depth: int) -> _Piece:
        char = self.pattern[self.place]
        if char == "(":
            return self._group(depth)
        if char == "[":
            return _Piece(matches=self._class())
        if char in ".^$":
            self.place += 1
            return _Piece(matches=_anything)
        if char != "\\":
            self.place += 1
            return _Piece(matches=char.__eq__)
        return self._escape()

    def _group(self, depth: int) -> _Piece:
        self.place += 1
        if self._sees("?"):
            if (match := _GROUP.match(self.pattern, self.place)) is None:
                raise ExpressionRefused(
                    "looks ahead or behind, or has a group that pinot-assets does not know",
                    "write a group as (…) or (?:…)",
                )
            self.place = match.end()
        piece = self.alternatives(depth + 1)
        if not self._sees(")"):
            raise ExpressionRefused("has a ( without its )")
        self.place += 1
        return piece

    def _escape(self) -> _Piece:
        start = self.place
        if not (kind := self.pattern[start + 1 : start + 2]):
            raise ExpressionRefused("ends too early")
        if kind == "Q":
            end = self.pattern.find("\\E", start)
            self.place = len(self.pattern) if end < 0 else end + 2
            return _Piece()
        if kind in "bBAzZG":
            self.place += 2
            return _Piece()
        if kind.isdigit() and kind != "0":
            raise ExpressionRefused("refers back to a group", "write out what should follow")
        if kind in ("k", "X", "g"):
            raise ExpressionRefused(f"has \\{kind}, whose length is not known")
        if (members := self._set(kind)) is not None:
            return _Piece(matches=members)
        char = self.literal()
        return _Piece(2 if kind == "R" else 1, matches=char.__eq__ if char else _anything)

    def _class(self) -> Matches:
        """Read a class: a set of characters in any spelling. A doubtful one matches everything."""
        start = self.place
        self.place += 1
        negated = self._sees("^")
        self.place += negated
        if self._sees("]"):
            raise ExpressionRefused("has a ] at the start of a class", "write \\]")
        members: list[Matches] = []
        while not self._sees("]"):
            members.append(self._member())
        self.place += 1
        text = self.pattern[start : self.place]
        # Engines read this differently, or it negates a set that is not known here.
        if "&&" in text or (text.startswith("[^") and re.search(r"\\[pPNhHvVRcx0u]", text)):
            return _anything
        return lambda char: negated != any(member(char) for member in members)

    def _member(self) -> Matches:
        kind = self.pattern[self.place + 1 : self.place + 2] if self._sees("\\") else ""
        if self._sees("["):
            raise ExpressionRefused("has a class in a class", "write one flat class")
        if (members := self._set(kind)) is not None:
            return members
        if kind in ("Q", "E"):
            raise ExpressionRefused(f"has \\{kind} in a class", "write each character")
        first = self.literal()
        ends = self.pattern[self.place + 1 : self.place + 2]
        if not self._sees("-") or ends in ("]", ""):
            return first.__eq__ if first else _anything
        self.place += 1
        if self._sees("[") or (
            ends == "\\" and self.pattern[self.place + 1 : self.place + 2].lower() in _SETS
        ):
            raise ExpressionRefused("has a range without an end")
        last = self.literal()
        return lambda char: not (first and last) or first <= char <= last

    def _set(self, kind: str) -> Matches | None:
        """Read a set of characters, `\\d` or `\\p{L}`; None if there is none here."""
        if kind.lower() in _SETS:
            self.place += 2
            inside = re.compile(_SETS[kind.lower()], re.ASCII)
            return lambda char: char > "\x7f" or bool(inside.match(char)) == kind.islower()
        if kind not in ("p", "P", "N"):
            return None
        named = _NAMED.match(self.pattern, self.place + 2)
        self.place = named.end() if named else self.place + 3
        return _anything

    def _sees(self, char: str) -> bool:
        return self.pattern.startswith(char, self.place)

    def _take(self) -> str:
        if self.place >= len(self.pattern):
            raise ExpressionRefused("ends too early")
        self.place += 1
        return self.pattern[self.place - 1]


def _times(match: re.Match[str]) -> tuple[int, int | None]:
    """Least and most repetitions of a quantifier; None for no upper bound."""
    if match[1]:
        return (1 if match[1] == "+" else 0), (1 if match[1] == "?" else None)
    least = int(match[2])
    return least, least if match[3] is None else int(match[4]) if match[4] else None


def _anything(_: str) -> bool:
    return True


def _few(ways: int) -> int:
    if ways > MOST_WAYS:
        raise ExpressionRefused(
            f"can match in more than {MOST_WAYS:,} ways", "write fewer alternatives and optional parts"
        )
    return ways


def _power(ways: int, times: int) -> int:
    return 1 if ways == 1 else _few(ways ** min(times, 14))
