"""How single values of a table spec are read: texts as in Pinot's task configs (`"true"`, `"3"`) count, too.

Each type carries its own part of the editors' JSON Schema. What is wrong is a ValueError whose text goes on
from the key's name: "is not a size".
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable, Mapping
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, WithJsonSchema

from pinot_assets.errors import SourceError
from pinot_assets.expressions.refused import ExpressionRefused
from pinot_assets.expressions.regular import check_pattern
from pinot_assets.pinot.table_config import period_ms
from pinot_assets.source import compile_pattern
from pinot_assets.table_spec.yaml.environment import malformed_reference
from pinot_assets.table_spec.yaml.quartz import normalise_quartz

INT_MAX: Final = 2_147_483_647
OLDEST_SERVER: Final = (0, 11)
"""The oldest Pinot that the project is tested against."""
MOST_BUCKETS: Final = 100_000
"""Far above what Dagster's pages can show; a slip of the finger stops here."""


def _flag(value: object) -> object:
    # Java's Boolean.parseBoolean takes "yes" for false, so anything but the two words is refused.
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if isinstance(value, bool):
        return value
    raise ValueError("is neither true nor false")


def _whole(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"[-+]?[0-9]{1,19}", value.strip()):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError("is not a whole number")


def one_of(*words: str) -> Callable[[object], object]:
    """A reader that takes these words in any case and gives them as they are spelled here."""
    by_lower = {word.lower(): word for word in words}

    def choose(value: object) -> object:
        chosen = by_lower.get(value.strip().lower()) if isinstance(value, str) else None
        if chosen is None:
            raise ValueError(f"is none of {', '.join(words)}")
        return chosen

    return choose


def any_case(*words: str) -> WithJsonSchema:
    """The editors' schema of `one_of`: these words, and all of them in lower or upper case."""
    spellings = {spelling: None for word in words for spelling in (word, word.lower(), word.upper())}
    return WithJsonSchema({"enum": list(spellings)})


def _text(value: object) -> object:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("is empty")
    return value.strip()


def _referring(value: object) -> object:
    if malformed_reference(str(_text(value))):
        raise ValueError("has a malformed reference; ${NAME} and ${NAME:-default} are understood")
    return _text(value)


def _pattern(value: object) -> object:
    text = str(_text(value))
    if not re.match(r"(?:glob|regex):.", text, re.IGNORECASE):
        raise ValueError(f"lacks its syntax; write glob:{text.removeprefix('glob:') or '**/*'} or regex:…")
    try:
        compile_pattern(text)
    except SourceError as error:
        raise ValueError(f"is no path pattern: {error.why or error.what}") from None
    return text


def _size(value: object) -> object:
    text = str(value).strip().lower()
    if not re.fullmatch(r"[0-9]{1,15}(?:\.[0-9]{1,6})?\s*(?:[kmgt]b?|b)?", text):
        raise ValueError("is not a size; write 500m, 1g or a number of bytes")
    return text


def size_bytes(text: str) -> int:
    """A `Size` in bytes; k, m, g and t are powers of 1024, as in Pinot's `DataSizeUtils`."""
    found = re.fullmatch(r"([0-9.]+)\s*([kmgt]?)b?", text)
    assert found is not None
    return int(float(found[1]) * 1024 ** (" kmgt".index(found[2] or " ")))


def _period(value: object) -> object:
    text = str(value).strip().lower()
    if not period_ms(text):
        raise ValueError("is not a period above zero; write 6h, 30m or 1d12h")
    return text


def _bad_row_limit(value: object) -> object:
    from pinot_assets.ingest.contract.accepted_rows import (
        BadRowAllowance,  # here, since it brings Arrow along
    )

    return str(BadRowAllowance.parse(str(value)))


def _server(value: object) -> object:
    text = str(value).strip()
    if not re.fullmatch(r"[0-9]{1,4}\.[0-9]{1,4}(?:\.[0-9]{1,4})?", text):
        raise ValueError("is not a version; write 0.11 or 1.5.1")
    if tuple(int(step) for step in text.split(".")[:2]) < OLDEST_SERVER:
        raise ValueError(f"is older than the oldest supported Pinot, {'.'.join(map(str, OLDEST_SERVER))}")
    return text


def _quartz(value: object) -> object:
    return normalise_quartz(str(_text(value)))


def _timezone(value: object) -> object:
    text = str(_text(value))
    if text not in zoneinfo.available_timezones():
        raise ValueError("is no time zone; write a name as UTC or Europe/Berlin")
    return text


def _file_name(value: object) -> object:
    text = str(_text(value))
    if "/" in text or "\\" in text or text in (".", ".."):
        raise ValueError("is not a plain file name; write one without a directory, as _SUCCESS")
    return text


def _partition_group(value: object) -> object:
    text = str(_text(value))
    kind, _, rest = text.partition(":")
    if kind == "hash" and re.fullmatch(r"[0-9]{1,6}", rest) and 1 <= int(rest) <= MOST_BUCKETS:
        return f"hash:{int(rest)}"
    if kind == "hash":
        raise ValueError(f"is not hash:<buckets> with 1 to {MOST_BUCKETS} of them")
    if kind == "regex" and rest:
        return _with_one_group(text, rest)
    if text != "directory":
        raise ValueError("is none of directory, regex:<expression with one group>, hash:<buckets>")
    return text


_MOST_LOOSE: Final = 2
"""As `regular.MOST_LOOSE`, for an expression that Python looks for at every place of every path."""


def _with_one_group(text: str, expression: str) -> str:
    try:
        groups = re.compile(expression).groups
        check_pattern(expression, _MOST_LOOSE)
    except ExpressionRefused as refused:
        raise ValueError(f"is an expression that {refused}") from None
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is no regular expression: {error}") from None
    if groups != 1:
        raise ValueError(f"has {groups} groups; exactly one names the partition, others are written (?:…)")
    return text


_WHOLE_JSON: Final = {"type": ["integer", "string"], "pattern": "^[0-9]+$", "minimum": 0}
Flag = Annotated[
    bool, BeforeValidator(_flag), WithJsonSchema({"enum": [True, False, "true", "false", "TRUE", "FALSE"]})
]
Count = Annotated[int, BeforeValidator(_whole), Field(ge=0, le=INT_MAX), WithJsonSchema(_WHOLE_JSON)]
Positive = Annotated[int, BeforeValidator(_whole), Field(gt=0, le=INT_MAX), WithJsonSchema(_WHOLE_JSON)]
Location = Annotated[str, BeforeValidator(_referring), WithJsonSchema({"type": "string", "minLength": 1})]
Pattern = Annotated[
    str, BeforeValidator(_pattern), WithJsonSchema({"type": "string", "pattern": "^(glob|regex):."})
]
Props = dict[str, Annotated[str, BeforeValidator(_referring)]]
Schedule = Annotated[str, BeforeValidator(_quartz), WithJsonSchema({"type": "string", "minLength": 11})]
Timezone = Annotated[str, BeforeValidator(_timezone), WithJsonSchema({"type": "string", "minLength": 1})]
FileName = Annotated[
    str, BeforeValidator(_file_name), WithJsonSchema({"type": "string", "pattern": "^[^/]+$"})
]
PartitionGroup = Annotated[
    str,
    BeforeValidator(_partition_group),
    WithJsonSchema({"type": "string", "pattern": "^(directory$|regex:.|hash:[0-9]+$)"}),
]
BadRowLimit = Annotated[
    str,
    BeforeValidator(_bad_row_limit),
    WithJsonSchema({"type": ["string", "integer"], "pattern": "^[0-9.]+ *%?$"}),
]
Size = Annotated[str, BeforeValidator(_size), WithJsonSchema({"type": ["string", "integer"]})]
Period = Annotated[
    str, BeforeValidator(_period), WithJsonSchema({"type": "string", "pattern": "^[0-9dhms]+$"})
]
Text = Annotated[str, BeforeValidator(_text), WithJsonSchema({"type": ["string", "boolean"]})]
Server = Annotated[str, BeforeValidator(_server), WithJsonSchema({"type": ["string", "number"]})]

KINDS: Final[Mapping[Callable[[object], object], str]] = {
    _flag: "`true` or `false`",
    _whole: "whole number",
    _referring: "text",
    _pattern: "`glob:…` or `regex:…`",
    _size: "size: `500m`, `1g`",
    _period: "period: `6h`, `1d12h`",
    _bad_row_limit: "number, or `…%`",
    _server: "version",
    _quartz: "Quartz cron",
    _timezone: "IANA time zone",
    _file_name: "file name",
    _partition_group: "`directory`, `regex:…`, `hash:…`",
}
"""What a reader takes, in the words of the configuration reference."""
