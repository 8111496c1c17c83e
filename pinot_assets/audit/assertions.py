"""Assertions by SQL: adds up partial answers and compares them with the expected values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import add
from typing import Final

from pinot_assets.audit.checks import Finding, finding_of
from pinot_assets.core.check_result import Severity
from pinot_assets.core.json_object import JsonValue
from pinot_assets.errors import PinotError
from pinot_assets.pinot.client.broker import QueryResult
from pinot_assets.pinot.client.data_table import DataTable
from pinot_assets.table_spec.blocks.assertion import MOST_GROUPS, Question, Side
from pinot_assets.table_spec.blocks.audit import Assertion

Group = tuple[JsonValue, ...]
Tally = Mapping[Group, tuple[float, ...]]
"""Values of a question's aggregates, in its order, by the values of its keys; by `()` if it has none."""

_FOLDS: Final[Mapping[str, Callable[[float, float], float]]] = {
    "COUNT": add,
    "SUM": add,
    # As in Java, the result is NaN if one of the two is.
    "MIN": lambda a, b: a if math.isnan(a) else min(b, a),
    "MAX": lambda a, b: a if math.isnan(a) else max(b, a),
}
_OF_NO_ROWS: Final = {"COUNT": 0.0, "SUM": 0.0}
"""Values of a group that is not there; MIN and MAX then have none."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers to one question.

    :ivar staged: one answer of each replica that was asked, about all staged segments. Empty if the
        switch only removes files; one tally without a group if the new files have no rows.
    :ivar kept: about live segments that stay.
    :ivar leaving: about live segments that the switch replaces.
    :ivar live: whether there are live segments.
    """

    staged: tuple[Tally, ...]
    kept: Tally = field(default_factory=dict)
    leaving: Tally = field(default_factory=dict)
    live: bool = True


def tally(question: Question, tables: Iterable[DataTable]) -> Tally:
    """Return the parts of one answer put together.

    :param tables: answers of servers, each about other segments.
    :raises PinotError: an answer does not have the shape of the question, or lacks groups.
    """
    parts: list[Tally] = []
    for table in tables:
        _require_shape(question, table)
        for row in table.rows:
            values = tuple(value for value in row if value is not None)
            if len(values) < len(row):
                raise PinotError(
                    f"a server answered {question.before}… with values that only Pinot can merge"
                )
            keys, numbers = values[: len(question.keys)], values[len(question.keys) :]
            keys = tuple(math.nan if key != key else key for key in keys)  # one NaN object, equal to itself
            parts.append({keys: tuple(float(value) for value in numbers)})
    return joined(question, *parts)


def broker_tally(question: Question, result: QueryResult) -> Tally:
    """Return a broker's answer, which is complete by itself.

    :raises PinotError: it does not have the shape of the question, lacks groups, or a value is not a number.
    """
    if not question.keys and len(result.rows) != 1:
        raise PinotError(f"a broker answered with {len(result.rows):,} rows instead of one")
    if question.keys and not question.limited and len(result.rows) >= MOST_GROUPS:
        raise _groups_left_out("a broker", len(result.rows))
    width = len(question.keys) + len(question.aggregates)
    if any(len(row) != width for row in result.rows):
        raise PinotError(f"a broker's rows do not have {width} values")
    return {
        tuple(row[place] for place in question.key_places): tuple(
            _broker_value(value, fold)
            for value, (_, fold) in zip(
                [value for place, value in enumerate(row) if place not in question.key_places],
                question.aggregates,
                strict=True,
            )
        )
        for row in result.rows
    }


def _broker_value(value: JsonValue, fold: str) -> float:
    """Return a number, also if JSON has it as a text (`"Infinity"`, a BIG_DECIMAL). For no rows a broker that
    handles nulls has no value; this returns what others answer: 0, or an infinity (for AVG, too)."""
    if value is None:
        return _OF_NO_ROWS.get(fold, -math.inf)
    with suppress(ValueError):
        if isinstance(value, str | int | float):
            return float(value)
    raise PinotError(f"a broker answered {str(value)[:80]!r}, which is not a number")


def joined(question: Question, *parts: Tally) -> Tally:
    """Return answers about different segments put together."""
    total: dict[Group, tuple[float, ...]] = {}
    for part in parts:
        for keys, values in part.items():
            before = total.get(keys)
            folds = (_FOLDS[fold] for _, fold in question.aggregates)
            total[keys] = (
                values
                if before is None
                else tuple(fold(a, b) for fold, a, b in zip(folds, before, values, strict=True))
            )
    return total


def assertion_holds(assertion: Assertion, answers: Answers) -> Finding:
    """Check that every value and group is as expected, from every replica."""
    question, expectation = assertion.question, assertion.expectation
    if expectation.of_live and not answers.live:
        return nothing_live(assertion)
    live = joined(question, answers.kept, answers.leaving) if expectation.of_live else None
    if expectation.side is Side.STAGED:
        tallies = list(answers.staged)
    else:
        tallies = [joined(question, answers.kept, staged) for staged in answers.staged or ({},)]
    return as_expected(assertion, tallies, live)


def as_expected(assertion: Assertion, tallies: Sequence[Tally], live: Tally | None) -> Finding:
    """Check that every value and group of every answer is as expected.

    :param tallies: answers about the rows that the assertion concerns; empty if the switch changes no such
        rows.
    :param live: the answer that queries see now, if the assertion compares with it; else None.
    """
    question, expectation = assertion.question, assertion.expectation
    compared = 0
    bad = []
    for values in tallies:
        for group in _groups(question, values, live or {}):
            for place, (text, fold) in enumerate(question.aggregates):
                value = _value(values, group, place, fold)
                other = _value(live, group, place, fold) if live is not None else None
                compared += 1
                if value is None or not expectation.holds(value, other):
                    bad.append(_answer_text(question, group, text, value, other))
    return replace(_finding(assertion, compared, bad, f"answers are {expectation}"), of_data=True)


def nothing_live(assertion: Assertion) -> Finding:
    """Return the finding before a first switch, when there is no live answer to compare with."""
    return _finding(assertion, 0, [], "answers: nothing is published yet to compare with")


def assertion_unanswered(assertion: Assertion, why: str) -> Finding:
    """Return the finding when servers did not answer; it waits for them."""
    return _finding(assertion, 1, [why], "servers answered")


def is_assertion(finding: str) -> bool:
    """Whether a finding of this name is of an assertion, so that it counts compared values of answers."""
    return finding.startswith(("sql: ", "sql via "))


def _finding(assertion: Assertion, expected: int, bad: Sequence[str], good: str) -> Finding:
    # Several assertions may ask the same question and expect different things.
    via = "sql" if assertion.via == "servers" else f"sql via {assertion.via}"
    distinct = list(dict.fromkeys(bad))  # replicas usually give the same text
    finding = finding_of(
        f"{via}: {assertion.sql} ({assertion.expect})", expected, distinct, good, found=expected - len(bad)
    )
    return replace(finding, severity=Severity(assertion.severity.upper()))


def _groups(question: Question, *tallies: Tally) -> list[Group]:
    """Return all groups of these tallies; `()`, the group of all rows, if the question has no keys."""
    return sorted({group for tally in tallies for group in tally}, key=str) if question.keys else [()]


def _require_shape(question: Question, table: DataTable) -> None:
    width = len(question.keys) + len(question.aggregates)
    if len(table.columns) != width:
        names = ", ".join(name for name, _ in table.columns)
        raise PinotError(f"a server answered with {names} instead of {width} values")
    if not question.keys and len(table.rows) != 1:
        raise PinotError(f"a server answered with {len(table.rows):,} rows instead of one")
    if table.groups_cut or (question.keys and len(table.rows) >= MOST_GROUPS):
        raise _groups_left_out("a server", len(table.rows))


def _groups_left_out(who: str, rows: int) -> PinotError:
    return PinotError(
        f"{who} left groups out of its answer",
        why=f"there are {rows:,} or more of them",
        hint="group by something with fewer values, or filter",
    )


def _value(tally: Tally, group: Group, place: int, fold: str) -> float | None:
    """Return the value. None for MIN and MAX of no rows, for which a server answers with an infinity."""
    if (values := tally.get(group)) is None:
        return _OF_NO_ROWS.get(fold)
    return values[place] if fold in _OF_NO_ROWS or not math.isinf(values[place]) else None


def _answer_text(question: Question, group: Group, text: str, value: float | None, live: float | None) -> str:
    of = f" for {', '.join(map(str, group))}" if question.keys else ""
    beside = f", live {_number(live)}" if live is not None else ""
    return f"{text}{of} is {_number(value)}{beside}"


def _number(value: float | None) -> str:
    if value is None:
        return "nothing"
    return f"{value:,.0f}" if value.is_integer() else f"{value:,.6g}"
