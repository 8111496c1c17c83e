"""Make the text of a table spec from the first rows of files, through the readers that runs use."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Final

from pinot_assets.authoring.infer.column import SampledColumn, absent, of_arrow, of_cells, of_members
from pinot_assets.authoring.infer.csv_shape import CsvShape, rows_of, shape_of
from pinot_assets.authoring.infer.proposal import GROUPS, Proposal, propose
from pinot_assets.authoring.infer.sample import FolderSample, local_copies
from pinot_assets.authoring.infer.yaml_text import proposed_spec
from pinot_assets.authoring.starter import local_staging
from pinot_assets.core.file_errors import FileRejected, Unreadable, one_line
from pinot_assets.core.text import counted, plural
from pinot_assets.errors import SourceError
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema
from pinot_assets.ingest.formats.binary_formats import check_values
from pinot_assets.ingest.formats.content import format_of, plain_file, text_blocks
from pinot_assets.ingest.formats.json_documents import document_blocks, members_of
from pinot_assets.ingest.formats.read import FIRST_ROWS, read_batches
from pinot_assets.pinot.query_text import column_needs_quotes
from pinot_assets.segment import SegmentSpec
from pinot_assets.settings.file_limits import FileLimits
from pinot_assets.source.uris import parse_root
from pinot_assets.table_spec import TableSpec
from pinot_assets.table_spec.yaml.values import is_within

ROWS: Final = 10_000
"""Number of rows of a file that are looked at, or as many as its first block holds."""


@dataclass(frozen=True, slots=True)
class Start:
    """What the beginning of a file shows.

    :ivar input_format: as in `inputFormat`.
    :ivar rows: number of rows looked at.
    :ivar shape: of a csv file.
    """

    input_format: str
    rows: int
    columns: Mapping[str, SampledColumn] = field(default_factory=dict)
    shape: CsvShape | None = None


def read_start(path: Path) -> Start | None:
    """Read the first rows of a file; None if it is blank.

    :param path: a file of this machine.
    :raises FileRejected: it is damaged, or has a format that is not read here.
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
        table = FIRST_ROWS[input_format](plain, ROWS, limits)
        check_values(table, limits)
        columns = zip(table.column_names, table.columns, strict=True)
        return Start(input_format, table.num_rows, {name: of_arrow(column) for name, column in columns})
    finally:
        if plain != path:
            plain.unlink()


def tried(spec: TableSpec, path: Path) -> str:
    """Return why a run could not build a file's first rows for a table; empty if it could.

    Columns that `transforms` make are left out: Spark makes them, and Spark does not run here.
    """
    ingestion, made = spec.ingestion, spec.ingestion.transforms.keys()
    schema = {
        key: [column for column in value if column["name"] not in made] if key in GROUPS.values() else value
        for key, value in spec.schema_json.items()
    }
    if not any(schema.get(group) for group in GROUPS.values()):
        return ""
    table = {**spec.table_json, "segmentsConfig": {}}  # the time column may be one of these
    target = TargetSchema.of(SegmentSpec.from_pinot(schema, table, write_for=ingestion.known_target))
    try:
        batches = read_batches(
            path,
            target,
            ingestion.input_format,
            reader=ingestion.reader,
            verdicts=BadRowPolicy(),
            limits=FileLimits.of_environment(os.environ),
        )
        rows = 0
        while rows < ROWS and (batch := next(batches, None)) is not None:
            rows += batch.num_rows
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
        raise Unreadable("it is not a CSV file that can be read", why=one_line(error)) from error
    limits.check_columns(len(shape.names))
    if not whole and len(rows) < ROWS + 2:
        rows.pop()  # the block may end within this row
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
        raise Unreadable(
            "the file's first line is not a JSON object",
            why="it needs one object per line, or an array of objects",
        )
    names = dict.fromkeys(name for document in documents for name in document)
    limits.check_columns(len(names))
    columns = {name: of_members([document.get(name) for document in documents]) for name in names}
    return Start("json", len(documents), columns)


_BINARY = re.compile(r"\.(?:parquet|avro|orc)(?:\.(?:gz|bz2|zst))?$", re.IGNORECASE)

STAGING = "${PINOT_ASSETS_STAGING}"
"""The staging area if no other place is sure to be outside of the files' folder."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A table spec that `pinot-assets init` may write.

    :ivar text: YAML.
    :ivar sampled: what was looked at, for people.
    :ivar unlike: files that cannot be read, or are written differently than the first one, and why.
    :ivar doubts: guesses that may be wrong, by their subject.
    """

    text: str
    proposal: Proposal
    input_format: str
    sampled: str
    unlike: Mapping[str, str]
    doubts: Mapping[str, str]


def draft(name: str, sample: FolderSample, props: Mapping[str, str], out: Path) -> Draft:
    """Look at the files and propose a table.

    :param props: how to reach the files, as in `input.fs.prop.*`.
    :param out: path of the new spec: local paths are written relative to it where they can be.
    :raises SourceError: none of the files can be read.
    """
    starts, unlike = _starts(sample, props)
    if not starts:
        reasons = "; ".join(f"{key}: {why}" for key, why in unlike.items())
        raise SourceError(
            f"no file in {sample.place} shows what the table could be",
            why=reasons or "the files are blank",
            hint="the formats are csv, json, parquet, avro and orc, plain or compressed with gzip, bzip2 "
            "or zstd",
        )
    first = starts[0]
    alike = [start for start in starts if start.input_format == first.input_format]
    proposal = propose(merged([(start.rows, start.columns) for start in alike]))
    rows = sum(start.rows for start in alike)
    more = "more than " if sample.more else ""
    looked_at = f"{plural(rows, 'row')} of {plural(len(alike), 'file')}"
    sampled = f"{looked_at}, of {more}{sample.count:,} in {sample.folder}"
    staging = _staging(name, sample.folder, out)
    settings = {
        "inputDirURI": _written(sample.folder, out),
        **{f"input.fs.prop.{prop}": value for prop, value in props.items()},
        "inputFormat": first.input_format,
    }
    if sample.include is not None:
        settings["includeFileNamePattern"] = sample.include
    text = proposed_spec(name, proposal, settings, staging, first.shape, sampled)
    return Draft(text, proposal, first.input_format, sampled, unlike, _doubts(sample, alike, proposal))


def trouble(spec: TableSpec, sample: FolderSample, props: Mapping[str, str]) -> dict[str, str]:
    """Return the files whose first rows a run could not build for this table, and why."""
    with local_copies(sample, props) as copies:
        return {key: why for key, path in copies if (why := tried(spec, path))}


def merged(files: Sequence[tuple[int, Mapping[str, SampledColumn]]]) -> dict[str, SampledColumn]:
    """Join the columns of several files into those of one table, in the order in which they first occur.

    :param files: number of rows and columns of each file.
    """
    joined: dict[str, SampledColumn] = {}
    before = 0
    for rows, columns in files:
        for name in [*joined, *(name for name in columns if name not in joined)]:
            so_far = joined.get(name) or absent(before)
            joined[name] = so_far.and_of(columns.get(name) or absent(rows))
        before += rows
    return joined


def _starts(sample: FolderSample, props: Mapping[str, str]) -> tuple[list[Start], dict[str, str]]:
    starts: list[Start] = []
    unlike: dict[str, str] = {}
    with local_copies(sample, props) as copies:
        for key, path in copies:
            try:
                start = read_start(path)
            except FileRejected as error:
                unlike[key] = error.reason
                continue
            if start is None:
                continue
            if start.input_format == "csv" and (named := _BINARY.search(key)) is not None:
                # Any text may be csv; with such an ending the file is damaged, or has a wrong name.
                unlike[key] = f"its name is {named[0]} and it contains text"
                continue
            columns = {name: column.in_file(key) for name, column in start.columns.items()}
            starts.append(replace(start, columns=columns))
            if (way := _way(start)) != (first := _way(starts[0])):
                unlike[key] = f"it has another form than the first file: {way}, not {first}"
    return starts, unlike


def _doubts(sample: FolderSample, starts: Sequence[Start], proposal: Proposal) -> dict[str, str]:
    shape = starts[0].shape
    doubts = {"the first row": shape.doubt} if shape is not None and shape.doubt else {}
    if not any(start.rows for start in starts):
        doubts["the types"] = "they are guesses, because the files have no rows: name files that have some"
    if shape is not None and shape.has_header and shape.renamed:
        names = ", ".join(f"{old or 'a column without a name'} as {new}" for old, new in shape.renamed)
        doubts["names of columns"] = (
            f"queries would need quotes for them, or they are there twice or empty, so a run reads {names}"
        )
    if sample.beside:
        there = counted(sample.beside, "with the same ending is", "with the same ending are")
        doubts["other files"] = (
            f"{there} beside or below the files that you named, and a run reads them, too: write a "
            "narrower includeFileNamePattern if it should not"
        )
    if renamed := [field for field in proposal.fields if field.source]:
        names = ", ".join(f"{field.source} as {field.name}" for field in renamed)
        doubts["names with blanks"] = (
            f"Pinot allows none, so transforms read {names}. Spark reads all of the table's files "
            "for that; or write the files with other names"
        )
    if reserved := [field.name for field in proposal.fields if column_needs_quotes(field.name)]:
        doubts["names that queries must quote"] = (
            f'write {", ".join(reserved)} in double quotes, as in SELECT "{reserved[0]}"'
        )
    for ending, count in sample.others.items():
        kind = f"files that end in {ending}" if ending else "files without an ending"
        alone = "left out: a table reads files of one format"
        read = alone if sample.include else "read by a run, but not looked at"
        doubts[kind] = f"{counted(count, 'is there, which is', 'are there, which are')} {read}"
    for column in proposal.fields:
        if column.doubt:
            odd = f": {column.odd_value!r}" if column.odd_value else ""
            doubts[f"column {column.name}"] = f"{column.doubt}{odd}"
    return doubts


def _way(start: Start) -> str:
    reader = {} if start.shape is None else start.shape.reader
    settings = ", ".join(f"{name} {value!r}" for name, value in reader.items())
    return f"{start.input_format} with {settings}" if settings else start.input_format


def _written(folder: str, out: Path) -> str:
    if not folder.startswith("file:"):
        return folder
    path = Path(parse_root(folder).path)
    # Relative if it is below the working directory: such a project can be moved as a whole.
    return os.path.relpath(path, out.parent.absolute()) if path.is_relative_to(Path.cwd()) else str(path)


def _staging(name: str, folder: str, out: Path) -> str:
    """Return a place outside of the files' folder."""
    if folder.startswith("file:"):
        place = local_staging(name, out)
        if not is_within(place.as_uri(), folder) and not is_within(folder, place.as_uri()):
            return os.path.relpath(place, out.parent.absolute())
        path = Path(parse_root(folder).path)
        return str(path.with_name(f"{path.name}-staging")) if path.name else f"{STAGING}/{name}"
    root = parse_root(folder)
    return f"{root.uri}-staging" if root.path else f"{STAGING}/{name}"
