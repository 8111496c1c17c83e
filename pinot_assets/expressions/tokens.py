"""SQL taken apart into words, texts and signs, in the part of it that every parser reads alike.

Parsers differ in where a comment ends, in what an escape is and in which letters are the same. A check that
reads an expression in one way while Pinot or Spark reads it in another checks nothing. So what they read
differently is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from pinot_assets.expressions.refused import MOST_DEPTH, ExpressionRefused, refuse_length

TokenKind = Literal["word", "quoted", "text", "number", "sign"]

_NUMBER: Final = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_COMMENT: Final = r"(?P<comment>--[^\r\n]*|/\*.*?\*/)"
_FLAGS: Final = re.DOTALL | re.VERBOSE

SPARK: Final = re.compile(
    rf"""(?P<blank>[ \t\r\n]+) | {_COMMENT}
      | (?P<text>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<quoted>`(?:[^`]|``)+`)
      | (?P<number>{_NUMBER}(?:[lLsSyYfFdD]|[bB][dD])?(?!\w))
      | (?P<word>\w+)
      | (?P<sign>[][()<>,.+\-*/%=!&|^~:])""",
    _FLAGS,
)
"""Spark SQL, where double quotes hold a text or, with settings of the session, a name."""
PINOT: Final = re.compile(
    rf"""(?P<blank>[ \t\r\n]+) | {_COMMENT}
      | (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")+")
      | (?P<number>{_NUMBER}(?!\w))
      | (?P<word>[^\W\d]\w*|\$\w+)
      | (?P<sign>[][()<>,.+\-*/%=!|;])""",
    _FLAGS,
)
"""Pinot's SQL, which Calcite parses; with the semicolon, which may end it."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of an expression.

    :ivar text: as it is written.
    :ivar start: its place in the whole text.
    """

    kind: TokenKind
    text: str
    start: int

    @property
    def name(self) -> str:
        """A word in lower case; "" for all else. Of letters outside ASCII none is ever another one."""
        return self.text.lower() if self.kind == "word" and self.text.isascii() else ""

    @property
    def is_value(self) -> bool:
        """Whether it may stand for a value by itself."""
        return self.kind != "sign"


END: Final = Token("sign", "", -1)
"""Stands before the first token and behind the last one."""


def words(text: str) -> frozenset[str]:
    """A list of words, as it is written in a text."""
    return frozenset(text.split())


def read_tokens(text: str, dialect: re.Pattern[str]) -> list[Token]:
    """The tokens of an expression, without its comments.

    :param dialect: `SPARK` or `PINOT`.
    :raises ExpressionRefused: it has a character that has no place in it, a comment that parsers read
        differently, or too many parentheses in each other, or it is too long.
    """
    refuse_length(text)
    found: list[Token] = []
    place = depth = 0
    while place < len(text):
        match = dialect.match(text, place)
        if match is None:
            raise _strange(text, place)
        kind, piece = str(match.lastgroup), match[0]
        if kind == "comment":
            _check_comment(piece)
        elif text.startswith(("/*", "//"), place):
            raise _strange(text, place)
        elif kind != "blank":
            depth += (piece in "([") - (piece in ")]")
            if depth > MOST_DEPTH:
                raise ExpressionRefused("has too many parentheses in each other", f"at most {MOST_DEPTH}")
            found.append(Token(kind, piece, place))  # type: ignore[arg-type]  # a group is named as a Kind
        place = match.end()
    return found


def without_comments(text: str, dialect: re.Pattern[str]) -> str:
    """The text with blanks for its comments, lines kept: Pinot looks for options in comments, too.

    :raises ExpressionRefused: a comment is one that parsers read differently, or the text is too long.
    """
    refuse_length(text)
    found: list[str] = []
    place = 0
    while place < len(text):
        match = dialect.match(text, place)
        if match is not None and match["sign"] and text.startswith("/*", place):
            found.append(text[place:])  # no end is found from here, and so from nowhere behind
            break
        piece = match[0] if match is not None else text[place]
        place += len(piece)
        if match is not None and match["comment"]:
            _check_comment(piece)
            piece = _blank(piece)
        found.append(piece)
    return "".join(found)


def _blank(comment: str) -> str:
    return re.sub(r"[^\r\n]", " ", comment)


def _check_comment(comment: str) -> None:
    inner = comment[2:-2] if comment.startswith("/*") else comment[2:]
    if inner.startswith("+") or "/*" in inner or "*/" in inner or "\\" in inner:
        raise ExpressionRefused(
            "has a comment that is a hint, or that ends elsewhere for other parsers", "leave it out"
        )


def _strange(text: str, place: int) -> ExpressionRefused:
    found = text[place]
    if text.startswith(("/*", "//"), place):
        return ExpressionRefused(
            f"has {text[place : place + 2]} without an end, or no comment", "leave it out"
        )
    if found == ";":
        return ExpressionRefused("has a ;, behind which another statement could stand", "leave it out")
    if found in "'\"`":
        return ExpressionRefused(f"has a {found} that is not closed")
    if found.isascii() and found.isprintable():
        return ExpressionRefused(f"has a {found}, which is no part of an expression here")
    return ExpressionRefused(
        f"has the character U+{ord(found):04X} outside of a text", "put names into quotes"
    )


def word_before(tokens: list[Token], place: int) -> Token | None:
    """The name that a parenthesis belongs to, None where it is one around values.

    :raises ExpressionRefused: what is before it is no plain name: quoted, with a dot, or an expression.
    """
    name, before = tokens[place - 1], tokens[place - 2]
    if name.kind == "sign":
        if name.text in (")", "]"):
            raise ExpressionRefused(
                f"has ( right after {name.text}, where only the name of a function can come before it"
            )
        return None
    if name.kind != "word":
        raise ExpressionRefused(f"calls {name.text}()", "write the function's name without quotes")
    if before.text == ".":
        raise ExpressionRefused(
            f"calls a function with a dot in its name, {name.text}()", "write the function's plain name"
        )
    return name
