r"""Translates the part of Java's regular expressions that RE2 has, too; and writes texts of RE2.

RE2 is Arrow's engine: its time is proportional to the length of the text, whatever the pattern. These are
refused with a message of their own, because the engines (or JVM versions) differ: `\b`, `\B`, `\G`, `\R`,
`\X`, `\h`, `\H`, `\v`, `\V`, `\N`, Unicode properties (`\p{L}`), nested classes and `&&`, flags other than
`(?i)` and `(?s)` at the start, `$` and `\Z` before the end. RE2 lacks back references, look-arounds, atomic
groups and possessive repetitions: with such features a pattern can take for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.errors import SettingError

Range = tuple[int, int]
"""The characters from one code to another one, both included."""

LAST: Final = 0x10FFFF
ANY: Final = r"[^\n\r\x{85}\x{2028}\x{2029}]"
"""Java's dot matches no line terminator."""

_CASE: Final = 32
"""Distance between an ASCII letter and the same letter in the other case."""


def one(char: str, ignore_case: bool = False) -> str:
    """Return the regex of one character; with `ignore_case`, of an ASCII letter in both cases."""
    if ignore_case and char.isascii() and char.isalpha():
        return f"[{char.lower()}{char.upper()}]"
    return char if char.isascii() and char.isalnum() else _code(ord(char))


def any_of(ranges: Iterable[Range], *, negated: bool = False, ignore_case: bool = False) -> str:
    """Return a class of these characters. A class without any character matches nothing."""
    spans = list(ranges)
    if ignore_case:
        spans += [(low - _CASE, high - _CASE) for low, high in _both(spans, ord("a"), ord("z"))] + [
            (low + _CASE, high + _CASE) for low, high in _both(spans, ord("A"), ord("Z"))
        ]
    inside = "".join(_code(low) if low == high else f"{_code(low)}-{_code(high)}" for low, high in spans)
    if not inside:
        inside, negated = f"{_code(0)}-{_code(LAST)}", not negated
    return f"[{'^' if negated else ''}{inside}]"


def but(ranges: Iterable[Range]) -> list[Range]:
    """Return all characters that are in none of these ranges."""
    gaps: list[Range] = []
    place = 0
    for low, high in sorted(ranges):
        if low > place:
            gaps.append((place, low - 1))
        place = max(place, high + 1)
    return [*gaps, (place, LAST)] if place <= LAST else gaps


def compiled(regex: str) -> str:
    """Return the expression that matches whole texts.

    :raises ValueError: RE2 does not accept it; the message has the reason.
    """
    whole = rf"\A(?:{regex})\z"
    try:
        for text in (regex, whole):  # both: in `whole` alone, `a)(b` would close our group and open another
            # We match a null, because an array of Python values would import pandas if it is installed.
            pc.match_substring_regex(pa.nulls(1, pa.string()), text)
    except pa.ArrowInvalid as error:
        raise ValueError(str(error).removeprefix("Invalid regular expression: ")) from None
    return whole


def matching(regex: str, texts: Sequence[str]) -> list[bool]:
    """Return for each text whether it matches, all in one call.

    :param regex: as `compiled` returns it.
    """
    # Python reads bytes that are not UTF-8 as half surrogate pairs, which RE2 does not take as characters.
    plain = pa.array([text.encode(errors="replace").decode() for text in texts], pa.string())
    matched: list[bool] = pc.match_substring_regex(plain, regex).to_pylist()
    return matched


def _code(code: int) -> str:
    return rf"\x{{{code:x}}}"


def _both(ranges: Iterable[Range], low: int, high: int) -> list[Range]:
    return [(max(a, low), min(b, high)) for a, b in ranges if max(a, low) <= min(b, high)]


_POSIX = {
    "Lower": "az",
    "Upper": "AZ",
    "ASCII": "\x00\x7f",
    "Alpha": "azAZ",
    "Digit": "09",
    "Alnum": "azAZ09",
    "Punct": "!/:@[`{~",
    "Graph": "!~",
    "Print": " ~",
    "Blank": "  \t\t",
    "Cntrl": "\x00\x1f\x7f\x7f",
    "XDigit": "09afAF",
    "Space": "\t\r  ",
}
"""Ranges; each is its first and its last character."""
_CHARS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_SETS = {"d": "09", "w": "azAZ09__", "s": "\t\r  "}
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})\??")
_GROUP = re.compile(r"\?(?:<(?P<name>[a-zA-Z][a-zA-Z0-9]*)>|:)")
_FLAGS = re.compile(r"\(\?([is]+)\)")


def regex_to_re2(pattern: str) -> str:
    """Translate a pattern to an expression for whole texts, as Java's `Matcher.matches`.

    :raises SettingError: Java refuses it, or it is outside the common part; with the position (0-based).
    """
    translated = _Translator(pattern).run()
    try:
        return compiled("".join(translated.out))
    except ValueError as error:
        raise _refused(pattern, None, str(error)) from error


_NOTHING = ("", "(", "(?:", "|", r"\A", r"\z")
"""A repetition cannot follow one of these, in one of the two engines or in both."""


class _Translator:
    """One pass over the pattern, from left to right."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.out: list[str] = []
        self.i = 0
        self.ignore_case = False
        self.names: set[str] = set()
        self.dot = ANY

    def run(self) -> _Translator:
        if flags := _FLAGS.match(self.pattern):
            self.i = flags.end()
            self.ignore_case = "i" in flags[1]
            self.dot = "(?s:.)" if "s" in flags[1] else ANY
        while self.i < len(self.pattern):
            self.out.append(self._next())
        return self

    def _next(self) -> str:
        match char := self._take():
            case "\\":
                return self._escape()
            case "[":
                return self._class()
            case "(":
                return self._group()
            case ".":
                return self.dot
            case "^":
                return r"\A"
            case "$":
                return self._end("$")
            case "|" | ")":
                return char
            case "*" | "+" | "?" | "{":
                return self._quantifier()
            case _:
                return one(char, self.ignore_case)

    def _quantifier(self) -> str:
        if (match := _QUANTIFIER.match(self.pattern, self.i - 1)) is None:
            raise self._refuse("'{' starts no repetition; write \\{")
        if not self.out or self.out[-1] in _NOTHING:
            raise self._refuse("a repetition of nothing")
        self.i = match.end()
        if self._peek() == "+":
            raise self._refuse("a possessive repetition; write it without the second +")
        if _QUANTIFIER.match(self.pattern, self.i):
            raise self._refuse("a repetition of a repetition")
        return match[0]

    def _end(self, written: str) -> str:
        """Translate an end of text; elsewhere Java's would also match before a last line terminator."""
        if self.pattern[self.i :].strip(")"):
            raise self._refuse(f"{written} before the end of the pattern")
        return r"\z"

    def _group(self) -> str:
        if not self.pattern.startswith("?", self.i):
            return "("
        if (match := _GROUP.match(self.pattern, self.i)) is None:
            raise self._refuse("a look-around, an atomic group, or flags that are not at the start")
        self.i = match.end()
        if name := match["name"]:
            if name in self.names:
                raise self._refuse("a second group of that name")
            self.names.add(name)
        return "(?:"

    def _escape(self) -> str:
        char = self._take()
        if char.lower() in _SETS:
            return any_of(_set(char), ignore_case=self.ignore_case)
        if char in "pP":
            ranges = self._posix()
            return any_of(ranges, negated=char == "P", ignore_case=self.ignore_case)
        if char == "Q":
            end = self.pattern.find("\\E", self.i)
            quoted = self.pattern[self.i : end if end >= 0 else None]
            self.i = end + 2 if end >= 0 else len(self.pattern)
            if _QUANTIFIER.match(self.pattern, self.i):
                raise self._refuse("a repetition behind \\Q…\\E")
            return "".join(one(quote, self.ignore_case) for quote in quoted)
        if char in "123456789k":
            raise self._refuse("a back reference")
        if char in "Az":
            return f"\\{char}"
        return self._end("\\Z") if char == "Z" else one(self._literal(char), self.ignore_case)

    def _literal(self, char: str) -> str:
        """Return the character of an escape, inside or outside of a class."""
        if char in _CHARS:
            return _CHARS[char]
        if char in "xu":
            code = re.compile(
                r"\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{2})" if char == "x" else r"()([0-9a-fA-F]{4})"
            )
            if (match := code.match(self.pattern, self.i)) and (
                n := int(match[1] or match[2], 16)
            ) <= 0x10FFFF:
                self.i = match.end()
                return chr(n)
            raise self._refuse(f"\\{char} without its hexadecimal digits")
        if char.isascii() and char.isalnum():
            raise self._refuse(f"\\{char}")
        return char

    def _posix(self) -> list[Range]:
        match = re.compile(r"\{(\w+)\}").match(self.pattern, self.i)
        if match is None or match[1] not in _POSIX:
            raise self._refuse("a property that is none of " + ", ".join(_POSIX))
        self.i = match.end()
        return _ranges(_POSIX[match[1]])

    def _class(self) -> str:
        negated = self._peek() == "^"
        self.i += negated
        members: list[Range] = []
        while not (self._peek() == "]" and members):
            members += self._member()
        self.i += 1
        return any_of(members, negated=negated, ignore_case=self.ignore_case)

    def _member(self) -> list[Range]:
        start = self._class_char()
        if not isinstance(start, str):
            return start
        if self._peek() != "-" or self.pattern[self.i + 1 : self.i + 2] in ("]", "[", ""):
            return [(ord(start), ord(start))]
        self.i += 1
        end = self._class_char()
        if not isinstance(end, str) or end < start:
            raise self._refuse("an illegal range")
        return [(ord(start), ord(end))]

    def _class_char(self) -> str | list[Range]:
        """Return one character of a class, or the ranges of a predefined set."""
        char = self._take()
        if char == "[" or (char == "&" and self._peek() == "&"):
            raise self._refuse("nested classes and &&; write one flat class")
        if char != "\\":
            return char
        char = self._take()
        if char.lower() in _SETS:
            return _set(char)
        return self._posix() if char == "p" else self._literal(char)

    def _take(self) -> str:
        if self.i == len(self.pattern):
            raise self._refuse("it ends too early")
        self.i += 1
        return self.pattern[self.i - 1]

    def _peek(self) -> str:
        return self.pattern[self.i : self.i + 1]

    def _refuse(self, why: str) -> SettingError:
        return _refused(self.pattern, self.i - 1, why)


def _ranges(text: str) -> list[Range]:
    return [(ord(low), ord(high)) for low, high in zip(text[::2], text[1::2], strict=True)]


def _set(kind: str) -> list[Range]:
    ranges = _ranges(_SETS[kind.lower()])
    return ranges if kind.islower() else but(ranges)


def _refused(pattern: str, position: int | None, why: str) -> SettingError:
    where = "" if position is None else f" at position {position}"
    return SettingError(
        f"The pattern regex:{pattern} is malformed or not supported{where}",
        why=why,
        hint="the supported part of java.util.regex.Pattern is what RE2 also has; a glob: may be enough",
    )
