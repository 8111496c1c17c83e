"""Dataclasses as Helix ZNRecords, so that Pinot's own ZooKeeper browser shows them.

Each field is a text in `simpleFields`, under its name in camel case. A structured value is JSON; None is an
empty text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from enum import StrEnum
from functools import cache
from typing import Final, TypeVar, cast, get_type_hints

from pinot_assets.core.json_object import JsonMapping, JsonObject, JsonValue
from pinot_assets.core.stored_format import (
    FORMAT,
    NEEDS,
    Marks,
    Stored,
    fields_since,
    marks,
    plain,
    stored_keys,
    structured,
)
from pinot_assets.core.untrusted import NODE_BYTES, read_json, typed

T = TypeVar("T", bound=Stored)

SIMPLE: Final = "simpleFields"
LISTS: Final = "listFields"
MAPS: Final = "mapFields"


def record_of(data: bytes) -> JsonObject:
    """Parse a ZNRecord.

    :raises ValueError: the bytes are not a ZNRecord, or there are more than `NODE_BYTES`.
    """
    if len(data) > NODE_BYTES:
        raise ValueError(f"its {len(data):,} bytes are more than is read of a node")
    record = read_json(data)
    if not isinstance(record, dict) or not isinstance(record.get(SIMPLE), dict):
        raise ValueError("not a ZNRecord")
    return record


def fields_of(data: bytes) -> dict[str, str]:
    """The simple fields of a ZNRecord.

    :raises ValueError: the node does not hold one.
    """
    texts: JsonObject = record_of(data)[SIMPLE]
    if not all(isinstance(text, str) for text in texts.values()):
        raise ValueError("not a ZNRecord: a simple field is not a text")
    return texts


def to_bytes(
    value: Stored,
    znode_id: str,
    *,
    dump: Callable[[JsonValue], str] = json.dumps,
    lists: Collection[str] = (),
) -> bytes:
    """The dataclass as a ZNRecord.

    :param dump: writes structured fields.
    :param lists: fields that are stored in `listFields`.
    """
    values = typed(plain(value), dict)
    names = {k: name for k, name in stored_keys(type(value)).items() if name in values and name not in lists}
    texts = {key: _text(values[name], dump) for key, name in names.items()}
    kept = value.kept
    record = {
        "id": znode_id,
        SIMPLE: texts | {key: str(mark) for key, mark in marks(value.format).items()} | kept.get(SIMPLE, {}),
        MAPS: {**kept.get(MAPS, {})},
        LISTS: {name: values[name] for name in lists} | kept.get(LISTS, {}),
    }
    return json.dumps(record, indent=2).encode()


def from_bytes(
    kind: type[T], data: bytes, what: str, *, lists: Collection[str] = (), later: Collection[str] = ()
) -> T:
    """Inverse of `to_bytes`.

    :param later: fields that a record of an early release may lack, in addition to those of later formats.
    :raises NeedsNewerRelease: it is of a format that this release does not know.
    :raises ValueError: the bytes are not such a record.
    """
    record = record_of(data)
    texts = record[SIMPLE]
    Marks.of(texts).require_known(what)  # before its fields: a newer format may rename them
    if not all(isinstance(text, str) for text in texts.values()):
        raise ValueError(f"not {what}: a simple field is not a text")
    found_lists, found_maps = _part(record, LISTS), _part(record, MAPS)
    names = {key: name for key, name in stored_keys(kind).items() if name not in lists}
    may_lack = {*later, *fields_since(kind)}
    if missing := {key for key, name in names.items() if key not in texts and name not in may_lack}:
        raise ValueError(f"not {what}: it lacks {min(missing)}")
    values = dict(_values(kind, {name: texts[key] for key, name in names.items() if key in texts}))
    values |= {name: found_lists[name] for name in lists if name in found_lists}
    kept = {
        SIMPLE: _without(texts, {*names, FORMAT, NEEDS}),
        LISTS: _without(found_lists, lists),
        MAPS: found_maps,
    }
    marked = {key: texts[key] for key in (FORMAT, NEEDS) if key in texts}
    unknown = {part: values for part, values in kept.items() if values}
    return structured(kind, values | marked | unknown, what)


def _values(kind: type[Stored], texts: Mapping[str, str]) -> Iterator[tuple[str, JsonValue]]:
    hints = _hints(cast(type, kind))  # for mypy, a class whose instances have no hash has none itself
    for name, text in texts.items():
        hint = hints[name]
        if hint is str or (isinstance(hint, type) and issubclass(hint, StrEnum)):
            yield name, text
        elif text:
            yield name, text if hint is int else read_json(text)


@cache
def _hints(kind: type) -> JsonObject:
    return get_type_hints(kind)  # slow: compiles every hint again, hence the cache


def _text(value: JsonValue, dump: Callable[[JsonValue], str]) -> str:
    if value is None:
        return ""
    return dump(value) if isinstance(value, dict | list) else str(value)


def _part(record: JsonMapping, name: str) -> JsonMapping:
    part = record.get(name) or {}
    if not isinstance(part, dict):
        raise ValueError("not a ZNRecord")
    return part


def _without(values: JsonMapping, names: Collection[str]) -> JsonObject:
    return {key: value for key, value in values.items() if key not in names}
