"""The first rows of one local file, column by column, through the readers that runs use."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Final

import pyarrow as pa

from pinot_assets.authoring.infer.column import SampledColumn, of_arrow, of_cells, of_members
from pinot_assets.authoring.infer.csv_shape import CsvShape, rows_of, shape_of
from pinot_assets.authoring.infer.proposal import GROUPS
from pinot_assets.core.file_errors import FileRejected, Unreadable, one_line
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema
from pinot_assets.ingest.formats.binary_formats import check_values, first_avro, first_orc, first_parquet
from pinot_assets.ingest.formats.content import format_of, plain_file, text_blocks
from pinot_assets.ingest.formats.json_documents import document_blocks, members_of
from pinot_assets.ingest.formats.read import read_batches
from pinot_assets.segment import SegmentSpec
from pinot_assets.settings.file_limits import FileLimits
from pinot_assets.table_spec import TableSpec

ROWS: Final = 10_000
"""So many rows of a file are looked at, or as many as its first block holds."""
_TYPED: Final = {"avro": first_avro, "orc": first_orc, "parquet": first_parquet}


@dataclass(frozen=True, slots=True)
class Start:
    """The beginning of a file.

    :ivar input_format: as in `inputFormat`.
    :ivar rows: how many were looked at.
    :ivar shape: of a csv file.
    """

    input_format: str
    rows: int
    columns: Mapping[str, SampledColumn] = field(default_factory=dict)
    shape: CsvShape | None = None

    @property
    def reader(self) -> dict[str, str]:
        """Settings of the reader."""
        return {} if self.shape is None else self.shape.reader


def read_start(path: Path) -> Start | None:
    """Look at the first rows of a file; None if it is blank.

    :param path: a file of this machine.
    :raises FileRejected: it is damaged, or nothing that is read here.
    """
    input_format, limits = format_of(path), FileLimits.of_environment(os.environ)
    if input_format is None:
        return None
    if input_format == "csv":
        return _csv(path, limits)
    if input_format == "json":
        return _json(path, limits)
    plain = plain_file(path, input_format, limits)
    assert plain is not None  # it is not blank
    try:
        table = _TYPED[input_format](plain, ROWS, limits)
        check_values(table, limits)
        return Start(input_format, table.num_rows, _columns(table))
    finally:
        if plain != path:
            plain.unlink()


def tried(spec: TableSpec, path: Path) -> str:
    """What is wrong with a file's first rows for a table; empty when a run could build them.

    Columns that `transforms` make are left out: Spark makes those, which is not asked here.
    """
    ingestion, made = spec.ingestion, spec.ingestion.transforms.keys()
    schema = {
        key: [column for column in value if column["name"] not in made] if key in GROUPS.values() else value
        for key, value in spec.schema_json.items()
    }
    if not any(schema.get(group) for group in GROUPS.values()):
        return ""
    table = {**spec.table_json, "segmentsConfig": {}}  # the time column may be one of these
    wanted = TargetSchema.of(SegmentSpec.from_pinot(schema, table, min_server=ingestion.min_server))
    try:
        batches = read_batches(
            path,
            wanted,
            ingestion.input_format,
            reader=ingestion.reader,
            verdicts=BadRowPolicy(),
            limits=FileLimits.of_environment(os.environ),
        )
        next(iter(batches), None)
    except FileRejected as error:
        return error.reason
    return ""


def _csv(path: Path, limits: FileLimits) -> Start:
    blocks = text_blocks(path, "csv", limits)
    text = next(blocks).decode(errors="replace")
    whole = next(blocks, None) is None
    try:
        shape = shape_of(text)
        rows = list(islice(rows_of(text, shape.delimiter), ROWS + 2))
    except csv.Error as error:
        raise Unreadable("not a CSV file that can be read", why=one_line(error)) from error
    limits.check_columns(len(shape.names))
    if not whole and len(rows) < ROWS + 2:
        rows.pop()  # the block may end in it
    rows = rows[shape.has_header :][:ROWS]
    width = len(shape.names)
    cells = zip(*(row for row in rows if len(row) == width), strict=True)
    nulls = {"", shape.null}
    columns = {name: of_cells(column, nulls) for name, column in zip(shape.names, cells, strict=False)}
    return Start("csv", len(rows), columns or {name: of_cells((), nulls) for name in shape.names}, shape)


def _json(path: Path, limits: FileLimits) -> Start:
    blocks = document_blocks(text_blocks(path, "json", limits))
    texts = (block.decode(errors="surrogateescape") for block in blocks)
    documents = list(islice(chain.from_iterable(map(members_of, texts)), ROWS))
    if not documents:
        raise Unreadable("the file's first row is no JSON object", hint="one object per row is read")
    names = dict.fromkeys(name for document in documents for name in document)
    limits.check_columns(len(names))
    columns = {name: of_members([document.get(name) for document in documents]) for name in names}
    return Start("json", len(documents), columns)


def _columns(table: pa.Table) -> dict[str, SampledColumn]:
    names: Sequence[str] = table.column_names
    return {name: of_arrow(table.column(n)) for n, name in enumerate(names)}
