"""Reading what others may have written: JSON, stored objects, nodes, tars.

Whatever is wrong with such a text, the outcome is one error that names it; a parser in `reading` need not
think of more than the right text.
"""

from __future__ import annotations

import json
import re
import tarfile
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Final, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from pinot_assets.core.json_object import JsonObject, JsonValue
from pinot_assets.core.limits import DEEPEST, VALUES_VARIABLE, most_values
from pinot_assets.errors import NeedsNewerRelease, PinotAssetsError

_MOST_HEADER: Final = 1 << 16
"""Bytes of a name that does not fit into a plain header; Python reads it whole."""


class BoundedHeader(tarfile.TarInfo):
    """One whose long names are as long as names are."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """As `tarfile` calls it.

        :raises tarfile.ReadError: a long name is longer than names are.
        """
        found = super().frombuf(buf, encoding, errors)
        if not (found.isreg() or found.isdir()) and found.size > _MOST_HEADER:
            raise tarfile.ReadError(f"a header of {found.size} bytes")
        return found


T = TypeVar("T")
ValueCheck = Callable[[Any], bool]

_LONG: Final = 2**63
_SHOWN: Final = 300
_DIGITS: Final = re.compile("[0-9]{1,19}")


def read_json(text: str | bytes) -> JsonValue:
    """The value of a JSON text.

    :raises ValueError: it is none, it has more than `limits.most_values` values, or it is nested more than
        `DEEPEST` levels deep.
    """
    most = most_values()
    signs = map(text.count, ",[{") if isinstance(text, str) else map(text.count, b",[{")
    if sum(signs) > most:
        raise ValueError(f"it has more than {most:,} values; if it should, set {VALUES_VARIABLE} to more")
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    # Level by level, without recursion; texts and numbers are not walked.
    level = [value]
    for _ in range(DEEPEST):
        level = [
            child
            for one in level
            if isinstance(one, dict | list)
            for child in (one.values() if isinstance(one, dict) else one)
            if isinstance(child, dict | list)
        ]
        if not level:
            return value
    raise ValueError("it is nested too deeply")


def fields_of_json(text: str | bytes) -> JsonObject:
    """The object of a JSON text.

    :raises ValueError: it is none.
    """
    value = read_json(text)
    if not isinstance(value, dict):
        raise ValueError(f"there is a {type(value).__name__} in the place of an object")
    return value


def whole_number(text: str) -> int | None:
    """The number that a text of digits is; None of any other one.

    Not all that `str.isdigit` takes are digits to `int`, which refuses more than 4,300 of them as well.
    """
    return int(text) if _DIGITS.fullmatch(text) else None


def listed(value: JsonValue) -> tuple[JsonValue, ...]:
    """A JSON list as a tuple. A text, which is a sequence too, is none.

    :raises ValueError: it is no list.
    """
    if not isinstance(value, list):
        raise ValueError(f"there is a {type(value).__name__} in the place of a list")
    return tuple(value)


@contextmanager
def reading(
    what: str, error: type[PinotAssetsError], *, hint: str | None = None, why: str = ""
) -> Iterator[None]:
    """Around all that parses one object: whatever goes wrong in there becomes `error`.

    Nothing that reads from a store, ZooKeeper or Pinot belongs in there: their trouble is not the object's.
    Memory that runs out is not either, and state of a newer release is no damage.

    :param what: the object, with its address.
    :param hint: what to do.
    :param why: what it should be; the reason stands behind it.
    """
    try:
        yield
    except (MemoryError, NeedsNewerRelease):
        raise
    except Exception as cause:
        reason = f"{why}: {_reason(cause)}" if why else _reason(cause)
        raise error(f"{what} cannot be read", why=reason, hint=hint) from cause


def _reason(cause: Exception) -> str:
    if isinstance(cause, PinotAssetsError):
        return cause.reason
    if isinstance(cause, RecursionError):
        return "it is nested too deeply"
    text = " ".join(str(cause).split())[:_SHOWN]
    if isinstance(cause, KeyError):
        return f"it lacks {text}"
    return text or type(cause).__name__


def fitting(value: T) -> T:
    """A dataclass or named tuple itself, if each of its values is of the type that its class says.

    Integers have 64 bits, as Java's and Parquet's. Made of JSON, a field holds whatever stood
    there.

    :raises ValueError: one is not; names its field.
    """
    kind: type = type(value)
    for name, check in _checks(kind):
        if not check(getattr(value, name)):
            raise ValueError(f"{name} is not what it should be")
    return value


@cache
def _checks(kind: type) -> tuple[tuple[str, ValueCheck], ...]:
    hints = get_type_hints(kind)
    names = [f.name for f in fields(kind)] if is_dataclass(kind) else list(getattr(kind, "_fields", ()))
    return tuple((name, _check(hints[name])) for name in names)


@cache
def _check(hint: Any) -> ValueCheck:
    """Whether a value is of a type, for the types that stored values have."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any or hint is object:
        return lambda _: True
    if hint is int:
        return _is_int
    if hint is float:
        return lambda value: _is_int(value) or isinstance(value, float)
    if origin in (Union, types.UnionType):
        ways = tuple(map(_check, args))
        return lambda value: any(way(value) for way in ways)
    if origin is tuple and args[1:] == (Ellipsis,):
        item = _check(args[0])
        return lambda value: isinstance(value, tuple) and all(map(item, value))
    if origin is tuple:
        items = tuple(map(_check, args))
        return lambda value: (
            isinstance(value, tuple)
            and len(value) == len(items)
            and all(check(one) for check, one in zip(items, value, strict=True))
        )
    if origin in (Sequence, list, frozenset):
        (item,) = map(_check, args)
        return lambda value: (
            isinstance(value, Sequence | frozenset) and not isinstance(value, str) and all(map(item, value))
        )
    if origin in (Mapping, dict):
        key, item = map(_check, args)
        return lambda value: (
            isinstance(value, Mapping) and all(map(key, value)) and all(map(item, value.values()))
        )
    if hint is None or hint is types.NoneType:
        return lambda value: value is None
    if issubclass(hint, Enum) or not (is_dataclass(hint) or hasattr(hint, "_fields")):
        return lambda value: isinstance(value, hint)
    return lambda value: (
        isinstance(value, hint) and all(check(getattr(value, name)) for name, check in _checks(hint))
    )


def _is_int(value: object) -> bool:
    return type(value) is int and -_LONG <= value < _LONG
