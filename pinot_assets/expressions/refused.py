"""Why an expression may not run."""

from __future__ import annotations

import difflib
from collections.abc import Collection

MOST_DEPTH = 32
"""Parentheses in parentheses, at the most: parsers that recurse give up not far above."""

MOST_LENGTH = 100_000
"""Characters of an expression: enough for a list of ten thousand values."""


class ExpressionRefused(ValueError):
    """An expression says what it may not say.

    :ivar reason: what, and why not; the name of its key can stand before it.
    :ivar fix: what to write instead, where that is known.
    """

    def __init__(self, reason: str, fix: str | None = None) -> None:
        super().__init__(reason if fix is None else f"{reason}: {fix}")
        self.reason = reason
        self.fix = fix


def refuse_length(text: str) -> None:
    """Refuse what takes long to read.

    :raises ExpressionRefused: the text has more than `MOST_LENGTH` characters.
    """
    if len(text) > MOST_LENGTH:
        raise ExpressionRefused(f"has more than {MOST_LENGTH:,} characters", "write a shorter one")


def refuse_reference(text: str) -> None:
    """Refuse what Spark, or Pinot, would take for a variable of its environment.

    :raises ExpressionRefused: the text has a `${`, wherever it is.
    """
    if "${" in text:
        raise ExpressionRefused(
            "holds ${, which would be replaced by a variable of the environment and could become table data",
            "write the value; for the two characters, concat('$', '{')",
        )


def unknown_function(name: str, known: Collection[str], instead: str) -> ExpressionRefused:
    """The refusal of a function that is not on the list.

    :param instead: what can be used, where no name on the list is near.
    """
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.75)
    fix = f"did you mean {near[0]}?" if near else instead
    return ExpressionRefused(f"calls {name}(), which is not one of the functions that may be called", fix)
