"""Split SQL into words, texts and signs: only that part of SQL which every parser reads alike.

Parsers differ in where a comment ends, what an escape is and which letters are the same. A check that
reads an expression in one way, while Pinot or Spark reads it in another, checks nothing. So everything that
they read differently is refused.

`calls_of` turns tokens into calls with arguments. `ExpressionRefused` says why an expression may not run.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeVar

MOST_DEPTH = 32
"""Limit of nested parentheses: parsers that recurse give up not far above."""

MOST_LENGTH = 100_000
"""Limit of the characters of an expression: enough for a list of ten thousand values."""


class ExpressionRefused(ValueError):
    """An expression holds something that is not allowed.

    :ivar reason: what is refused, and why; it can follow the name of the key.
    :ivar fix: what to write instead, if that is known.
    """

    def __init__(self, reason: str, fix: str | None = None) -> None:
        super().__init__(reason if fix is None else f"{reason}: {fix}")
        self.reason = reason
        self.fix = fix


def refuse_length(text: str) -> None:
    """Refuse a text that takes long to read.

    :raises ExpressionRefused: the text has more than `MOST_LENGTH` characters.
    """
    if len(text) > MOST_LENGTH:
        raise ExpressionRefused(f"has more than {MOST_LENGTH:,} characters", "write a shorter one")


def refuse_reference(text: str) -> None:
    """Refuse a text in which Spark or Pinot would insert a variable of its environment.

    :raises ExpressionRefused: the text has a `${` at any place.
    """
    if "${" in text:
        raise ExpressionRefused(
            "contains ${, which a variable of the environment would replace and so become table data",
            "write the value; for the two characters, concat('$', '{')",
        )


def function_refusal(name: str, why: str | None, known: Collection[str], instead: str) -> ExpressionRefused:
    """Return the refusal of a function that is not on the list.

    :param why: what the function does, if that is known.
    :param instead: what to use, if no name on the list is near.
    """
    if why is not None:
        return ExpressionRefused(f"calls {name}(), which {why}", instead)
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.75)
    fix = f"did you mean {near[0]}?" if near else instead
    return ExpressionRefused(f"calls {name}(), which is not one of the functions that may be called", fix)


T = TypeVar("T")
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
"""Spark SQL, where double quotes hold a text or, with some settings of the Spark session, a name."""
PINOT: Final = re.compile(
    rf"""(?P<blank>[ \t\r\n]+) | {_COMMENT}
      | (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")+")
      | (?P<number>{_NUMBER}(?!\w))
      | (?P<word>[^\W\d]\w*|\$\w+)
      | (?P<sign>[][()<>,.+\-*/%=!|;])""",
    _FLAGS,
)
"""Pinot's SQL, which Calcite parses, with the semicolon that may end it."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word, text, number or sign of an expression.

    :ivar text: as it is written.
    :ivar start: its position in the whole text.
    """

    kind: TokenKind
    text: str
    start: int

    @property
    def name(self) -> str:
        """A word in lower case; "" for any other token, and for a word with letters outside ASCII."""
        return self.text.lower() if self.kind == "word" and self.text.isascii() else ""

    @property
    def is_value(self) -> bool:
        """Whether the token may be a value by itself."""
        return self.kind != "sign"


END: Final = Token("sign", "", -1)
"""The token before the first one and after the last one."""


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


def each_of(table: Mapping[str, T]) -> dict[str, T]:
    """Return a table with one entry per word: each key of `table` lists several words."""
    return {word: value for listed, value in table.items() for word in listed.split()}


def read_tokens(text: str, dialect: re.Pattern[str]) -> list[Token]:
    """Return the tokens of an expression, without its comments.

    :param dialect: `SPARK` or `PINOT`.
    :raises ExpressionRefused: it is too long, or has a character that is not allowed, a comment that parsers
        read differently, or too many nested parentheses.
    """
    refuse_length(text)
    tokens: list[Token] = []
    place = depth = 0
    while place < len(text):
        if (match := dialect.match(text, place)) is None:
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
            tokens.append(Token(kind, piece, place))  # type: ignore[arg-type]  # a group is named as a Kind
        place = match.end()
    return tokens


def column_names(text: str, dialect: re.Pattern[str]) -> frozenset[str]:
    """Return the words of an expression that may name a column, without members of structures and variables
    of lambda functions; functions and words of the language are among them.

    :raises ExpressionRefused: as `read_tokens`.
    """
    tokens = [END, *read_tokens(text, dialect), END, END]
    names, variables = set[str](), set[str]()
    for place, token in enumerate(tokens[:-2]):
        if token.kind in ("word", "quoted") and tokens[place - 1].text != ".":
            name = token.text if token.kind == "word" else token.text[1:-1]
            is_variable = [one.text for one in tokens[place + 1 : place + 3]] == ["-", ">"]
            (variables if is_variable else names).add(name)
    return frozenset(names - variables)


def without_comments(text: str, dialect: re.Pattern[str]) -> str:
    """Return the text with blanks for comments, lines kept: Pinot looks for options in comments, too.

    :raises ExpressionRefused: parsers read one of its comments differently, or the text is too long.
    """
    refuse_length(text)
    parts: list[str] = []
    place = 0
    while place < len(text):
        match = dialect.match(text, place)
        if match is not None and match["sign"] and text.startswith("/*", place):
            parts.append(text[place:])  # nothing after this place ends a comment, so nothing later does
            break
        piece = match[0] if match is not None else text[place]
        place += len(piece)
        if match is not None and match["comment"]:
            _check_comment(piece)
            piece = re.sub(r"[^\r\n]", " ", piece)
        parts.append(piece)
    return "".join(parts)


def _check_comment(comment: str) -> None:
    inner = comment[2:-2] if comment.startswith("/*") else comment[2:]
    if inner.startswith("+") or "/*" in inner or "*/" in inner or "\\" in inner:
        raise ExpressionRefused(
            "has a comment that is a hint, or that ends at another place for other parsers", "remove it"
        )


def _strange(text: str, place: int) -> ExpressionRefused:
    char = text[place]
    if text.startswith(("/*", "//"), place):
        return ExpressionRefused(f"has {text[place : place + 2]} without an end, or no comment", "remove it")
    if char == ";":
        return ExpressionRefused("has a ;, after which another statement could follow", "remove it")
    if char in "'\"`":
        return ExpressionRefused(f"has a {char} that is not closed")
    if char.isascii() and char.isprintable():
        return ExpressionRefused(f"has a {char}, which cannot be part of an expression here")
    return ExpressionRefused(
        f"has the character U+{ord(char):04X} outside of a text", "put names into quotes"
    )


def word_before(tokens: list[Token], place: int) -> Token | None:
    """Return the name that a parenthesis belongs to; None for a parenthesis around values.

    :raises ExpressionRefused: the name before it is no plain one: quoted, with a dot, or an expression.
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


@dataclass(slots=True)
class FunctionCall:
    """A call, or parentheses around values (`name` is then "", or a word such as `in`).

    :ivar name: as it is written, in lower case.
    :ivar arguments: the tokens and calls of each argument.
    """

    name: str
    arguments: list[list[Token | FunctionCall]] = field(default_factory=lambda: [[]])


def calls_of(tokens: Sequence[Token]) -> FunctionCall:
    """Return the whole expression as the only argument of a call without a name."""
    whole = FunctionCall("")
    stack = [whole]
    for token in tokens:
        argument = stack[-1].arguments[-1]
        if token.kind != "sign":
            argument.append(token)
        elif token.text in ("(", "["):
            last = argument[-1] if argument else None
            is_named = token.text == "(" and isinstance(last, Token) and last.kind == "word"
            call = FunctionCall(last.text.lower() if is_named and isinstance(last, Token) else "")
            if is_named:
                argument.pop()
            argument.append(call)
            stack.append(call)
        elif token.text in (")", "]"):
            if len(stack) > 1:
                stack.pop()
        elif token.text == ",":
            stack[-1].arguments.append([])
        elif token.text:
            argument.append(token)
    return whole


def literal_text(argument: Sequence[Token | FunctionCall]) -> str | None:
    """Return the text literal that an argument is, with its quotes; None if it is anything else."""
    if len(argument) == 1 and isinstance(argument[0], Token) and argument[0].kind == "text":
        return argument[0].text
    return None


def literal_number(argument: Sequence[Token | FunctionCall]) -> float | None:
    """Return the number that an argument is, with or without a sign; None if it is anything else."""
    *signs, last = [item if isinstance(item, Token) else None for item in argument] or [None]
    if last is None or last.kind != "number" or len(signs) > 1:
        return None
    if signs and (signs[0] is None or signs[0].text not in ("-", "+")):
        return None
    value = float(last.text.rstrip("lLsSyYfFdDbB"))
    return -value if signs and signs[0] is not None and signs[0].text == "-" else value
