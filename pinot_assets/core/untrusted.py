"""Reading what others may have written: JSON, stored objects, nodes, tars.

Whatever is wrong with such a text, the outcome is one error that names it; a parser in `reading` need not
think of more than the right text.

Whoever answers, or writes an object, may be wrong or hostile: a megabyte of gzip unpacks to a gigabyte, and a
few kilobytes of brackets end Python's stack. Each limit is far above what an installation of the size in
docs/scale.md needs. Those that a larger one could reach can be raised by the environment. Source files have
limits of their own.
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
    """A number of bytes.

    :ivar what: what it limits, as it is named in an error.
    :ivar variable: raises or lowers it, in MiB; read each time, so that Spark's executors take it too.
    :ivar mib: without that.
    """

    what: str
    variable: str
    mib: int

    @property
    def bytes(self) -> int:
        """The limit.

        :raises PinotAssetsError: the variable holds no number of MiB.
        """
        return _number(self.variable, self.mib, HIGHEST_MIB, "MiB") * MIB

    @property
    def why(self) -> str:
        """Why something is refused that is larger."""
        return f"it is larger than {self.bytes // MIB:,} MiB, which is the most that is read of {self.what}"

    @property
    def hint(self) -> str:
        """What to do where it is rightly larger."""
        return f"if it should be so large, set {self.variable} to more MiB"


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
"""Of an HTTP reply, unpacked. The ideal state of 100,000 segments on three servers has 25 MiB."""

ANSWER: Final = ByteLimit("one answer of a server", "PINOT_ASSETS_MAX_ANSWER_MIB", 64)
"""Of a server's answer by gRPC. The audit asks for aggregates: some kilobytes."""

OBJECT: Final = ByteLimit("one object of the staging area", "PINOT_ASSETS_MAX_OBJECT_MIB", 512)
"""Of a plan, a snapshot, a switch and the like. The rows of a snapshot of a million files have 100 MiB."""

RECEIPT: Final = ByteLimit("one receipt", "PINOT_ASSETS_MAX_RECEIPT_MIB", 32)
"""Of a receipt, several of which are read at a time. One of 100 segments of 500 columns has 6 MiB."""

RECEIPTS: Final = ByteLimit("all receipts of one session", "PINOT_ASSETS_MAX_RECEIPTS_MIB", 1024)
"""Of the receipts of a session's files together, all of which a run has in memory, at four times that size.
Those of 300,000 files of 30 columns have 900 MiB."""

UNPACKED: Final = 8
"""How many times as large as `OBJECT` the columns of a Parquet object may be once they are unpacked. Plans
and snapshots shrink to a third or so."""

MOST_ROWS: Final = 100_000_000
"""Rows of a Parquet object. Encodings write a billion equal rows in a few bytes."""

NODE_BYTES: Final = 4 * MIB
"""Of a node of ZooKeeper, whose servers take 1 MiB unless `jute.maxbuffer` is raised. Ours have kilobytes."""

ERROR_BYTES: Final = 64 * 1024
"""What is read of a reply that refuses a call; some hundred characters of it are shown."""

ENTRY_BYTES: Final = 128 * MIB
"""Of a segment's index map or properties within its tar. Those of 20,000 columns have 40 MiB."""

MESSAGE_BYTES: Final = MIB
"""Of a message in a queue: SQS' own limit."""

SPEC_BYTES: Final = MIB
"""Of a table spec, a policy, settings of OpenLineage, and of what `tables import` reads. PyYAML takes ten
seconds for that."""

MOST_VALUES: Final = 5_000_000
"""Values of a JSON text, lists and objects counted twice. One empty list is two bytes of text and sixty of
memory. The ideal state of 100,000 segments on three servers has 400,000."""
VALUES_VARIABLE: Final = "PINOT_ASSETS_MAX_JSON_VALUES"
HIGHEST_VALUES: Final = 1_000_000_000


def most_values() -> int:
    """`MOST_VALUES`, unless the environment says another number.

    :raises PinotAssetsError: the variable holds no number.
    """
    return _number(VALUES_VARIABLE, MOST_VALUES, HIGHEST_VALUES, "values")


DEEPEST: Final = 100
"""How deep JSON may be nested. Pinot's own is by a dozen levels."""


_MOST_HEADER: Final = 1 << 16
"""Bytes of a name that does not fit into a plain header; Python reads it whole."""


class BoundedHeader(tarfile.TarInfo):
    """One whose long names are as long as names are."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """As `tarfile` calls it.

        :raises tarfile.ReadError: a long name is longer than names are.
        """
        member = super().frombuf(buf, encoding, errors)
        if not (member.isreg() or member.isdir()) and member.size > _MOST_HEADER:
            raise tarfile.ReadError(f"a header of {member.size} bytes")
        return member


T = TypeVar("T")
ValueCheck = Callable[[object], bool]

_LONG: Final = 2**63
_SHOWN: Final = 300
_DIGITS: Final = re.compile("[0-9]{1,19}")


def read_json(text: str | bytes) -> JsonValue:
    """The value of a JSON text.

    :raises ValueError: it is none, it has more than `most_values` values, or it is nested more than
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
def _check(hint: object) -> ValueCheck:
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
    kind: type = cast("type", hint)
    has_no_fields = issubclass(kind, Enum) or not (is_dataclass(kind) or hasattr(kind, "_fields"))
    if has_no_fields:
        return lambda value: isinstance(value, kind)
    return lambda value: (
        isinstance(value, kind) and all(check(getattr(value, name)) for name, check in _checks(kind))
    )


def _is_int(value: object) -> bool:
    return type(value) is int and -_LONG <= value < _LONG
