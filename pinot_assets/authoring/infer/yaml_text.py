"""A proposal as a table spec with comments: each guess with what was seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pinot_assets.authoring.infer.csv_shape import CsvShape
from pinot_assets.authoring.infer.proposal import GROUPS, Field, Proposal
from pinot_assets.segment.column.types import FieldType
from pinot_assets.table_spec.yaml.writer import in_line

_GROUPS = (
    (FieldType.DIMENSION, "What queries filter and group by."),
    (FieldType.METRIC, "What queries add up."),
    (FieldType.DATE_TIME, "Times."),
)


@dataclass(frozen=True, slots=True)
class SpecPlaces:
    """Where files lie and where segments wait.

    :ivar input_uri: as written in the YAML.
    :ivar include: pattern of the files' names, None for all.
    :ivar staging_uri: as written in the YAML.
    :ivar props: how to reach the files: `input.fs.prop.*`.
    """

    input_uri: str
    include: str | None
    staging_uri: str
    props: Mapping[str, str]


def spec_text(
    name: str, proposal: Proposal, input_format: str, place: SpecPlaces, shape: CsvShape | None, sampled: str
) -> str:
    """The whole YAML.

    :param shape: of csv files.
    :param sampled: what was looked at, for people.
    """
    lines = [
        f"# Written by `pinot-assets init` from {_comment(sampled)}.",
        "# What is in doubt is said beside it: look through it, then `pinot-assets tables validate` and",
        "# `pinot-assets tables apply`. docs/tables.md describes every key.",
        *_schema(name, proposal),
        "",
        *_table(name, proposal),
        "",
        *_ingestion(proposal, input_format, place, shape),
    ]
    return "\n".join(lines) + "\n"


def _schema(name: str, proposal: Proposal) -> Iterator[str]:
    yield "schema:"
    yield f"  schemaName: {in_line(name)}"
    if proposal.keys:
        yield f"  # No value twice in the sample, so these may be keys: {_comment(', '.join(proposal.keys))}."
        yield "  # Pinot keeps to no key in a table of files; assert it before each switch with audit:"
        yield "  # (docs/guides/audit.md), or note it with primaryKeyColumns: [...]."
    for column, why in proposal.left_out.items():
        yield f"  # Left out: {_comment(column)}, {_comment(why)}."
    for role, what in _GROUPS:
        fields = proposal.of(role)
        if not fields:
            continue
        yield f"  # {what}"
        yield f"  {GROUPS[role]}:"
        for field in fields:
            yield from _field(field)


def _field(field: Field) -> Iterator[str]:
    why = f" ({_comment(field.why)})" if field.why else ""
    if field.doubt:
        yield f"    # In doubt: {_comment(field.doubt)}."
    yield f"    # {_comment(field.name)}: {field.data_type}{why}; {_comment(field.seen)}"
    yield f"    - {{{', '.join(f'{key}: {in_line(value)}' for key, value in field.spec.items())}}}"


def _table(name: str, proposal: Proposal) -> Iterator[str]:
    yield "table:"
    yield f"  tableName: {in_line(name)}"
    yield "  tableType: OFFLINE"
    yield "  segmentsConfig:"
    if proposal.time:
        yield "    # Retention, and pruning by time, go by it."
        yield f"    timeColumnName: {in_line(proposal.time)}"
    else:
        yield "    # No column is a time from 1971 to 2070 in every row; with one, add timeColumnName."
    yield '    replication: "1"'
    yield "  tenants: {}"
    yield "  tableIndexConfig:"
    yield "    loadMode: MMAP"
    if proposal.has_nulls:
        yield "    # Some values are missing; without this, queries see Pinot's defaults in their place."
        yield "    nullHandlingEnabled: true"
    yield "  ingestionConfig:"
    yield "    batchIngestionConfig:"
    yield "      # REFRESH keeps what is replaced for a while, so that there is a way back."
    yield "      segmentIngestionType: REFRESH"
    yield "      segmentIngestionFrequency: DAILY"
    yield "  metadata: {}"


def _ingestion(
    proposal: Proposal, input_format: str, place: SpecPlaces, shape: CsvShape | None
) -> Iterator[str]:
    yield "fileIngestion:"
    yield f"  inputDirURI: {in_line(place.input_uri)}"
    yield from _settings("input.fs.prop", place.props)
    yield f"  inputFormat: {input_format}"
    if place.include is not None:
        yield f"  includeFileNamePattern: {in_line(place.include)}"
    if shape is not None:
        yield from _reader(shape)
    for field in proposal.fields:
        if field.source:
            source = _comment(field.source)
            yield f"  # {_comment(field.name)} is {source} in the files: Pinot takes no blank in a name."
    made = {field.name: field.transform for field in proposal.fields if field.transform}
    if made:
        yield '  # Spark reads the files for these: pip install "pinot-assets[sql]".'
        yield from _settings("transforms", made)
    yield "  # Where segments wait and snapshots are kept; outside of Pinot's own data and of the files."
    yield f"  output.segment.dir.uri: {in_line(place.staging_uri)}"
    yield "  # All files of a session are shown at one instant; without this, each one once it is pushed."
    yield '  consistentPushEnabled: "true"'
    yield "  # sync: the table is what the files are; append: rows are only ever added."
    yield "  ingestionMode: sync"
    yield '  consistentPushMaxRetries: "3"'


def _reader(shape: CsvShape) -> Iterator[str]:
    if shape.doubt:
        yield f"  # The first row is in doubt: {shape.doubt}."
    if not shape.has_header:
        yield "  # Name the columns here and above."
    for old, new in shape.renamed:
        yield f"  # {_comment(new)} {_why_renamed(old)}."
    yield from _settings("recordReader.prop", shape.reader)


def _why_renamed(old: str) -> str:
    if not old:
        return "has no name in the files"
    name = _comment(old)
    return f"is {name} in the files: that is there twice, or queries would need quotes for it"


def _settings(family: str, settings: Mapping[str, str]) -> Iterable[str]:
    return (f"  {in_line(f'{family}.{name}')}: {in_line(value)}" for name, value in settings.items())


def _comment(text: str) -> str:
    """A text in one line, whatever a file's columns are called."""
    return "".join(c if c.isprintable() else "?" for c in text)
