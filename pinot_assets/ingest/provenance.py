"""The column that has the path of each row's file (`provenanceColumn`; docs/tables.md#layout)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from pinot_assets.core.file_errors import FileRejected
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.segment.column.types import Column, utf16_length
from pinot_assets.source.uris import key_below


def path_below_source(build_spec: BuildSpec, task: FileTask) -> str:
    """Return the file's path below the input directory: decoded, with `/`."""
    return key_below(build_spec.source_uri, task.file.uri)


def with_provenance(tables: Iterator[pa.Table], column: Column, path: str) -> Iterator[pa.Table]:
    """Yield the same rows, each with the path in that column.

    :param tables: in them the column is null.
    :raises FileRejected: the file has values there, or the path does not fit the column.
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        raise FileRejected(
            f"its path is not UTF-8, so {column.name} cannot have it",
            hint="rename the file, or remove provenanceColumn",
        ) from None
    if (units := utf16_length(path)) > column.max_length:
        raise FileRejected(
            f"its path has {units:,} characters, and {column.name} takes {column.max_length:,}",
            why="a path that is cut would name no file",
            hint=f"set a larger maxLength for {column.name} in the schema",
        )
    for table in tables:
        if table.column(column.name).null_count < table.num_rows:
            raise FileRejected(
                f"it has values in the column {column.name}",
                why="provenanceColumn names that column, which gets the path of each row's file",
                hint="let provenanceColumn name a column that no file has",
            )
        # One text for all rows, however long it is.
        places = pa.array(np.zeros(table.num_rows, np.int32))
        paths = pa.DictionaryArray.from_arrays(places, pa.array([path]))
        yield table.set_column(table.schema.get_field_index(column.name), column.name, paths)
