"""The calls of an expression, each with its arguments, as its tokens say them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pinot_assets.expressions.tokens import Token


@dataclass(slots=True)
class FunctionCall:
    """A call, or parentheses around values (`name` is then "", or a word such as `in`).

    :ivar name: as it is written, in lower case.
    :ivar arguments: the pieces of each.
    """

    name: str
    arguments: list[list[Token | FunctionCall]] = field(default_factory=lambda: [[]])


def calls_of(tokens: Sequence[Token]) -> FunctionCall:
    """The whole expression, as the one argument of a call without a name."""
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


def text_of(argument: Sequence[Token | FunctionCall]) -> str | None:
    """The text literal that an argument is, with its quotes; None if it is anything else."""
    if len(argument) == 1 and isinstance(argument[0], Token) and argument[0].kind == "text":
        return argument[0].text
    return None


def number_of(argument: Sequence[Token | FunctionCall]) -> float | None:
    """The number that an argument is, with or without a sign before it; None if it is anything else."""
    *signs, last = [item if isinstance(item, Token) else None for item in argument] or [None]
    if last is None or last.kind != "number" or len(signs) > 1:
        return None
    if signs and (signs[0] is None or signs[0].text not in ("-", "+")):
        return None
    value = float(last.text.rstrip("lLsSyYfFdDbB"))
    return -value if signs and signs[0] is not None and signs[0].text == "-" else value
