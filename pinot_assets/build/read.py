"""One file as an Arrow table in the types of the segment writer. All of it, or an error that says where."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pyarrow as pa

from pinot_assets.build.content import check_kind, is_blank, load
from pinot_assets.build.csv_file import CsvSettings, read_csv
from pinot_assets.build.json_file import read_json
from pinot_assets.build.parquet_file import read_parquet
from pinot_assets.build.rejected import ReaderSettings


def check_reader(input_format: str, reader: Mapping[str, str]) -> None:
    """Whether files can be read with these settings, before any is.

    :raises ReaderSettings: they cannot.
    """
    if input_format == "csv":
        CsvSettings.from_reader(reader)
    elif input_format not in ("json", "parquet"):
        raise ReaderSettings(f"inputFormat {input_format} is not supported", hint="one of csv, json, parquet")
    elif reader:
        raise ReaderSettings(
            f"{input_format} has no reader settings, but there is {', '.join(sorted(reader))}"
        )


def read_file(
    path: Path,
    schema: pa.Schema,
    input_format: str,
    *,
    reader: Mapping[str, str],
    json_columns: Collection[str] = (),
) -> pa.Table:
    """Read one file, plain or gzip.

    Columns go by name. One that the file lacks is all null, one that the table lacks is left out; a file
    with none of the table's columns is refused. A blank file has no rows, whatever its format (edge case E5).

    :param path: a local file.
    :param schema: the columns wanted, `SegmentSpec.arrow_schema()`.
    :param input_format: `csv`, `json` (one object after the other) or `parquet`.
    :param reader: format settings, see `CsvSettings`.
    :param json_columns: text columns that hold JSON.
    :returns: exactly `schema`.
    :raises FileRejected: the file or the settings are wrong; names row and column where there is one.
    """
    check_reader(input_format, reader)
    data = load(path)
    if is_blank(data):
        return schema.empty_table()
    check_kind(data, input_format)
    if input_format == "csv":
        return read_csv(data, schema, CsvSettings.from_reader(reader))
    if input_format == "json":
        return read_json(data, schema, json_columns)
    return read_parquet(data, schema)
