"""The checks of the `audit:` block that have bounds to be set, and what is asked of a server that is down."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from pinot_assets.pinot.table_config import period_ms
from pinot_assets.table_spec.yaml.values import any_case, one_of

_PERCENT: Final = re.compile(r"[-+]?[0-9]{1,9}(?:\.[0-9]{1,6})?\s*%")
_RELATIVE: Final = re.compile(r"now(?:\s*([-+])\s*(\S+))?", re.IGNORECASE)

Severity = Annotated[
    Literal["error", "warn"], BeforeValidator(one_of("error", "warn")), any_case("error", "warn")
]
"""error keeps the gate shut; warn is shown."""


def _percent(value: object) -> object:
    text = str(value).strip()
    if not _PERCENT.fullmatch(text):
        raise ValueError("is no percentage; write -20% or 50%")
    return float(text.rstrip("% "))


def _moment(value: object) -> object:
    text = " ".join(str(value).split())
    moment_ms(text, 0)
    return text


def moment_ms(text: str, now_ms: int) -> int:
    """A moment in epoch milliseconds.

    :param text: `2020-01-01`, `2020-01-01T12:00:00Z` (without a zone UTC), `now`, `now - 90d`, `now + 1d12h`.
    :raises ValueError: it is none.
    """
    if (found := _RELATIVE.fullmatch(text)) is not None:
        period = period_ms(found[2]) if found[2] else 0
        if period is not None:
            return now_ms + (-period if found[1] == "-" else period)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("is no moment; write 2020-01-01, 2020-01-01T12:00:00Z or now + 1d") from None
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
    """How far the number of rows may change by a switch."""

    check: Literal["row_change"]
    """What is looked at."""
    of: Annotated[
        Literal["table", "file"], BeforeValidator(one_of("table", "file")), any_case("table", "file")
    ] = "table"
    """table: all rows that queries see; file: those of each rewritten file."""
    min: Percent | None = None
    """Least change; -20% lets a fifth of the rows go."""
    max: Percent | None = None
    """Largest change; 50% lets half as many come."""
    severity: Severity = "error"
    """error keeps the gate shut; warn is shown."""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.min is None and self.max is None:
            raise ValueError("has no bound; write min: -20% or max: 50%")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"has a min of {self.min:g}%, above its max of {self.max:g}%")
        return self


class TimeRange(_Item):
    """Between which moments the values of the time column must lie."""

    check: Literal["time_range"]
    """What is looked at."""
    from_: Annotated[Moment | None, Field(alias="from")] = None
    """The earliest moment: 2020-01-01, or now - 90d."""
    to: Moment | None = None
    """The latest moment: now + 1d, or 2030-01-01."""
    severity: Severity = "error"
    """error keeps the gate shut; warn is shown."""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.from_ is None and self.to is None:
            raise ValueError("has no bound; write from: 2020-01-01 or to: now + 1d")
        if self.from_ and self.to and moment_ms(self.from_, 0) > moment_ms(self.to, 0):
            same_kind = self.from_.lower().startswith("now") == self.to.lower().startswith("now")
            if same_kind:
                raise ValueError(f"ends before it begins: from {self.from_} to {self.to}")
        return self


class EmptyOutputs(_Item):
    """Whether files without a row are taken."""

    check: Literal["empty_outputs"]
    """What is looked at."""
    severity: Severity = "error"
    """error keeps the gate shut; warn is shown, as it is without this check."""


LossName = Literal["emptied_files", "shrunk_files", "vanished_columns", "shrunk_table"]


class Loss(_Item):
    """What a switch may take away: these checks keep the gate shut unless the table spec lets them warn."""

    check: LossName
    """A rewritten file without rows; with under a tenth of them; without a column; a swap of the table."""
    severity: Severity = "error"
    """error keeps the gate shut, as it is without this check; warn allows it, and is shown."""


class CutCheck(_Item):
    """Whether values may be cut that Pinot cannot hold as they are."""

    check: Literal["cut_at_nul", "cut_at_max_length"]
    """Texts that hold a NUL lose what follows it; longer values than maxLength are cut or replaced."""
    severity: Severity = "error"
    """error keeps the gate shut, as a NUL does without this check; warn is shown, as a length is."""


class Replicas(_Item):
    """Of how many replicas must be known that they are as built."""

    replicas: Annotated[Literal["all", "one"], BeforeValidator(one_of("all", "one")), any_case("all", "one")]
    """all, or one of each segment: the others are told, where a server is down."""


CheckBound = RowChange | TimeRange | EmptyOutputs | Loss | CutCheck
CHECKS: Final[dict[str, type[CheckBound]]] = {
    "row_change": RowChange,
    "time_range": TimeRange,
    "empty_outputs": EmptyOutputs,
    **dict.fromkeys(get_args(LossName), Loss),
    "cut_at_nul": CutCheck,
    "cut_at_max_length": CutCheck,
}
"""Those with something to be set, by name; all others always hold, or the gate is shut."""
CHECK_KINDS: Final = tuple(dict.fromkeys(CHECKS.values()))
"""Their classes, each once."""
