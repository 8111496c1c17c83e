"""The `audit:` block: what must hold for staged segments before any other query sees them.

It has assertions, checks with bounds to set, and how many replicas must be known if a server is down.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from pinot_assets.expressions.syntax import ExpressionRefused
from pinot_assets.pinot.table_config import period_ms
from pinot_assets.table_spec.blocks.assertion import Expectation, Question, read_expectation
from pinot_assets.table_spec.blocks.pinot_json import OFFLINE_SUFFIX
from pinot_assets.table_spec.yaml.document import DocumentNode, Problem, canonical_json, did_you_mean
from pinot_assets.table_spec.yaml.values import AnyCase, has_reference, reason_of, text_of, yaml_keys

_RELATIVE: Final = re.compile(r"now(?:\s*([-+])\s*(\S+))?", re.IGNORECASE)

Severity = Annotated[Literal["error", "warn"], AnyCase()]
"""error keeps the gate shut; warn is only reported."""


def _percent(value: object) -> object:
    text = str(value).strip()
    if not re.fullmatch(r"[-+]?[0-9]{1,9}(?:\.[0-9]{1,6})?\s*%", text):
        raise ValueError("is not a percentage; write -20% or 50%")
    return float(text.rstrip("% "))


def _moment(value: object) -> object:
    text = " ".join(str(value).split())
    moment_ms(text, 0)
    return text


def moment_ms(text: str, now_ms: int) -> int:
    """A moment in epoch milliseconds.

    :param text: `2020-01-01`, `2020-01-01T12:00:00Z` (without a zone UTC), `now`, `now - 90d`, `now + 1d12h`.
    :raises ValueError: the text is no moment.
    """
    if (match := _RELATIVE.fullmatch(text)) is not None:
        period = period_ms(match[2]) if match[2] else 0
        if period is not None:
            return now_ms + (-period if match[1] == "-" else period)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("is not a time; write 2020-01-01, 2020-01-01T12:00:00Z or now + 1d") from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


Percent = Annotated[
    float,
    BeforeValidator(_percent),
    WithJsonSchema({"type": "string", "pattern": r"^[-+]?[0-9]+(\.[0-9]+)?\s*%$"}),
]
Moment = Annotated[str, BeforeValidator(_moment), WithJsonSchema({"type": "string", "minLength": 3})]


class _Item(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class RowChange(_Item):
    """By how much a switch may change the number of rows."""

    check: Literal["row_change"]
    """Name of the check."""
    of: Annotated[Literal["table", "file"], AnyCase()] = "table"
    """table: all rows that queries see; file: those of each rewritten file."""
    min: Percent | None = None
    """Smallest allowed change; with -20% at most a fifth of the rows may be removed."""
    max: Percent | None = None
    """Largest allowed change; with 50% at most half as many rows may be added."""
    severity: Severity = "error"
    """error keeps the gate shut; warn is only reported."""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.min is None and self.max is None:
            raise ValueError("has no bound; write min: -20% or max: 50%")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"has a min of {self.min:g}%, above its max of {self.max:g}%")
        return self


class TimeRange(_Item):
    """The earliest and latest time that the time column may have."""

    check: Literal["time_range"]
    """Name of the check."""
    from_: Annotated[Moment | None, Field(alias="from")] = None
    """The earliest time: 2020-01-01, or now - 90d."""
    to: Moment | None = None
    """The latest time: now + 1d, or 2030-01-01."""
    severity: Severity = "error"
    """error keeps the gate shut; warn is only reported."""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.from_ is None and self.to is None:
            raise ValueError("has no bound; write from: 2020-01-01 or to: now + 1d")
        bounds = [bound for bound in (self.from_, self.to) if bound]
        same_kind = len({bound.lower().startswith("now") for bound in bounds}) == 1
        if same_kind and moment_ms(bounds[0], 0) > moment_ms(bounds[-1], 0):
            raise ValueError(f"ends before it begins: from {self.from_} to {self.to}")
        return self


class EmptyOutputs(_Item):
    """Whether files without rows are accepted."""

    check: Literal["empty_outputs"]
    """Name of the check."""
    severity: Severity = "error"
    """error keeps the gate shut; warn, which also applies without this check, is only reported."""


LossName = Literal["emptied_files", "shrunk_files", "vanished_columns", "shrunk_table"]


class Loss(_Item):
    """What a switch may remove: these checks keep the gate shut unless the table spec makes them warn."""

    check: LossName
    """A rewritten file has no rows, under a tenth of them, or lacks a column; or a swap shrinks the table."""
    severity: Severity = "error"
    """error, which also applies without this check, keeps the gate shut; warn is only reported."""


class CutCheck(_Item):
    """Whether values may be shortened or replaced that Pinot cannot store as they are."""

    check: Literal["cut_at_nul", "cut_at_max_length", "times_replaced"]
    """Texts with a NUL lose what follows it; values longer than maxLength are cut or replaced; times outside
    1971 to 2071 are replaced, with rowTimeValueCheck and continueOnError."""
    severity: Severity = "error"
    """error keeps the gate shut (without this check: for a NUL); warn is only reported (for the others)."""


class Replicas(_Item):
    """How many replicas must be confirmed to be as they were built."""

    replicas: Annotated[Literal["all", "one"], AnyCase()]
    """all, or one replica of each segment; replicas of a server that is down are then only reported."""


CheckBound = RowChange | TimeRange | EmptyOutputs | Loss | CutCheck
CHECKS: Final[dict[str, type[CheckBound]]] = {
    "row_change": RowChange,
    "time_range": TimeRange,
    "empty_outputs": EmptyOutputs,
    **dict.fromkeys(get_args(LossName), Loss),
    "cut_at_nul": CutCheck,
    "cut_at_max_length": CutCheck,
    "times_replaced": CutCheck,
}
"""The checks with something to set, by name. Every other check must always hold, or the gate stays shut."""
CHECK_KINDS: Final = tuple(dict.fromkeys(CHECKS.values()))
"""The classes of these checks, each once."""


Via = Literal["servers", "shadow"]


def _expect(value: object) -> object:
    read_expectation(str(value))
    return str(value).strip()


class Assertion(BaseModel):
    """The answer that a query must have."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sql: Annotated[str, BeforeValidator(text_of), WithJsonSchema({"type": "string", "minLength": 1})]
    """SELECT of COUNT, SUM, MIN, MAX from this table, with WHERE, GROUP BY; via shadow, any aggregation."""
    expect: Annotated[
        str, BeforeValidator(_expect), WithJsonSchema({"type": ["string", "number"], "minLength": 1})
    ]
    """[staged | after] [= | != | < | <= | > | >=] number, or [factor *] live; for each value and group."""
    severity: Severity = "error"
    """error keeps the gate shut; warn is only reported."""
    via: Annotated[Via, AnyCase()] = "servers"
    """servers: each answers for its staged segments. shadow: a broker answers, from a table made for this."""

    @model_validator(mode="after")
    def _is_understood(self) -> Assertion:
        _ = self.question
        return self

    @cached_property
    def question(self) -> Question:
        """The question that the SQL asks."""
        # Imported here: few commands need the parser of SQL.
        from pinot_assets.table_spec.blocks.assertion_sql import read_question, read_shadow_question

        return read_shadow_question(self.sql) if self.via == "shadow" else read_question(self.sql)

    @cached_property
    def expectation(self) -> Expectation:
        """The comparison that `expect` asks for."""
        return read_expectation(self.expect)


@dataclass(frozen=True)
class Audit:
    """What must hold for staged segments, besides that they are what was built.

    :ivar assertions: what servers or a broker must answer, in their order.
    :ivar checks: bounds of other checks, in their order; one check may have several.
    :ivar replicas: `all`: every replica must be known to be as built; `one`: one replica of each segment.
    """

    assertions: tuple[Assertion, ...] = ()
    checks: tuple[CheckBound, ...] = ()
    replicas: Literal["all", "one"] = "all"

    @property
    def digest(self) -> str:
        """A hash of 16 hex digits; the same for the same items in the same order."""
        items = [item.model_dump(mode="json") for item in (*self.assertions, *self.checks)]
        return hashlib.sha256(canonical_json([items, self.replicas]).encode()).hexdigest()[:16]


_KINDS: Final[Mapping[str, str]] = {"sql": "an assertion", "check": "a check", "replicas": "replicas"}
"""The key that shows the kind of an item, and the name of that kind."""


def read_audit_block(
    block: DocumentNode,
    table: str,
    columns: Collection[str],
    nullable: Collection[str],
    time_column: str | None,
) -> tuple[Audit, list[Problem]]:
    """Read the `audit:` block.

    :param table: raw name of the table that assertions may ask.
    :param columns: its columns; if a filter names another column, a server answers 0.
    :param nullable: columns whose segments record nulls; a server finds no null in any other column.
    :param time_column: the table's time column; None if it has none, so that its segments have no times.
    :returns: the audit (an empty one if there are problems) and the problems.
    """
    if not isinstance(block.value, list):
        return Audit(), [block.problem("is not a list", "write - sql: … and expect: … below it")]
    problems: list[Problem] = []
    assertions: list[Assertion] = []
    checks: list[CheckBound] = []
    replicas: Replicas | None = None
    for place in block.items():
        item, wrong = _item(place)
        problems += wrong
        if isinstance(item, Assertion):
            problems += _misplaced(place.at("sql"), item.question, table, columns, nullable)
            assertions.append(item)
        elif isinstance(item, Replicas):
            if replicas is not None:
                problems.append(place.at("replicas").problem("is there twice", "keep one of the two"))
            replicas = item
        elif item is not None:
            if isinstance(item, TimeRange) and time_column is None:
                reason = "time_range has no column to check: the table has no time column"
                fix = "name one in timeColumnName of segmentsConfig, or write an assertion"
                problems.append(place.at("check").problem(reason, fix))
            checks.append(item)
    if problems:
        return Audit(), problems
    return Audit(tuple(assertions), tuple(checks), replicas.replicas if replicas else "all"), []


def _item(place: DocumentNode) -> tuple[Assertion | CheckBound | Replicas | None, list[Problem]]:
    """Read one item of the list; None if it has problems."""
    if not isinstance(place.value, dict):
        return None, [place.problem("is not a mapping", f"it begins with {', '.join(_KINDS)}")]
    kind: type[Assertion] | type[Replicas] | type[CheckBound] = Assertion
    if "check" in place.value:
        name = str(place.value["check"])
        if name not in CHECKS:
            fix = (
                did_you_mean(name, CHECKS)
                or f"those are {', '.join(CHECKS)}; the audit always makes all others"
            )
            return None, [place.at("check").problem("is not a check that can be set", fix)]
        kind = CHECKS[name]
    elif "replicas" in place.value:
        kind = Replicas
    if problems := list(_strange(place, kind)):
        return None, problems
    try:
        return kind.model_validate(place.value), []
    except ValidationError as invalid:
        for error in invalid.errors(include_input=False, include_url=False):
            # An error without a key is about the SQL, which can only be read together with `via`.
            where = error["loc"] or (("sql",) if kind is Assertion else ())
            raised = error.get("ctx", {}).get("error")
            if isinstance(raised, ExpressionRefused):
                problems.append(place.at(*where).problem(raised.reason, raised.fix))
            else:
                problems.append(place.at(*where).problem(reason_of(error)))
        return None, problems


def _strange(place: DocumentNode, kind: type[BaseModel]) -> Iterator[Problem]:
    keys = yaml_keys(kind)
    for key, value in place.mapping.items():
        inner = place.at(key)
        if key not in keys:
            what = next(text for word, text in _KINDS.items() if word in keys)
            # If no key shows the kind of the item, that key may be the misspelled one.
            known = keys if _KINDS.keys() & place.mapping.keys() else [*keys, *_KINDS]
            fix = did_you_mean(key, known) or f"the keys are {', '.join(keys)}"
            yield inner.problem(f"is not a key of {what}", fix)
        elif isinstance(value, str) and has_reference(value):
            yield inner.problem("refers to the environment, which is not read here", "write the value")


def _misplaced(
    place: DocumentNode, question: Question, table: str, columns: Collection[str], nullable: Collection[str]
) -> Iterator[Problem]:
    """Yield problems: another table, unknown columns, and tests for nulls that segments do not record."""
    if question.table not in (table, table + OFFLINE_SUFFIX):
        yield place.problem(f"reads {question.table}", f"read {table}")
    for column in sorted(question.columns.difference(columns)):
        fix = did_you_mean(column, columns) or "name a column of the schema"
        yield place.problem(f"names {column}, which the table does not have", fix)
    for column in sorted(question.null_columns.intersection(columns).difference(nullable)):
        text = f"counts nulls of {column}, whose segments do not record them: none is ever found"
        fix = "set nullHandlingEnabled in tableIndexConfig, or compare with the column's default value"
        yield place.problem(text, fix)
