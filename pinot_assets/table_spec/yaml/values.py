"""Read single values of a table spec. As in Pinot's task configs, they may be texts (`"true"`, `"3"`).

Each type has its own part of the editors' JSON Schema. A wrong value raises a ValueError whose text continues
after the key's name: "is not a size".

A spec keeps `${NAME}` as it is written. `pinot_assets.source.resolve_env` looks the value up where it is
used, and nothing stores it, so no log, plan or fingerprint can show a secret.

A literal secret in a spec is refused with the line to write instead; no message repeats the secret.
"""

from __future__ import annotations

import os
import re
import zoneinfo
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, ErrorDetails
from pydantic_core.core_schema import no_info_before_validator_function

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import SourceError
from pinot_assets.expressions.regex_cost import check_pattern
from pinot_assets.expressions.syntax import ExpressionRefused
from pinot_assets.pinot.table_config import period_ms
from pinot_assets.source import compile_pattern
from pinot_assets.source.settings import is_reference
from pinot_assets.source.uris import parse_root
from pinot_assets.table_spec.yaml.document import DocumentNode, KeyPath, Problem, nearest, nearest_key, walk
from pinot_assets.table_spec.yaml.quartz import normalise_quartz

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}")

_SECRET_KEY: Final = re.compile(
    r"secret|passw|passphrase|credential(?!s?[._-]?source$)|(access|account|api|gcp|private|shared|signing|encryption)[._-]?key"
    r"|connection[._-]?string|auth[._-]?header"
    r"|(^|[._-]|auth|authentication|sas|session|bearer|access|api|security|refresh|id)token$"
    r"|jaas[._-]?config|auth[._-]?user[._-]?info",  # a stream's: both hold a password beside other text
    re.IGNORECASE,
)
_SECRET_VALUE: Final = re.compile(
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|-----BEGIN [A-Z ]*PRIVATE KEY|AccountKey=|[?&](?:sig|X-Amz-Signature)="
    r"|^[a-z][a-z0-9+.-]*://[^/?#@\s]*:[^?#@\s]*@",
    re.IGNORECASE,
)
_VARIABLE_FOR: Final = {
    "sasl.jaas.config": "KAFKA_JAAS_CONFIG",
    "accesskey": "AWS_ACCESS_KEY_ID",
    "secretkey": "AWS_SECRET_ACCESS_KEY",
    "sessiontoken": "AWS_SESSION_TOKEN",
}


def has_reference(text: str) -> bool:
    """Whether any `${NAME}` or `${NAME:-default}` occurs in the text."""
    return _REFERENCE.search(text) is not None


def malformed_reference(text: str) -> bool:
    """Whether the text has a `${` that does not begin a whole reference."""
    return "${" in _REFERENCE.sub("", text)


def missing_variables(text: str) -> list[str]:
    """Names of the variables that the text refers to without a default and that are not set here."""
    return [name for name, default in _REFERENCE.findall(text) if not default and name not in os.environ]


def is_secret_key(key: str) -> bool:
    """Whether a value at this key must stay out of files (`input.fs.prop.secretKey`, `authToken`, …)."""
    return _SECRET_KEY.search(key) is not None


def is_secret_value(text: str) -> bool:
    """Whether the text itself looks like a credential, whatever its key."""
    return _SECRET_VALUE.search(text) is not None


def variable_for(key: str) -> str:
    """The environment variable to suggest for a secret at `key`: one that table specs may read by default."""
    last = key.rsplit(".", 1)[-1]
    known = _VARIABLE_FOR.get(key.lower()) or _VARIABLE_FOR.get(last.lower())
    return "TABLE_" + (known or re.sub(r"\W", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last)).upper())


def no_plain_value(place: DocumentNode) -> Problem | None:
    """Return a problem if a place holds no single value, or refers to the environment."""
    if problem := place.no_single_value():
        return problem
    if has_reference(place.text() or ""):
        return place.problem("refers to the environment, which is not read here", "write the value")
    return None


def secret_problems(part: DocumentNode) -> tuple[list[Problem], set[KeyPath]]:
    """Find every literal secret at or below a place.

    :returns: the problems, and the paths whose values must not be read any further.
    """
    problems, paths = [], set()
    for path, value in walk(part.value, part.path):
        key, place = nearest_key(path), DocumentNode(part.document, path)
        text = place.text()
        if not text or isinstance(value, bool) or is_reference(text):
            continue
        if is_secret_key(key) or is_secret_value(text):
            what = "a literal secret" if is_secret_key(key) else "what looks like a credential"
            fix = f"write {key}: ${{{variable_for(key)}}}" if key else "keep it in the environment"
            problems.append(place.problem(f"holds {what}", fix))
            paths.add(path)
    return problems, paths


def normalise_location(text: str, base: Path) -> str:
    """Return the one spelling of a directory: `file:///…` or `s3://bucket/prefix`, without a final slash.

    :param text: a URI, or a path on the local disk, relative to `base`.
    :raises SourceError: the text is no usable directory.
    """
    if text and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text):
        # Not resolve(): a symbolic link that is switched later must not change the identity of the files.
        text = os.path.abspath(base / os.path.expanduser(text))
    return parse_root(text).uri


def is_within(inner: str, outer: str) -> bool:
    """Whether one normalised directory is the other or lies below it."""
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


INT_MAX: Final = 2_147_483_647
OLDEST_SERVER: Final = (0, 11)
"""The oldest Pinot that the project is tested against."""
AUTO: Final = "auto"
"""As `writeFor`: the release of the table's oldest server."""
MOST_BUCKETS: Final = 100_000
"""Far above what Dagster's pages can show; the limit stops typing mistakes."""


def _flag(value: object) -> object:
    # Java's Boolean.parseBoolean reads "yes" as false, so everything but the two words is refused.
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


def yaml_keys(model: type[BaseModel]) -> tuple[str, ...]:
    """The keys of a block, as they are written in the YAML."""
    return tuple(field.alias or name for name, field in model.model_fields.items())


_LIMITS: Final = {
    "greater_than": "is not above 0",
    "greater_than_equal": "is negative",
    "less_than_equal": f"is above {INT_MAX}",
    "missing": "is missing",
}


def reason_of(error: ErrorDetails) -> str:
    """Return the reason of a problem: what Pydantic found wrong with a value."""
    return _LIMITS.get(error["type"], error["msg"].removeprefix("Value error, "))


def one_of(*words: str) -> Callable[[object], object]:
    """Return a reader that accepts these words in any case and returns them as they are spelled here."""
    by_lower = {word.lower(): word for word in words}

    def choose(value: object) -> object:
        chosen = by_lower.get(value.strip().lower()) if isinstance(value, str) else None
        if chosen is None:
            near = nearest(value, words) if isinstance(value, str) else None
            meant = f" (did you mean {near}?)" if near else ""
            raise ValueError(f"is not one of {', '.join(words)}{meant}")
        return chosen

    return choose


class AnyCase:
    """Reads the words of a `Literal` in any case; editors accept them in lower and in upper case, too."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_before_validator_function(one_of(*get_args(source)), handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonObject:
        words = handler(schema)["enum"]
        spellings = (spelling for word in words for spelling in (word, word.lower(), word.upper()))
        return {"enum": list(dict.fromkeys(spellings))}


def text_of(value: object) -> str:
    """Return a text without the blanks around it; an empty one is refused."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("is empty")
    return value.strip()


def _referring(value: object) -> object:
    if malformed_reference(text := text_of(value)):
        raise ValueError("has a malformed reference; ${NAME} and ${NAME:-default} are understood")
    return text


def _pattern(value: object) -> object:
    text = text_of(value)
    if not re.match(r"(?:glob|regex):.", text, re.IGNORECASE):
        raise ValueError(f"lacks its syntax; write glob:{text.removeprefix('glob:') or '**/*'} or regex:…")
    try:
        compile_pattern(text)
    except SourceError as error:
        raise ValueError(f"is not a path pattern: {error.why or error.what}") from None
    return text


def _size(value: object) -> object:
    text = str(value).strip().lower()
    if not re.fullmatch(r"[0-9]{1,15}(?:\.[0-9]{1,6})?\s*(?:[kmgt]b?|b)?", text):
        raise ValueError("is not a size; write 500m, 1g or a number of bytes")
    return text


def size_bytes(text: str) -> int:
    """A `Size` in bytes; k, m, g and t are powers of 1024, as in Pinot's `DataSizeUtils`."""
    match = re.fullmatch(r"([0-9.]+)\s*([kmgt]?)b?", text)
    assert match is not None
    return int(float(match[1]) * 1024 ** (" kmgt".index(match[2] or " ")))


def _period(value: object) -> object:
    text = str(value).strip().lower()
    if not period_ms(text):
        raise ValueError("is not a period above zero; write 6h, 30m or 1d12h")
    return text


def _bad_row_limit(value: object) -> object:
    from pinot_assets.ingest.contract.accepted_rows import (
        BadRowAllowance,  # imported here, because it loads Arrow
    )

    return str(BadRowAllowance.parse(str(value)))


_VERSION: Final = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}(?:\.[0-9]{1,4})?")


def _server(value: object) -> object:
    text = str(value).strip()
    if not _VERSION.fullmatch(text):
        raise ValueError("is not a version; write 0.11 or 1.5.1")
    if tuple(int(step) for step in text.split(".")[:2]) < OLDEST_SERVER:
        raise ValueError(f"is older than the oldest supported Pinot, {'.'.join(map(str, OLDEST_SERVER))}")
    return text


def _write_for(value: object) -> object:
    text = str(value).strip()
    if text.lower() == AUTO:
        return AUTO
    if not _VERSION.fullmatch(text):
        raise ValueError("is neither auto nor a version; write auto, 0.11 or 1.5.1")
    return _server(text)


def _quartz(value: object) -> object:
    return normalise_quartz(text_of(value))


def _timezone(value: object) -> object:
    text = text_of(value)
    if text not in zoneinfo.available_timezones():
        raise ValueError("is not a time zone; write a name such as UTC or Europe/Berlin")
    return text


def _file_name(value: object) -> object:
    text = text_of(value)
    if "/" in text or "\\" in text or text in (".", ".."):
        raise ValueError("is not a plain file name; write one without a directory, such as _SUCCESS")
    return text


def _partition_group(value: object) -> object:
    text = text_of(value)
    kind, _, rest = text.partition(":")
    if kind == "hash" and re.fullmatch(r"[0-9]{1,6}", rest) and 1 <= int(rest) <= MOST_BUCKETS:
        return f"hash:{int(rest)}"
    if kind == "hash":
        raise ValueError(f"is not hash:<buckets> with 1 to {MOST_BUCKETS} of them")
    if kind == "regex" and rest:
        return _with_one_group(text, rest)
    if text != "directory":
        raise ValueError("is not one of directory, regex:<expression with one group>, hash:<buckets>")
    return text


_MOST_LOOSE: Final = 2
"""As `regex_cost.MOST_LOOSE`, for an expression that Python searches from every place of every path."""


def _with_one_group(text: str, expression: str) -> str:
    try:
        groups = re.compile(expression).groups
        check_pattern(expression, _MOST_LOOSE)
    except ExpressionRefused as refused:
        raise ValueError(f"is an expression that {refused}") from None
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is not a regular expression: {error}") from None
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
Text = Annotated[str, BeforeValidator(text_of), WithJsonSchema({"type": ["string", "boolean"]})]
Server = Annotated[str, BeforeValidator(_server), WithJsonSchema({"type": ["string", "number"]})]
WriteFor = Annotated[str, BeforeValidator(_write_for), WithJsonSchema({"type": ["string", "number"]})]
