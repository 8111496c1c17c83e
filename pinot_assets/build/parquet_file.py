"""Parquet through Arrow: the table's columns by name, nothing else is read."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from pinot_assets.build.conform import conform
from pinot_assets.build.rejected import Unreadable, one_line


def read_parquet(data: pa.Buffer, schema: pa.Schema) -> pa.Table:
    """Rows as the columns of `schema`.

    :param data: the whole file.
    :raises FileRejected: the file is damaged, has none of the columns, or a value does not fit.
    """
    try:
        file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        names = file.schema_arrow.names
        wanted = [name for name in schema.names if name in names]
        # An empty file without columns is still an empty one (edge case E5).
        if not wanted and file.metadata.num_rows:
            raise Unreadable(
                "the file has none of the table's columns", why=f"its columns are {', '.join(names)[:200]}"
            )
        twice = [name for name in wanted if names.count(name) > 1]
        if twice:
            raise Unreadable(f"the file has two columns {', '.join(twice)}")
        table = file.read(columns=wanted, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise Unreadable("the Parquet file is damaged or cut short", why=one_line(error)) from error
    return conform(table, schema)
