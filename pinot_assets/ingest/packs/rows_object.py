"""Rows objects: rows of whole files with the values that segments store, as one Parquet object.

They are immutable and named by their hash, so packs of several sessions can share one
(docs/design/layout.md#words).
"""

from __future__ import annotations

import hashlib
import io
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from pinot_assets.core.stored_format import WITH_PACKS, Marks, marked
from pinot_assets.errors import SnapshotCorrupt
from pinot_assets.segment.values.normalize import Mask
from pinot_assets.segment.write.final_rows import FinalRows
from pinot_assets.snapshot.batch_receipt import rows_key
from pinot_assets.source.object_store import ObjectStore

_NULL_TIME: Final = "#nullTime"
"""Column that is true where the time was null; tables have no column that begins with #."""
_ROW_GROUP: Final = 1 << 17


def put_rows(store: ObjectStore, rows: FinalRows) -> tuple[str, int, str]:
    """Write a rows object.

    :param store: the table's folder in the staging area.
    :returns: its digest, its size in bytes, and its version token.
    """
    table = rows.table
    if rows.null_times is not None:
        table = table.append_column(_NULL_TIME, pa.array(rows.null_times))
    table = table.replace_schema_metadata(marked(table.schema, WITH_PACKS).metadata)
    into = io.BytesIO()
    pq.write_table(table, into, compression="zstd", row_group_size=_ROW_GROUP)
    data = into.getvalue()
    digest = hashlib.sha256(data).hexdigest()
    key = rows_key(digest)
    store.put_if_absent(key, data)
    version = store.stat(key)
    return digest, len(data), version.token if version is not None else ""


def read_rows(store: ObjectStore, digest: str) -> tuple[pa.Table, Mask | None]:
    """Read a rows object.

    :returns: the rows, and which of them have a time that was null; None if none has.
    :raises SnapshotCorrupt: it is not what was written.
    :raises SourceError: it is not there, or the staging area does not answer.
    """
    key = rows_key(digest)
    data = store.read(key)
    if hashlib.sha256(data).hexdigest() != digest:
        raise SnapshotCorrupt(
            f"{store.uri_of(key)} is not what was written there",
            why="its hash differs from the one in its name",
            hint="restore the object",
        )
    with pq.ParquetFile(pa.BufferReader(data)) as file:
        table = file.read(use_threads=False)
    said = {name.decode(): value.decode() for name, value in (table.schema.metadata or {}).items()}
    Marks.of(said).require_known(store.uri_of(key))
    if _NULL_TIME not in table.column_names:
        return table, None
    mask = table.column(_NULL_TIME).to_numpy()
    return table.drop_columns([_NULL_TIME]), mask
