"""Read one file as Arrow tables in the segment writer's types: all of it, or an error that says where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa

from pinot_assets.core.file_errors import ReaderSettings
from pinot_assets.ingest.cast.conform import conform
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema
from pinot_assets.ingest.contract.csv_settings import CsvSettings
from pinot_assets.ingest.formats.binary_formats import (
    avro_batches,
    check_values,
    first_avro,
    first_orc,
    first_parquet,
    load_datafusion,
    orc_stripes,
    parquet_batches,
)
from pinot_assets.ingest.formats.content import plain_file, text_blocks
from pinot_assets.ingest.formats.csv_file import read_csv
from pinot_assets.ingest.formats.json_file import read_documents
from pinot_assets.settings.file_limits import DEFAULTS, FileLimits

_BINARY: Final = {"avro": avro_batches, "orc": orc_stripes, "parquet": parquet_batches}
FIRST_ROWS: Final = {"avro": first_avro, "orc": first_orc, "parquet": first_parquet}
"""Readers of the first rows of a plain file, for the formats whose files have types."""
FORMATS: Final = ("csv", "json", *_BINARY)
"""The values that `inputFormat` may have."""


def check_reader(input_format: str, reader: Mapping[str, str]) -> None:
    """Check, before any file is read, that files can be read with these settings.

    :raises ReaderSettings: they cannot.
    """
    if input_format == "csv":
        CsvSettings.from_reader(reader)
    elif input_format not in FORMATS:
        raise ReaderSettings(
            f"inputFormat {input_format} is not supported", hint=f"one of {', '.join(FORMATS)}"
        )
    elif reader:
        raise ReaderSettings(
            f"{input_format} has no reader settings, but the table spec has {', '.join(sorted(reader))}"
        )
    if input_format == "avro":
        load_datafusion()


def read_batches(
    path: Path,
    target: TargetSchema,
    input_format: str,
    *,
    reader: Mapping[str, str],
    verdicts: BadRowPolicy,
    limits: FileLimits = DEFAULTS,
) -> Iterator[pa.Table]:
    """Read one file, plain or packed by gzip, bzip2 or zstd; yield several tables.

    Columns are matched by name. A column that the file lacks is all null, one that the table lacks is
    dropped; a file with none of the table's columns is refused. A blank file has no rows in any format
    (edge case E5); by the name, `content.check_not_torn` decides whether a file of 0 bytes may be blank.

    :param path: a local file; a packed one of a binary format is unpacked beside it.
    :param input_format: one of `FORMATS`.
    :param reader: format settings, see `CsvSettings`.
    :param verdicts: receives bad rows, and rejects the file if there are too many.
    :returns: tables of exactly `target.schema`; some may be empty.
    :param limits: how much of a file may be loaded.
    :raises FileRejected: the file or the settings are wrong; names row and column where there is one.
    """
    check_reader(input_format, reader)
    if input_format == "csv":
        blocks = text_blocks(path, "csv", limits)
        yield from read_csv(blocks, target, CsvSettings.from_reader(reader), verdicts, limits)
    elif input_format == "json":
        yield from read_documents(text_blocks(path, "json", limits), target, verdicts, limits)
    elif (plain := plain_file(path, input_format, limits)) is not None:
        row = 1
        for table in _BINARY[input_format](plain, target, verdicts, limits):
            check_values(table, limits)
            yield conform(table, target, range(row, row + table.num_rows), verdicts)
            row += table.num_rows


def stored_columns(path: Path, input_format: str, limits: FileLimits = DEFAULTS) -> pa.Schema:
    """Return all columns of a file, in the file's own types; an Avro union of one type is that type.

    :param path: a plain file, not blank.
    :param input_format: one of `FIRST_ROWS`.
    :raises FileRejected: the file is damaged, or larger than the limits allow.
    """
    return FIRST_ROWS[input_format](path, 1, limits).schema


def stored_rows(
    path: Path, input_format: str, columns: Iterable[str], limits: FileLimits = DEFAULTS
) -> Iterator[pa.Table]:
    """Yield the rows of a file in the file's own types, in several tables.

    :param path: a plain file, not blank.
    :param input_format: one of `FIRST_ROWS`.
    :param columns: names of columns that the file has, at least one.
    :raises FileRejected: the file is damaged, or larger than the limits allow.
    """
    wanted = TargetSchema(pa.schema([(name, pa.null()) for name in columns]))
    for table in _BINARY[input_format](path, wanted, BadRowPolicy(), limits):
        check_values(table, limits)
        yield table
