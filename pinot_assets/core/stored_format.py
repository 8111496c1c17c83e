"""What is stored has a format: its numbers, the releases that they need, and how values are written and read.

An object without a number is of format 1, which release 0.1.0 wrote: its bytes stay as they were. From format
2 on every object says its `format`, and which release it `needs`. A reader refuses a format that it does not
know, with that release; within a format that it knows it keeps the fields that it does not know, so that a
later release may add some without a new number. docs/compatibility.md is the promise, docs/upgrading.md what
people do.

Snapshots and plans are Parquet that is read into memory, with their columns of a later release.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Final, TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pinot_assets.core.json_object import JsonMapping, JsonObject, JsonValue
from pinot_assets.core.untrusted import MOST_ROWS, OBJECT, UNPACKED, fitting
from pinot_assets.errors import NeedsNewerRelease

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, TypeAdapter
    from pydantic_core import CoreSchema


T = TypeVar("T")

FIRST: Final = 1
RELEASES: Final[Mapping[int, str]] = {FIRST: "0.1.0", 2: "0.2.0"}
"""The oldest release that knows each format.

2 has the fields of 1, and is open: its readers keep what they do not know, where those of 1 drop it or call
the whole object damaged.
"""
NEWEST: Final = max(RELEASES)

FORMAT: Final = "format"
NEEDS: Final = "needs"

_NOTHING: Final[JsonMapping] = {}
_SINCE: Final = "since"


def since(number: int) -> Mapping[str, int]:
    """Metadata of a dataclass field that objects of an older format do not have: it is not written there."""
    return {_SINCE: number}


def fields_since(kind: type[Stored]) -> frozenset[str]:
    """Fields that objects of the first format do not have."""
    return frozenset(f.name for f in fields(kind) if f.metadata.get(_SINCE, FIRST) > FIRST)


def marks(number: int) -> JsonObject:
    """What an object of that format says of itself."""
    return {} if number == FIRST else {FORMAT: number, NEEDS: RELEASES[number]}


@dataclass(frozen=True, slots=True)
class Marks:
    """What an object says of its own format.

    :ivar needs: the oldest release that knows it, "" where it does not say so.
    """

    format: int
    needs: str

    @classmethod
    def of(cls, values: JsonMapping) -> Marks:
        """Those among an object's values, as JSON, a ZNode's texts or Parquet's metadata hold them.

        :raises ValueError: its format is no number.
        """
        number, needs = values.get(FORMAT, FIRST), values.get(NEEDS, "")
        text = str(number)
        if isinstance(number, bool) or not (text.isascii() and text.isdigit() and len(text) < 10):
            raise ValueError("its format is not a whole number")
        if int(text) < FIRST:
            raise ValueError(f"there is no format {text}")
        return cls(int(text), str(needs))

    @property
    def is_known(self) -> bool:
        """Whether this release knows the format."""
        return self.format <= NEWEST

    def require_known(self, what: str) -> int:
        """The format.

        :param what: the object, with its address.
        :raises NeedsNewerRelease: this release does not know it.
        """
        if self.is_known:
            return self.format
        release = self.needs or "a newer release"
        raise NeedsNewerRelease(
            f"{what} is of format {self.format}, which this release of pinot-assets does not know",
            why=f"it was written for pinot-assets {release}; this is {version('pinot-assets')}, "
            f"which knows formats up to {NEWEST}",
            hint=f"upgrade pinot-assets here to {release}, or let only the release that wrote it work on "
            "this table; nothing was changed (docs/upgrading.md)",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A stored value that keeps what it does not know.

    :ivar kept: fields of a later release, as they were read; written back with the others.
    """

    kept: JsonMapping = field(default_factory=lambda: _NOTHING, compare=False, repr=False)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Open], handler: GetCoreSchemaHandler) -> CoreSchema:
        """For `structured`: sort known from unknown, at each level."""
        from pydantic_core import core_schema

        names = frozenset(f.name for f in fields(source)) - {"kept"}
        skipped = frozenset({NEEDS}) if issubclass(source, Stored) else frozenset[str]()

        def sort(values: object) -> object:
            if not isinstance(values, Mapping):
                return values
            known = {key: value for key, value in values.items() if key in names}
            unknown = {key: value for key, value in values.items() if key not in names and key not in skipped}
            return known | {"kept": unknown or _NOTHING}

        return core_schema.no_info_before_validator_function(sort, handler(source))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored(Open):
    """An object of its own.

    :ivar format: what it is written in; what is made of it is written in the same.
    """

    format: int = FIRST


def structured(kind: type[T], values: JsonValue, what: str) -> T:
    """A dataclass of plain values, each of the type that its class says.

    :param what: the object, for errors.
    :raises NeedsNewerRelease: it is of a format that this release does not know.
    :raises ValueError: the values do not make one; names the field.
    """
    from pydantic import ValidationError  # late: workers of a build read hardly anything

    if issubclass(kind, Stored) and isinstance(values, Mapping):
        values = {**values, FORMAT: Marks.of(values).require_known(what)}
    cached: type = kind
    try:
        value = cast("T", _adapter(cached).validate_python(values))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"not {what}: {f'{place}: ' if place else ''}{first['msg']}") from None
    return fitting(value)


@cache
def _adapter(kind: type) -> TypeAdapter[object]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def plain(value: object, number: int | None = None) -> JsonValue:
    """Inverse of `structured`: what JSON takes, as `dataclasses.asdict` has it, and what was kept.

    :param number: the format of the object that it is a part of. Without one its own, or the first.
    """
    if isinstance(value, Open):
        said: JsonObject = {}
        if number is None:
            number, said = (value.format, marks(value.format)) if isinstance(value, Stored) else (FIRST, {})
        values = {
            f.name: plain(getattr(value, f.name), number)
            for f in fields(value)
            if f.name not in ("kept", FORMAT) and f.metadata.get(_SINCE, FIRST) <= number
        }
        return values | said | dict(value.kept)
    if is_dataclass(value):
        raise TypeError(f"{type(value).__name__} is not stored")
    if isinstance(value, Mapping):
        return {key: plain(item, number) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(item, number) for item in value]
    return value


# --- as JSON with keys in camel case ---------------------------------------------------------------


def stored_keys(kind: type[Stored]) -> dict[str, str]:
    """The fields of an object, by their keys in camel case."""
    names = (f.name for f in fields(kind) if f.name not in ("kept", FORMAT))
    return {re.sub("_([a-z])", lambda match: match[1].upper(), name): name for name in names}


def with_keys(value: Stored) -> JsonObject:
    """The same as `plain`, with keys in camel case."""
    said = plain(value)
    known = {key: said[name] for key, name in stored_keys(type(value)).items() if name in said}
    return known | marks(value.format) | dict(value.kept)


def by_keys(kind: type[Stored], values: JsonMapping) -> JsonObject:
    """Inverse of `with_keys`, for `structured`."""
    keys = stored_keys(kind)
    known = {name: values[key] for key, name in keys.items() if key in values}
    return {key: value for key, value in values.items() if key not in keys} | known


# --- as Parquet ------------------------------------------------------------------------------------

_ROWS_AT_ONCE: Final = 1 << 16
_OFFSET: Final = 4
"""Bytes that Arrow has for where a text, or a list, begins."""


def table_of(data: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows, by one thread.

    Arrow's pool would start its threads for that, and a command that ends while they start is aborted by C++
    after its work is done, with exit code 134. Of a million rows, one thread is no slower here.

    :param columns: all if none is named; part of a nested one by its path.
    :raises ValueError: unpacked, they would be larger than is read. What is no Parquet is an error of Arrow.
    """
    with pq.ParquetFile(pa.BufferReader(data)) as file:
        _refuse_large(file.metadata)
        _refuse_repeated(data, file.schema, columns)
        return file.read(columns, use_threads=False)


def require_schema(actual: pa.Schema, expected: pa.Schema, added: Sequence[str] = ()) -> None:
    """See that columns are those of a stored object; there may be others.

    :param added: columns that older releases did not write.
    :raises ValueError: one is missing, or of another type.
    """
    for each in expected:
        if each.name in actual.names:
            _require_type(each.name, actual.field(each.name).type, each.type)
        elif each.name not in added:
            raise ValueError(f"it lacks the column {each.name}")


def require_values(table: pa.Table, expected: pa.Schema) -> None:
    """See that no value is missing where each row has one.

    :raises ValueError: one is.
    """
    for name in table.column_names:
        if name in expected.names:
            for path, values in _required(name, table[name], expected.field(name)):
                if values.null_count:
                    raise ValueError(f"{path} lacks a value")


def _required(path: str, values: pa.ChunkedArray, column: pa.Field) -> Iterator[tuple[str, pa.ChunkedArray]]:
    if not column.nullable:
        yield path, values
    if pa.types.is_list(column.type):
        item, of = pc.list_flatten(values), column.type.value_type
        yield path, item
        for each in of if pa.types.is_struct(of) else ():
            if item.type.get_field_index(each.name) >= 0:
                yield from _required(f"{path}.{each.name}", pc.struct_field(item, each.name), each)


def _require_type(name: str, actual: pa.DataType, expected: pa.DataType) -> None:
    if pa.types.is_list(expected) and pa.types.is_list(actual):
        _require_type(name, actual.value_type, expected.value_type)
    elif pa.types.is_struct(expected) and pa.types.is_struct(actual):
        for each in expected:
            if actual.get_field_index(each.name) >= 0:
                _require_type(f"{name}.{each.name}", actual.field(each.name).type, each.type)
    elif actual != expected and not pa.types.is_null(actual):
        raise ValueError(f"{name} is of type {actual}, not {expected}")


def _refuse_large(metadata: pq.FileMetaData) -> None:
    most = OBJECT.bytes * UNPACKED
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    unpacked = sum(group.total_byte_size for group in groups)
    # A list may have any number of values in one row.
    values = max(
        (group.column(n).num_values for group in groups for n in range(group.num_columns)), default=0
    )
    if max(metadata.num_rows, values) > MOST_ROWS or unpacked > most:
        raise ValueError(
            f"its {metadata.num_rows:,} rows of {unpacked:,} bytes are more than {MOST_ROWS:,} rows or "
            f"{most:,} bytes, which is the most that is read; {OBJECT.variable} changes that"
        )


def _refuse_repeated(data: bytes, schema: pq.ParquetSchema, columns: Sequence[str] | None) -> None:
    """Refuse what becomes large by repeating: a text that stands once in the file, and in a million rows.

    The footer counts it once. So the rows are read with texts as numbers into a dictionary,
    a part at a time, and what they would be without it is added up.
    """
    leaves = (schema.column(n) for n in range(len(schema)))
    texts = [
        leaf.path
        for leaf in leaves
        if leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type != "DECIMAL"
    ]
    most, total = OBJECT.bytes * UNPACKED, 0
    with pq.ParquetFile(pa.BufferReader(data), read_dictionary=texts) as file:
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=columns, use_threads=False):
            total += sum(map(_plain_size, batch.columns))
            if total > most:
                raise ValueError(
                    f"its values, some of which it repeats, have more than {most:,} bytes, which is the most "
                    f"that is read; {OBJECT.variable} changes that"
                )


def _plain_size(values: pa.Array) -> int:
    """Bytes of values once no dictionary stands for them."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        lengths = pc.take(pc.binary_length(values.dictionary), values.indices)
        return int(pc.sum(lengths).as_py() or 0) + len(values) * _OFFSET
    if pa.types.is_struct(kind):
        return sum(map(_plain_size, values.flatten()))
    if pa.types.is_map(kind):
        return _plain_size(values.keys) + _plain_size(values.items)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _plain_size(values.flatten()) + len(values) * _OFFSET
    return int(values.nbytes)


def metadata_of(data: bytes) -> dict[str, str]:
    """What stands beside the rows; none of them is read."""
    metadata = pq.read_schema(pa.BufferReader(data)).metadata or {}
    return {key.decode(): value.decode() for key, value in metadata.items()}


def kept_fields(rows: Iterable[Open]) -> list[pa.Field]:
    """Columns for what these rows keep of a later release, with types that hold it."""
    columns: dict[str, list[object]] = {}
    for row in rows:
        for name, value in row.kept.items():
            columns.setdefault(name, []).append(value)
    return [pa.field(name, pa.infer_type(values)) for name, values in columns.items()]


def keeping(row: JsonMapping, unknown: Sequence[str]) -> JsonObject:
    """What a row is to keep, as an argument of its class; none where there is nothing unknown.

    :param unknown: columns that this release does not know.
    """
    return {"kept": {name: row[name] for name in unknown if row[name] is not None}} if unknown else {}


def parquet_of(rows: list[JsonObject], schema: pa.Schema) -> bytes:
    """Rows as one Parquet object."""
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink, compression="zstd")
    return sink.getvalue()
