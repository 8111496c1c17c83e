"""The `dagster:` block: how Dagster shows one table and what watches it there.

Dagster's rules for names, owners and tags are checked here, so that a problem has a line; Dagster itself
would refuse the whole code location. The rules are copied, because loading Dagster takes seconds that
`tables validate` need not spend. A test compares the copies with Dagster's rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from pinot_assets.core.json_object import JsonObject, JsonValue
from pinot_assets.table_spec.yaml.document import DocumentNode, Problem
from pinot_assets.table_spec.yaml.values import (
    Count,
    Flag,
    Positive,
    no_plain_value,
    reason_of,
    text_of,
    yaml_keys,
)

_SHORTEST_FRESHNESS_HOURS: Final = 1 / 60
"""Dagster refuses a freshness window below a minute."""


def _group(value: object) -> object:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_]+(?:/[A-Za-z0-9_]+)*", value):
        raise ValueError("is not a group name: letters, digits and _, with / between levels")
    return value


def _owner(value: object) -> object:
    if not isinstance(value, str) or not re.fullmatch(
        r"team:.+|[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}", value
    ):
        raise ValueError("is not an owner: Dagster accepts team:<name> or an e-mail address")
    return value


def _tags(value: object) -> object:
    assert isinstance(value, dict)  # read_dagster_block refuses any other shape
    for key, text in value.items():
        if key.startswith("dagster/"):
            raise ValueError(f"{key} is one of Dagster's own tags")
        if not re.fullmatch(r"(?:[A-Za-z0-9_.-]{1,63}/)?[A-Za-z0-9_.-]{1,63}", key):
            raise ValueError(
                f"{key} is not a tag: letters, digits, _, - and ., up to 63, with one / after a namespace"
            )
        if not re.fullmatch(r"[A-Za-z0-9_.-]{0,63}", text):
            raise ValueError(
                f"the value of {key} is not valid for a tag: letters, digits, _, - and ., up to 63 of them"
            )
    return value


def _hours(value: object) -> object:
    text = str(value).strip()
    if not re.fullmatch(r"[0-9]{1,6}(?:\.[0-9]{1,6})?", text):
        raise ValueError("is not a number of hours; write 26 or 0.5")
    if float(text) < _SHORTEST_FRESHNESS_HOURS:
        raise ValueError("is less than a minute")
    return float(text)


_TEXT_JSON: Final = {"type": "string", "minLength": 1}


class DagsterSettings(BaseModel):
    """How Dagster shows and watches one table. None of it shapes segments."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    group: Annotated[str, BeforeValidator(_group), WithJsonSchema(_TEXT_JSON)] | None = None
    """Asset group; if left out, the table's own name."""
    owners: tuple[Annotated[str, BeforeValidator(_owner), WithJsonSchema(_TEXT_JSON)], ...] = ()
    """Who is responsible: team:<name> or e-mail addresses."""
    tags: Annotated[
        Mapping[str, str],
        BeforeValidator(_tags),
        WithJsonSchema({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}),
    ] = Field(default_factory=dict)
    """Tags of the table's assets."""
    description: Annotated[str, BeforeValidator(text_of), WithJsonSchema(_TEXT_JSON)] | None = None
    """What the table is, in Markdown."""
    automation: Flag = False
    """Whether automation conditions start runs, beside or instead of the files sensor."""
    freshness_hours: Annotated[
        Annotated[
            float, BeforeValidator(_hours), WithJsonSchema({"type": ["number", "string"], "minimum": 0})
        ]
        | None,
        Field(alias="freshnessHours"),
    ] = None
    """How old the last switch may be before Dagster shows the table as stale."""
    health_interval_sec: Annotated[Positive, Field(alias="healthIntervalSec")] = 600
    """How often the health checks run."""
    repair_limit: Annotated[Count, Field(alias="repairLimit")] = 0
    """How many repairs of a REALTIME table the sensor may start at a time; 0: people start them."""


_NOT_OF: Final = {
    "OFFLINE": {"repairLimit": "is only for REALTIME tables: an OFFLINE table has no repair"},
    "REALTIME": {
        "automation": "is only for OFFLINE tables: only the health of a REALTIME table starts its runs",
        "freshnessHours": "is only for OFFLINE tables: how far a REALTIME table lags is one of its checks",
    },
}
"""Keys that have no meaning for tables of one type, and why."""
_KEYS: Final = yaml_keys(DagsterSettings)


def read_dagster_block(block: DocumentNode) -> tuple[DagsterSettings, list[Problem]]:
    """Read the `dagster:` block.

    :returns: its settings and its problems; with problems, some or all settings have their defaults.
    """
    if not isinstance(block.value, dict):
        return DagsterSettings(), [block.problem("is not a mapping", f"the keys are {', '.join(_KEYS)}")]
    values: JsonObject = {}
    problems: list[Problem] = []
    for key in block.value:
        place = block.at(key)
        wrong = (
            list(_misshapen(place, key)) if key in _KEYS else [place.unknown_key("the dagster block", _KEYS)]
        )
        problems += wrong
        if not wrong:
            values[key] = _texts(place)
    try:
        return DagsterSettings.model_validate(values), problems
    except ValidationError as invalid:
        for error in invalid.errors(include_input=False, include_url=False):
            problems.append(block.at(*error["loc"]).problem(reason_of(error)))
        return DagsterSettings(), problems


def stray_keys(block: DocumentNode, table_type: str) -> Iterator[Problem]:
    """Yield a problem for each key of the block that has no meaning for this type of table.

    :param table_type: `OFFLINE` or `REALTIME`.
    """
    for key, why in _NOT_OF[table_type].items():
        if key in block.mapping:
            yield block.at(key).problem(why, "remove it")


def _misshapen(place: DocumentNode, key: str) -> Iterator[Problem]:
    """Yield problems of a value: owners must be a list, tags a mapping, the rest single values."""
    if key == "owners" and not isinstance(place.value, list):
        yield place.problem("is not a list", "write a list: [team:data]")
    elif key == "tags" and not isinstance(place.value, dict):
        yield place.problem("is not a mapping", "write a mapping: {tier: gold}")
    else:
        others = place.items() if key == "owners" else [place]
        for part in [place.at(tag) for tag in place.mapping] if key == "tags" else others:
            if problem := no_plain_value(part):
                yield problem


def _texts(place: DocumentNode) -> JsonValue:
    """The value with every scalar as it is written, so that `tier: 0.10` stays `0.10`."""
    if isinstance(place.value, dict):
        return {key: place.at(key).text() for key in place.value}
    if isinstance(place.value, list):
        return [part.text() for part in place.items()]
    return place.text()
