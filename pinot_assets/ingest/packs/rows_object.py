"""Rows objects: rows of files with the values that segments store, as Parquet.

They are immutable and named by their hash, so packs of several sessions can share one. With cells, an object
is several Parquet files, one after the other: a pack reads only the chunk of its cell
(docs/design/layout.md#words).
"""

from __future__ import annotations

import hashlib
import io
import zlib
from collections.abc import Iterable
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pinot_assets.core.stored_format import WITH_PACKS, Marks, marked
from pinot_assets.errors import SnapshotCorrupt
from pinot_assets.segment.values.normalize import Mask
from pinot_assets.segment.write.final_rows import FinalRows
from pinot_assets.snapshot.batch_receipt import StoredRows, rows_key
from pinot_assets.snapshot.receipt import RowsChunk
from pinot_assets.source.object_store import ObjectStore

_NULL_TIME: Final = "#nullTime"
"""Column that is true where the time was null; tables have no column that begins with #."""
_ROW_GROUP: Final = 1 << 17


def put_rows(store: ObjectStore, rows: FinalRows) -> StoredRows:
    """Write a rows object of one chunk.

    :param store: the table's folder in the staging area.
    """
    return _put(store, _parquet(rows))


class CellRows(NamedTuple):
    """Rows of one cell."""

    cell: str
    rows: FinalRows


def put_cells(store: ObjectStore, cells: Iterable[CellRows], part: int) -> tuple[StoredRows, list[RowsChunk]]:
    """Write a rows object with a chunk for each cell, in their order.

    :param part: see `keep`; objects of several parts are never the same object.
    """
    content, places = bytearray(), list[tuple[str, int, int, int]]()
    for cell, rows in cells:
        data = _parquet(rows, part)
        places.append((cell, len(content), len(data), zlib.crc32(data)))
        content += data
    stored = _put(store, bytes(content))
    return stored, [RowsChunk(cell, stored.digest, *at) for cell, *at in places]


def _parquet(rows: FinalRows, part: int = 0) -> bytes:
    table, into = rows.table, io.BytesIO()
    if rows.null_times is not None:
        table = table.append_column(_NULL_TIME, pa.array(rows.null_times))
    said = {"part": str(part)} if part else {}
    table = table.replace_schema_metadata(marked(table.schema, WITH_PACKS, said).metadata)
    pq.write_table(
        table,
        into,
        compression="zstd",
        row_group_size=_ROW_GROUP,
        use_dictionary=False,  # zstd makes less of it, in half the time
        write_statistics=False,
    )
    return into.getvalue()


def _put(store: ObjectStore, data: bytes) -> StoredRows:
    digest = hashlib.sha256(data).hexdigest()
    key = rows_key(digest)
    store.put_if_absent(key, data)
    version = store.stat(key)
    return StoredRows(digest, len(data), version.token if version is not None else "")


def read_rows(store: ObjectStore, chunk: RowsChunk) -> tuple[pa.Table, Mask | None]:
    """Read a chunk of a rows object.

    :returns: the rows, and which of them have a time that was null; None if none has.
    :raises SnapshotCorrupt: it is not what was written.
    :raises SourceError: it is not there, or the staging area does not answer.
    """
    data, address = _bytes_of(store, chunk), store.uri_of(rows_key(chunk.rows_object))
    with pq.ParquetFile(pa.BufferReader(data)) as file:
        table = file.read(use_threads=False)
    said = {name.decode(): value.decode() for name, value in (table.schema.metadata or {}).items()}
    Marks.of(said).require_known(address)
    if _NULL_TIME not in table.column_names:
        return table, None
    mask = table.column(_NULL_TIME).to_numpy()
    return table.drop_columns([_NULL_TIME]), mask


def _bytes_of(store: ObjectStore, chunk: RowsChunk) -> bytes:
    key = rows_key(chunk.rows_object)
    if chunk.length:
        data = store.read_range(key, chunk.offset, chunk.length)
        is_whole, why = (
            zlib.crc32(data) == chunk.crc,
            "the CRC of a chunk differs from its member list's",
        )
    else:
        data = store.read(key)
        is_whole = hashlib.sha256(data).hexdigest() == chunk.rows_object
        why = "its hash differs from the one in its name"
    if not is_whole:
        raise SnapshotCorrupt(
            f"{store.uri_of(key)} is not what was written there", why=why, hint="restore the object"
        )
    return data
