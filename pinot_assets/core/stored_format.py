"""Formats of stored objects: their numbers, the releases that they need, and how values are read and written.

An object without a number has format 1, which release 0.1.0 wrote; its bytes did not change. From format 2 on
every object has its `format` and the release that it `needs`. A reader refuses an unknown format, and names
that release. In a known format it keeps fields that it does not know, so that a later release may add fields
without a new number. docs/compatibility.md has the promise, docs/upgrading.md the steps for people.

Snapshots and plans are Parquet that is read into memory, together with columns of a later release.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pinot_assets.core.json_object import JsonMapping, JsonObject, JsonValue
from pinot_assets.core.untrusted import MOST_ROWS, OBJECT, UNPACKED, fitting, typed
from pinot_assets.errors import NeedsNewerRelease

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, TypeAdapter
    from pydantic_core import CoreSchema


T = TypeVar("T")

FIRST: Final = 1
WITH_PACKS: Final = 3
RELEASES: Final[Mapping[int, str]] = {FIRST: "0.1.0", 2: "0.2.0", WITH_PACKS: "0.2.0"}
"""The oldest release that knows each format.

Format 2 has the fields of 1 and may get more: its readers keep unknown fields. Readers of format 1 drop them
or call the whole object damaged. Format 3 may have packs: files without segments of their own, whose rows a
reader of format 2 would miss.
"""
NEWEST: Final = max(RELEASES)

FORMAT: Final = "format"
NEEDS: Final = "needs"

_NOTHING: Final[JsonMapping] = {}
_LEAVES: Final = (str, int, float, type(None))
_SINCE: Final = "since"
_ADDED: Final = "added"


def since(number: int) -> Mapping[str, int]:
    """Return metadata for a dataclass field that older formats do not have: it is not written into them."""
    return {_SINCE: number}


def added(number: int) -> Mapping[str, int]:
    """Return metadata as `since` does, for a field that a format got later: its default is not written, so
    that objects from before keep their bytes."""
    return {_SINCE: number, _ADDED: number}


def fields_since(kind: type[Stored]) -> frozenset[str]:
    """Return the fields that objects of the first format do not have."""
    return frozenset(f.name for f in fields(kind) if f.metadata.get(_SINCE, FIRST) > FIRST)


def marks(number: int) -> JsonObject:
    """Return the fields that mark an object as of that format; none for the first one."""
    return {} if number == FIRST else {FORMAT: number, NEEDS: RELEASES[number]}


@dataclass(frozen=True, slots=True)
class Marks:
    """The format of an object, as the object itself has it.

    :ivar needs: the oldest release that knows it, "" if the object does not name it.
    """

    format: int
    needs: str

    @classmethod
    def of(cls, values: JsonMapping) -> Marks:
        """Return the marks among an object's values, which are JSON, a ZNode's texts or Parquet's metadata.

        :raises ValueError: the format is not a whole number from 1 on.
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
        """Return the format.

        :param what: the object, with its address.
        :raises NeedsNewerRelease: this release does not know the format.
        """
        if self.is_known:
            return self.format
        release = self.needs or "a newer release"
        raise NeedsNewerRelease(
            f"{what} is of format {self.format}, which this release of pinot-assets does not know",
            why=f"it needs pinot-assets {release}; this is {version('pinot-assets')}, which knows "
            f"formats up to {NEWEST}",
            hint=f"upgrade pinot-assets here to {release}, or let only the release that wrote it work on "
            "this table; nothing was changed (docs/upgrading.md)",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A stored value that keeps unknown fields.

    :ivar kept: fields of a later release, as they were read; they are written back with the others.
    """

    kept: JsonMapping = field(default_factory=lambda: _NOTHING, compare=False, repr=False)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Open], handler: GetCoreSchemaHandler) -> CoreSchema:
        """Make `structured` separate known and unknown fields, at each level."""
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
    """A stored value that is an object by itself, with its own format.

    :ivar format: the format in which it was written; values made from it are written in the same one.
    """

    format: int = FIRST


def structured(kind: type[T], values: JsonValue, what: str) -> T:
    """Return plain values as a dataclass, after a check that each has the type of its field.

    :param what: the object, for errors.
    :raises NeedsNewerRelease: its format is unknown to this release.
    :raises ValueError: the values do not fit the class; names the field.
    """
    from pydantic import ValidationError  # imported late, because workers of a build read hardly anything

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
    """Return a value as JSON takes it, like `dataclasses.asdict`, with kept fields: inverse of `structured`.

    :param number: the format of the object that holds the value. None: the value's own, or the first.
    """
    if isinstance(value, _LEAVES):
        return value  # most values are; the checks below take a microsecond each
    if isinstance(value, Open):
        said: JsonObject = {}
        if number is None:
            number, said = (value.format, marks(value.format)) if isinstance(value, Stored) else (FIRST, {})
        values = {
            f.name: plain(getattr(value, f.name), number)
            for f in fields(value)
            if f.name not in ("kept", FORMAT)
            and f.metadata.get(_SINCE, FIRST) <= number
            and not (_ADDED in f.metadata and getattr(value, f.name) == f.default)
        }
        return values | said | dict(value.kept)
    if is_dataclass(value):
        raise TypeError(f"{type(value).__name__} cannot be stored")
    if isinstance(value, Mapping):
        return {key: plain(item, number) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(item, number) for item in value]
    return value


# --- as JSON with keys in camel case ---------------------------------------------------------------


def stored_keys(kind: type[Stored]) -> dict[str, str]:
    """Return the fields of an object by their keys in camel case."""
    names = (f.name for f in fields(kind) if f.name not in ("kept", FORMAT))
    return {re.sub("_([a-z])", lambda match: match[1].upper(), name): name for name in names}


def with_keys(value: Stored) -> JsonObject:
    """Return the same as `plain`, with keys in camel case."""
    said = typed(plain(value), dict)
    known = {key: said[name] for key, name in stored_keys(type(value)).items() if name in said}
    return known | marks(value.format) | dict(value.kept)


def by_keys(kind: type[Stored], values: JsonMapping) -> JsonObject:
    """Return values with field names as keys, for `structured`: the inverse of `with_keys`."""
    keys = stored_keys(kind)
    known = {name: values[key] for key, name in keys.items() if key in values}
    return {key: value for key, value in values.items() if key not in keys} | known


# --- as Parquet ------------------------------------------------------------------------------------

_ROWS_AT_ONCE: Final = 1 << 18
_OFFSET: Final = 4
"""Bytes that Arrow needs for the offset at which a text, or a list, begins."""


def parquet_table(data: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """Read the rows with one thread.

    Arrow's pool would start threads for this. If a command ends while they start, C++ aborts it after its
    work is done, with exit code 134. For a million rows one thread is no slower here.

    :param columns: all if none is named; a part of a nested column by its path.
    :returns: its texts are of the type `string`.
    :raises ValueError: unpacked, they would exceed the limit. If it is not Parquet, Arrow raises its error.
    """
    with pq.ParquetFile(pa.BufferReader(data)) as file:
        metadata = file.metadata
    _refuse_large(metadata)
    leaves = (metadata.schema.column(n) for n in range(metadata.num_columns))
    texts = [
        leaf.path
        for leaf in leaves
        if leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type != "DECIMAL"
    ]
    # Parquet's footer counts a text once that a million rows share. So texts are read as numbers into a
    # dictionary, and become texts when it is known how large that makes them.
    with pq.ParquetFile(pa.BufferReader(data), metadata=metadata, read_dictionary=texts) as file:
        batches = [*_while_small(file.iter_batches(_ROWS_AT_ONCE, columns=columns, use_threads=False))]
        # Of an empty object there is no batch, and nothing to count.
        table = pa.Table.from_batches(batches) if batches else file.read(columns, use_threads=False)
    return table.cast(pa.schema(map(_without_dictionary, table.schema), table.schema.metadata))


def checked_table(data: bytes, expected: pa.Schema, added: Sequence[str] = ()) -> tuple[pa.Table, list[str]]:
    """Return the rows of a stored object, and the columns that this release does not know.

    :param added: expected columns that not every object has.
    :raises ValueError: a column or a value is missing, or a column has another type; also as `parquet_table`.
    """
    table = parquet_table(data)
    require_schema(table.schema, expected, added)
    require_values(table, expected)
    return table, [name for name in table.schema.names if name not in expected.names]


def marked(schema: pa.Schema, number: int, said: Mapping[str, str] = MappingProxyType({})) -> pa.Schema:
    """Return the schema of an object of that format.

    :param said: what else its metadata say.
    """
    metadata = {**said, **{key: str(value) for key, value in marks(number).items()}}
    return schema.with_metadata(metadata) if metadata else schema


def require_schema(actual: pa.Schema, expected: pa.Schema, added: Sequence[str] = ()) -> None:
    """Check that the columns are those of a stored object; other columns may be there, too.

    :param added: columns that older releases did not write.
    :raises ValueError: a column is missing or has another type.
    """
    for each in expected:
        if each.name in actual.names:
            _require_type(each.name, actual.field(each.name).type, each.type)
        elif each.name not in added:
            raise ValueError(f"it lacks the column {each.name}")


def require_values(table: pa.Table, expected: pa.Schema) -> None:
    """Check that no value is missing where every row needs one.

    :raises ValueError: a value is missing.
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
    # The number of rows is not enough, because one row's list may have any number of values.
    values = max(
        (group.column(n).num_values for group in groups for n in range(group.num_columns)), default=0
    )
    if max(metadata.num_rows, values) > MOST_ROWS or unpacked > most:
        raise ValueError(
            f"its {metadata.num_rows:,} rows of {unpacked:,} bytes are more than {MOST_ROWS:,} rows or "
            f"{most:,} bytes, which is the most that is read; {OBJECT.variable} changes that"
        )


def _while_small(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield them as long as their values, each counted as often as it is repeated, are within the limit."""
    most, total = OBJECT.bytes * UNPACKED, 0
    for batch in batches:
        total += sum(map(_plain_size, batch.columns))
        if total > most:
            raise ValueError(
                f"its values, some of which it repeats, have more than {most:,} bytes, which is the most "
                f"that is read; {OBJECT.variable} changes that"
            )
        yield batch


def _without_dictionary(column: pa.Field) -> pa.Field:
    """Return the column with the type that it has when texts are no numbers into a dictionary."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return column.with_type(kind.value_type)
    if pa.types.is_struct(kind):
        return column.with_type(pa.struct(map(_without_dictionary, kind)))
    if pa.types.is_map(kind):
        return column.with_type(pa.map_(*map(_without_dictionary, (kind.key_field, kind.item_field))))
    if pa.types.is_list(kind):
        return column.with_type(pa.list_(_without_dictionary(kind.value_field)))
    return column


def _plain_size(values: pa.Array) -> int:
    """Return the bytes of values as they would be without a dictionary."""
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


def parquet_metadata(data: bytes) -> dict[str, str]:
    """Return the metadata of a Parquet object without reading its rows."""
    metadata = pq.read_schema(pa.BufferReader(data)).metadata or {}
    return {key.decode(): value.decode() for key, value in metadata.items()}


def kept_fields(rows: Iterable[Open]) -> list[pa.Field]:
    """Return the columns that hold the kept fields of these rows, with types that fit them."""
    columns: dict[str, list[object]] = {}
    for row in rows:
        for name, value in row.kept.items():
            columns.setdefault(name, []).append(value)
    return [pa.field(name, pa.infer_type(values)) for name, values in columns.items()]


def keeping(row: JsonMapping, unknown: Sequence[str]) -> JsonObject:
    """Return a row's unknown fields as the argument `kept` of its class; empty if there are none.

    :param unknown: columns that this release does not know.
    """
    return {"kept": {name: row[name] for name in unknown if row[name] is not None}} if unknown else {}


def parquet_of(rows: list[JsonObject], schema: pa.Schema) -> bytes:
    """Return rows as one Parquet object."""
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink, compression="zstd")
    return sink.getvalue()
