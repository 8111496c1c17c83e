"""The `audit:` block: what queries must answer of staged segments before anybody else can ask them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError, WithJsonSchema

from pinot_assets.spec.document import Part
from pinot_assets.spec.environment import has_reference
from pinot_assets.spec.expectation import Expectation, read_expectation
from pinot_assets.spec.pinot_json import OFFLINE_SUFFIX
from pinot_assets.spec.problem import Problem, did_you_mean
from pinot_assets.spec.question import Question
from pinot_assets.spec.values import any_case, one_of


def _read(sql: str) -> Question:
    from pinot_assets.spec.assertion_sql import read_question  # here: few commands need its parser of SQL

    return read_question(sql)


def _sql(value: object) -> object:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("is empty")
    _read(value)
    return value.strip()


def _expect(value: object) -> object:
    read_expectation(str(value))
    return str(value).strip()


class Assertion(BaseModel):
    """What one query has to answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sql: Annotated[str, BeforeValidator(_sql), WithJsonSchema({"type": "string", "minLength": 1})]
    """SELECT of COUNT, SUM, MIN and MAX from this table, with WHERE and GROUP BY."""
    expect: Annotated[
        str, BeforeValidator(_expect), WithJsonSchema({"type": ["string", "number"], "minLength": 1})
    ]
    """[staged | after] [= | != | < | <= | > | >=] number, or [factor *] live; for each value and group."""
    severity: Annotated[
        Literal["error", "warn"], BeforeValidator(one_of("error", "warn")), any_case("error", "warn")
    ] = "error"
    """error keeps the gate shut; warn is shown."""

    @cached_property
    def question(self) -> Question:
        """The SQL, read."""
        return _read(self.sql)

    @cached_property
    def expectation(self) -> Expectation:
        """The comparison, read."""
        return read_expectation(self.expect)


_KEYS: Final = tuple(Assertion.model_fields)
_Assertions: Final = TypeAdapter(tuple[Assertion, ...])


def read_audit_block(
    block: Part, table: str, columns: Collection[str], nullable: Collection[str]
) -> tuple[tuple[Assertion, ...], list[Problem]]:
    """Read the `audit:` block.

    :param table: raw name of the table that assertions may ask.
    :param columns: its columns; a server answers 0 for a filter on one that is not there.
    :param nullable: those whose segments say where nulls are; of another one, a server finds none.
    :returns: its assertions (none, where there are problems) and its problems.
    """
    if not isinstance(block.value, list):
        return (), [block.problem("is no list", "write - sql: … and expect: … below it")]
    problems = [found for number in range(len(block.value)) for found in _strange(block.at(number))]
    if problems:
        return (), problems
    try:
        assertions = _Assertions.validate_python(block.value)
    except ValidationError as invalid:
        for error in invalid.errors(include_input=False, include_url=False):
            text = error["msg"].removeprefix("Value error, ").replace("Field required", "is missing")
            problems.append(block.at(*error["loc"]).problem(text))
        return (), problems
    for number, assertion in enumerate(assertions):
        place, question = block.at(number, "sql"), assertion.question
        if question.table not in (table, table + OFFLINE_SUFFIX):
            problems.append(place.problem(f"reads {question.table}", f"read {table}"))
        for column in sorted(question.columns.difference(columns)):
            fix = did_you_mean(column, columns) or "name a column of the schema"
            problems.append(place.problem(f"names {column}, which the table does not have", fix))
        for column in sorted(question.null_columns.intersection(columns).difference(nullable)):
            text = f"asks for nulls of {column}, whose segments do not tell them: none is ever found"
            fix = "set nullHandlingEnabled in tableIndexConfig, or ask for the column's default value"
            problems.append(place.problem(text, fix))
    return assertions, problems


def _strange(place: Part) -> Iterator[Problem]:
    if not isinstance(place.value, dict):
        yield place.problem("is no mapping", f"the keys are {', '.join(_KEYS)}")
        return
    for key, value in place.value.items():
        inner = place.at(key)
        if key not in _KEYS:
            fix = did_you_mean(key, _KEYS) or f"the keys are {', '.join(_KEYS)}"
            yield inner.problem("is not a key of an assertion", fix)
        elif isinstance(value, str) and has_reference(value):
            yield inner.problem("refers to the environment, which is not read here", "write the value")
