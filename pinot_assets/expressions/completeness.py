"""Check that SQL is complete: each bracket is closed, each operator has its values, each CASE its END.

This is no grammar: it refuses only what is wrong for Spark and for Pinot, and can name the place without
them. What they alone know (how many arguments a function takes, columns, types), they report. A word of
SQL is a column's name if only something follows that follows a value: `like > 5`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from pinot_assets.expressions.syntax import END, ExpressionRefused, Token, words

CLAUSES: Final = words("by from having limit offset where")
"""Words of a SELECT between two values."""
_JOINED: Final = words("<=> <= >= <> != !< !> == || :: -> => << >> >>>")
"""Signs that are one operator if no blank is between them."""
_INFIX: Final = words("and as between collate div escape for from ilike in is like or placing regexp rlike")
_AFTER_NOT: Final = words("between ilike in like regexp rlike")
_STAGES: Final = {"when": ("case", "then"), "then": ("when",), "else": ("then",), "end": ("then", "else")}
"""The words of a CASE, each with the words that it may follow."""
_CASE: Final = "write CASE WHEN … THEN … ELSE … END"


@dataclass(slots=True)
class _Frame:
    """An open bracket, an open CASE, or the whole text.

    :ivar stage: for a CASE its last word; for `CAST(` "cast" until AS comes; else empty.
    :ivar is_call: whether it may be empty, as the parentheses of a call.
    :ivar betweens: number of BETWEEN that still need their AND.
    """

    opener: Token
    stage: str = ""
    is_call: bool = False
    betweens: int = 0

    @property
    def is_case(self) -> bool:
        """Whether it is a CASE."""
        return self.opener.kind == "word"


def check_whole(tokens: Sequence[Token], clauses: Collection[str] = ()) -> None:
    """Refuse SQL that is not complete; the reason names the character where that shows.

    :param tokens: of one expression, or of a SELECT.
    :param clauses: words that separate values as operators do: `CLAUSES` for a SELECT.
    :raises ExpressionRefused: it is not complete.
    """
    reader = _TokenReader(_joined(tokens), clauses)
    while reader.place < len(reader.tokens):
        reader.take()
    if reader.last is END:
        raise ExpressionRefused("is empty")
    if len(reader.frames) > 1:
        raise _unclosed(reader.frames[-1])
    reader.needs_value(END)


class _TokenReader:
    """:ivar has_value: whether a value ends right before this place."""

    def __init__(self, tokens: list[Token], clauses: Collection[str]) -> None:
        self.tokens, self.place = tokens, 0
        self.infix, self.is_query = _INFIX.union(clauses), bool(clauses)
        self.frames, self.has_value, self.last = [_Frame(END)], False, END

    def take(self) -> None:
        """Read the next token, or a whole type."""
        token = self.tokens[self.place]
        self.place += 1
        if token.kind == "sign":
            self._sign(token, self.frames[-1])
        elif token.kind != "word" or self.last.text == "." or not self._keyword(token, self.frames[-1]):
            self.has_value = True
        self.last = token

    def _sign(self, token: Token, frame: _Frame) -> None:
        text = token.text
        if text in ("(", "["):
            if text == "[" and not self.has_value and self.last.text != ":":
                raise self._lacks(token)
            cast = "cast" if self.last.name in ("cast", "try_cast") and self.has_value else ""
            self.frames.append(_Frame(token, cast, is_call=text == "(" and self.has_value))
            self.has_value = False
        elif text in (")", "]"):
            self._close(token, frame)
        elif text == "," and len(self.frames) == 1 and not self.is_query:
            raise ExpressionRefused(
                f"is two expressions, with {_at(token)} between them", "write one of them"
            )
        elif text == "*" and not self.has_value and self.last.text.lower() in ("(", ",", ".", "select"):
            self.has_value = True  # all columns
        elif text == "!" or (text in ("+", "-", "~") and not self.has_value):
            self._before_value(token)
        elif text != ";":
            self._between_values(token)
            if text == "::" and self._peek(1).text == "<":  # array<…> and its like
                self._skip("<", ">", 0)
                self.has_value = True

    def _close(self, token: Token, frame: _Frame) -> None:
        if frame.is_case:
            raise _unclosed(frame)
        if {"(": ")", "[": "]"}.get(frame.opener.text) != token.text:
            raise ExpressionRefused(f"has {_at(token)} that nothing opened", "close each bracket once")
        if not (frame.is_call and self.last is frame.opener):
            self.needs_value(token)
        if frame.stage == "cast":
            raise ExpressionRefused(
                f"casts without AS and a type, at {_at(token)}", "write CAST(value AS type)"
            )
        self.frames.pop()
        self.has_value = True

    def _keyword(self, token: Token, frame: _Frame) -> bool:
        """Whether the word is a word of SQL and no value here; if it is, this has read it."""
        name, after = token.text.lower(), self._peek(0)
        if name in _STAGES and (frame.is_case or self.has_value):
            self._of_case(token, name, frame)
        elif name == "case" and not self._is_name(after, but=("+", "-", "(")):
            self.frames.append(_Frame(token, "case"))
            self.has_value = False
        elif name == "not":
            self._before_value(token)
        elif name == "select" and self.is_query and self.last is END:
            pass
        elif name not in self.infix or (name not in ("and", "or") and self._is_name(after)):
            return False
        elif name == "as" and frame.stage == "cast" and self.has_value:
            frame.stage = ""
            self._skip("(", ")", 1)
            self.has_value = self.tokens[self.place - 1] is not token
        elif self.last.text != "(" or name not in ("from", "where"):  # as in TRIM(FROM x), FILTER(WHERE x)
            self._between_values(token)
            frame.betweens += (name == "between") - (name == "and" and frame.betweens > 0)
        return True

    def _is_name(self, after: Token, but: Collection[str] = ()) -> bool:
        """Whether a word of SQL is the name of a column or function here, by the token after it."""
        if self.has_value or after.text in but:
            return False
        return after.text not in ("[", "~", "!") if after.kind == "sign" else after.text.lower() in self.infix

    def _of_case(self, token: Token, name: str, frame: _Frame) -> None:
        if frame.stage not in _STAGES[name]:
            where = (
                f"not behind {' or '.join(word.upper() for word in _STAGES[name])}"
                if frame.is_case
                else "outside of a CASE"
            )
            raise ExpressionRefused(f"has {_at(token)} {where}", _CASE)
        if self.last is not frame.opener or name != "when":
            self.needs_value(token)
        frame.stage, self.has_value = name, name == "end"
        if name == "end":
            self.frames.pop()

    def _before_value(self, token: Token) -> None:
        """Read a sign or NOT before a value; after a value it must be the NOT of NOT IN, NOT LIKE, …"""
        if self.has_value and self._peek(0).name not in _AFTER_NOT:
            raise ExpressionRefused(
                f"has {_at(token)} between two values", "write AND NOT, or NOT IN, NOT LIKE"
            )

    def _between_values(self, token: Token) -> None:
        if not self.has_value or token.text == ",":
            self.needs_value(token)
        if token.text == "~":
            raise ExpressionRefused(f"has {_at(token)} between two values", "write ~ before a value")
        self.has_value = False

    def needs_value(self, token: Token) -> None:
        """Refuse an operator without its value, or a BETWEEN without AND, right before a token."""
        if not self.has_value:
            raise self._lacks(token)
        if self.frames[-1].betweens:
            raise ExpressionRefused(
                f"has BETWEEN without AND before {_at(token)}", "write BETWEEN low AND high"
            )

    def _lacks(self, token: Token) -> ExpressionRefused:
        behind = f" behind {_at(self.last)}" if self.last is not END else ""
        return ExpressionRefused(
            f"lacks a value{behind}, before {_at(token)}",
            "write what is missing; a column of that name needs quotes",
        )

    def _skip(self, opening: str, closing: str, depth: int) -> None:
        """Skip a type: to the end of its own brackets, or up to the end of the bracket around it."""
        while self.place < len(self.tokens):
            text = self.tokens[self.place].text
            if depth == 1 and text == closing and opening == "(":
                return
            depth += text.count(opening) - text.count(closing)
            self.place += 1
            if not depth and closing in text:
                return

    def _peek(self, further: int) -> Token:
        place = self.place + further
        return self.tokens[place] if place < len(self.tokens) else END


def _joined(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens, with an operator of several signs as one token."""
    joined: list[Token] = []
    for token in tokens:
        before = joined[-1] if joined else END
        touches = token.start == before.start + len(before.text)
        if before.kind == token.kind == "sign" and touches and before.text + token.text in _JOINED:
            joined[-1] = Token("sign", before.text + token.text, before.start)
        elif token.text:
            joined.append(token)
    return joined


def _unclosed(frame: _Frame) -> ExpressionRefused:
    if frame.is_case:
        return ExpressionRefused(f"has {_at(frame.opener)} without END", _CASE)
    return ExpressionRefused(f"has {_at(frame.opener)} that is not closed", "close it")


def _at(token: Token) -> str:
    """As people find it: `THEN at character 17`."""
    shown = token.text[:40].upper() if token.kind == "word" else token.text[:40]
    return f"{shown} at character {token.start + 1}" if shown else "its end"
