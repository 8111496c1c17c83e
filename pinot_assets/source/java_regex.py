r"""The part of Java's regular expressions that means the same in Python, translated.

Refused by name, since the engines (or JVM versions) differ: `\b` and `\B`, `\G`, `\R`, `\X`, `\h`, `\H`,
`\v`, `\V`, `\N`, Unicode properties (`\p{L}`), nested classes and `&&`, flags other than `(?i)` and
`(?s)` at the start, back references beyond `\9`. What Python cannot compile is refused with its reason.
"""

from __future__ import annotations

import re

from pinot_assets.errors import SettingError
from pinot_assets.source.java_glob import ANY

# java.util.regex.Pattern, "POSIX character classes (US-ASCII only)".
_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0b\f\r",
}
# Before the last line terminator, if that ends the text, or at the end.
_END = r"(?=(?:\r\n|(?<!\r)\n|[\r\x85\u2028\u2029])?\Z)"
_CHARS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_SETS = "dDsSwW"
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})[?+]?")
_GROUP = re.compile(r"\?(?:<(?P<name>[a-zA-Z][a-zA-Z0-9]*)>|(?P<kind>:|=|!|<=|<!|>))")
_FLAGS = re.compile(r"\(\?([is]+)\)")


def regex_to_python(pattern: str) -> re.Pattern[str]:
    """Translate and compile; the result is for `fullmatch`, as Java's `Matcher.matches`.

    :raises SettingError: Java refuses it, or it is not in the common part; with the position (0-based).
    """
    translated = _Translator(pattern).run()
    flags = re.ASCII | (re.IGNORECASE if translated.ignore_case else re.NOFLAG)
    try:
        return re.compile("".join(translated.out), flags)
    except (re.error, OverflowError) as error:
        raise _refused(pattern, None, str(error)) from error


class _Translator:
    """One pass over the pattern, from left to right."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.out: list[str] = []
        self.i = 0
        self.ignore_case = False
        self.dot = ANY

    def run(self) -> _Translator:
        if flags := _FLAGS.match(self.pattern):
            self.i = flags.end()
            self.ignore_case = "i" in flags[1]
            self.dot = r"[\s\S]" if "s" in flags[1] else ANY
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
                return _END
            case "|" | ")":
                return char
            case "*" | "+" | "?" | "{":
                return self._quantifier()
            case _:
                return re.escape(char)

    def _quantifier(self) -> str:
        found = _QUANTIFIER.match(self.pattern, self.i - 1)
        if found is None:
            raise self._refuse("'{' starts no repetition; write \\{")
        self.i = found.end()
        return found[0]

    def _group(self) -> str:
        if not self.pattern.startswith("?", self.i):
            return "("
        found = _GROUP.match(self.pattern, self.i)
        if found is None:
            raise self._refuse("this kind of group, or flags that do not stand at the start")
        self.i = found.end()
        return f"(?P<{found['name']}>" if found["name"] else f"(?{found['kind']}"

    def _escape(self) -> str:
        char = self._take()
        if char in _SETS:
            return f"\\{char}"
        if char in "pP":
            return f"[{'^' if char == 'P' else ''}{self._posix()}]"
        if char == "Q":
            end = self.pattern.find("\\E", self.i)
            quoted = self.pattern[self.i : end if end >= 0 else None]
            self.i = end + 2 if end >= 0 else len(self.pattern)
            return re.escape(quoted)
        if char in "123456789":
            if self._peek().isdigit():
                raise self._refuse("a back reference of two digits")
            return f"(?:\\{char})"
        if char == "k":
            if name := re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)>").match(self.pattern, self.i):
                self.i = name.end()
                return f"(?P={name[1]})"
            raise self._refuse("\\k without a group's name")
        if anchor := {"A": r"\A", "z": r"\Z", "Z": _END}.get(char):
            return anchor
        return re.escape(self._literal(char))

    def _literal(self, char: str) -> str:
        """The character that an escape stands for, inside and outside of classes."""
        if char in _CHARS:
            return _CHARS[char]
        if char in "xu":
            code = re.compile(
                r"\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{2})" if char == "x" else r"()([0-9a-fA-F]{4})"
            )
            if (found := code.match(self.pattern, self.i)) and (
                n := int(found[1] or found[2], 16)
            ) <= 0x10FFFF:
                self.i = found.end()
                return chr(n)
            raise self._refuse(f"\\{char} without its hexadecimal digits")
        if char.isascii() and char.isalnum():
            raise self._refuse(f"\\{char}")
        return char

    def _posix(self) -> str:
        found = re.compile(r"\{(\w+)\}").match(self.pattern, self.i)
        if found is None or found[1] not in _POSIX:
            raise self._refuse("a property that is none of " + ", ".join(_POSIX))
        self.i = found.end()
        return _POSIX[found[1]]

    def _class(self) -> str:
        negated = self._peek() == "^"
        self.i += negated
        members: list[str] = []
        while not (self._peek() == "]" and members):
            members.append(self._member())
        self.i += 1
        return f"[{'^' if negated else ''}{''.join(members)}]"

    def _member(self) -> str:
        start = self._class_char()
        if len(start) > 1:
            return start
        if self._peek() != "-" or self.pattern[self.i + 1 : self.i + 2] in ("]", "[", ""):
            return re.escape(start)
        self.i += 1
        end = self._class_char()
        if len(end) > 1 or end < start:
            raise self._refuse("an illegal range")
        return f"{re.escape(start)}-{re.escape(end)}"

    def _class_char(self) -> str:
        """One character of a class, or the longer text of a predefined set."""
        char = self._take()
        if char == "[" or (char == "&" and self._peek() == "&"):
            raise self._refuse("nested classes and &&; write one flat class")
        if char != "\\":
            return char
        char = self._take()
        if char in _SETS:
            return f"\\{char}"
        if char == "p":
            return self._posix()
        return self._literal(char)

    def _take(self) -> str:
        if self.i == len(self.pattern):
            raise self._refuse("it ends too early")
        self.i += 1
        return self.pattern[self.i - 1]

    def _peek(self) -> str:
        return self.pattern[self.i : self.i + 1]

    def _refuse(self, why: str) -> SettingError:
        return _refused(self.pattern, self.i - 1, why)


def _refused(pattern: str, position: int | None, why: str) -> SettingError:
    where = "" if position is None else f" at position {position}"
    return SettingError(
        f"The pattern regex:{pattern} is malformed or not supported{where}",
        why=why,
        hint="the supported part of java.util.regex.Pattern is what Python's re also has; a glob: may do",
    )
