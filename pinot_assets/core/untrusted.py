"""Reads texts that others may have written: JSON, stored objects, nodes, tars.

Whatever is wrong with such a text, the result is one error that names it. So a parser in a `reading` block
only needs to handle correct texts.

A service that answers, or the author of an object, may be wrong or hostile: a megabyte of gzip unpacks to a
gigabyte, and a few kilobytes of brackets exhaust Python's stack. Each limit is far above the needs of an
installation of the size in docs/scale.md. Variables of the environment can raise the limits that a larger
installation could reach. Source files have limits of their own.
"""

from __future__ import annotations

import json
import os
import re
import tarfile
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Final, Self, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pinot_assets.core.json_object import JsonObject, JsonValue
from pinot_assets.errors import NeedsNewerRelease, PinotAssetsError

MIB: Final = 1024 * 1024
HIGHEST_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ByteLimit:
    """A limit in bytes.

    :ivar what: what it limits, as an error names it.
    :ivar variable: sets another limit, in MiB; read at each use, so that Spark's executors use it, too.
    :ivar mib: the limit without that variable.
    """

    what: str
    variable: str
    mib: int

    @property
    def bytes(self) -> int:
        """Return the limit in bytes.

        :raises PinotAssetsError: the variable is not a number of MiB.
        """
        return _number(self.variable, self.mib, HIGHEST_MIB, "MiB") * MIB

    @property
    def why(self) -> str:
        """Return why something larger is refused."""
        return f"it is larger than {self.bytes // MIB:,} MiB, the most that is read of {self.what}"

    @property
    def hint(self) -> str:
        """Return what to do if something larger is correct."""
        return f"if it has to be so large, set {self.variable} to more MiB"


def _number(variable: str, default: int, highest: int, unit: str) -> int:
    text = os.environ.get(variable, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and 1 <= int(text) <= highest):
        raise PinotAssetsError(
            f"{variable} is not a number of {unit}", hint=f"write 1 to {highest}, or unset it for {default}"
        )
    return int(text)


REPLY: Final = ByteLimit("one answer of Pinot", "PINOT_ASSETS_MAX_REPLY_MIB", 256)
"""Limit of an HTTP reply, unpacked. The ideal state of 100,000 segments on three servers has 25 MiB."""

ANSWER: Final = ByteLimit("one answer of a server", "PINOT_ASSETS_MAX_ANSWER_MIB", 64)
"""Limit of a server's answer by gRPC. The audit asks for aggregates, which are some kilobytes."""

OBJECT: Final = ByteLimit("one object of the staging area", "PINOT_ASSETS_MAX_OBJECT_MIB", 512)
"""Limit of a plan, snapshot, switch or similar object. The rows of a snapshot of a million files: 100 MiB."""

RECEIPT: Final = ByteLimit("one receipt", "PINOT_ASSETS_MAX_RECEIPT_MIB", 32)
"""Limit of a receipt; several are read at a time. A receipt of 100 segments of 500 columns has 6 MiB."""

RECEIPTS: Final = ByteLimit("all receipts of one session", "PINOT_ASSETS_MAX_RECEIPTS_MIB", 1024)
"""Limit of all receipts of a session together. A run has all of them in memory, at four times that size. The
receipts of 300,000 files of 30 columns have 900 MiB."""

UNPACKED: Final = 8
"""How many times the limit of `OBJECT` the columns of a Parquet object may have when unpacked. Plans and
snapshots are packed to about a third."""

MOST_ROWS: Final = 100_000_000
"""Limit of rows in a Parquet object. Its encodings can store a billion equal rows in a few bytes."""

NODE_BYTES: Final = 4 * MIB
"""Limit of a node in ZooKeeper, which takes 1 MiB unless `jute.maxbuffer` is raised. Ours have kilobytes."""

ERROR_BYTES: Final = 64 * 1024
"""How much we read of a reply that refuses a call; we show some hundred characters of it."""

ENTRY_BYTES: Final = 128 * MIB
"""Limit of a segment's index map or properties in its tar. Those of 20,000 columns have 40 MiB."""

MESSAGE_BYTES: Final = MIB
"""Limit of a message in a queue; it is SQS' own limit."""

SPEC_BYTES: Final = MIB
"""Limit of a table spec, a policy, settings of OpenLineage, and input of `tables import`. PyYAML needs ten
seconds for so much."""

MOST_VALUES: Final = 5_000_000
"""Limit of the values in a JSON text; lists and objects count twice. An empty list has two bytes of text and
takes sixty of memory. The ideal state of 100,000 segments on three servers has 400,000 values."""
VALUES_VARIABLE: Final = "PINOT_ASSETS_MAX_JSON_VALUES"
HIGHEST_VALUES: Final = 1_000_000_000


def most_values() -> int:
    """Return `MOST_VALUES`, or the number in the environment.

    :raises PinotAssetsError: the variable is not a number.
    """
    return _number(VALUES_VARIABLE, MOST_VALUES, HIGHEST_VALUES, "values")


DEEPEST: Final = 100
"""How many levels JSON may be nested. Pinot's own has about a dozen."""


_MOST_HEADER: Final = 1 << 16
"""Limit of the bytes of a name that does not fit into a plain header; Python reads the name as a whole."""


class BoundedHeader(tarfile.TarInfo):
    """A tar header that refuses names of unusual length."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Read a header; `tarfile` calls this.

        :raises tarfile.ReadError: a name is longer than the limit.
        """
        member = super().frombuf(buf, encoding, errors)
        if not (member.isreg() or member.isdir()) and member.size > _MOST_HEADER:
            raise tarfile.ReadError(f"a header of {member.size} bytes")
        return member


T = TypeVar("T")
ValueCheck = Callable[[object], bool]

_LONG: Final = 2**63
_SHOWN: Final = 300
_KINDS: Final[Mapping[type, str]] = {dict: "an object", int: "an int"}
_DIGITS: Final = re.compile("[0-9]{1,19}")


def read_json(text: str | bytes) -> JsonValue:
    """Return the value of a JSON text.

    :raises ValueError: it is not JSON, it has more than `most_values` values, or it is nested more than
        `DEEPEST` levels deep.
    """
    most = most_values()
    signs = map(text.count, ",[{") if isinstance(text, str) else map(text.count, b",[{")
    if sum(signs) > most:
        raise ValueError(f"it has more than {most:,} values; if it needs them, set {VALUES_VARIABLE} to more")
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    # Level by level, without recursion; only lists and objects are visited.
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
    """Return the object of a JSON text.

    :raises ValueError: the text is not a JSON object.
    """
    return typed(read_json(text), dict)


def typed(value: JsonValue, kind: type[T]) -> T:
    """Return a JSON value that must be of one class.

    :raises ValueError: it is of another class.
    """
    if not isinstance(value, kind):
        wanted = _KINDS.get(kind, f"a {kind.__name__}")
        raise ValueError(f"there is a {type(value).__name__} in the place of {wanted}")
    return value


def whole_number(text: str) -> int | None:
    """Return a text of digits as a number; None for any other text.

    `str.isdigit` accepts characters that `int` refuses; and `int` refuses more than 4,300 digits.
    """
    return int(text) if _DIGITS.fullmatch(text) else None


def listed(value: JsonValue, kind: type[T]) -> tuple[T, ...]:
    """Return a JSON list of values of one class as a tuple. A text is a sequence, too, but is refused.

    :raises ValueError: the value is not a list, or an item is of another class.
    """
    return tuple(typed(item, kind) for item in typed(value, list))


@contextmanager
def reading(
    what: str, error: type[PinotAssetsError], *, hint: str | None = None, why: str = ""
) -> Iterator[None]:
    """Put this block around the code that parses one object: any exception in it becomes `error`.

    Keep reads from a store, ZooKeeper or Pinot outside, because their failures do not mean a bad object.
    `MemoryError` is not changed, nor is `NeedsNewerRelease`: state of a newer release is not damaged.

    :param what: the object, with its address.
    :param hint: what to do.
    :param why: what the object should be; the reason is added after it.
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
    """Return the dataclass or named tuple if each of its values has the type of its field.

    Integers must fit into 64 bits, as in Java and Parquet. The check is needed because an object made
    from JSON may hold any value in a field.

    :raises ValueError: a value has another type; names its field.
    """
    kind: type = type(value)
    for name, check in _checks(kind):
        if not check(getattr(value, name)):
            raise ValueError(f"{name} has the wrong type or value")
    return value


@cache
def _checks(kind: type) -> tuple[tuple[str, ValueCheck], ...]:
    hints = get_type_hints(kind)
    names = [f.name for f in fields(kind)] if is_dataclass(kind) else list(getattr(kind, "_fields", ()))
    return tuple((name, _check(hints[name])) for name in names)


@cache
def _check(hint: object) -> ValueCheck:
    """Return a function that checks whether a value has a type; it knows the types of stored values."""
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
    kind: type = cast("type", hint)
    has_no_fields = issubclass(kind, Enum) or not (is_dataclass(kind) or hasattr(kind, "_fields"))
    if has_no_fields:
        return lambda value: isinstance(value, kind)
    return lambda value: (
        isinstance(value, kind) and all(check(getattr(value, name)) for name, check in _checks(kind))
    )


def _is_int(value: object) -> bool:
    return type(value) is int and -_LONG <= value < _LONG
