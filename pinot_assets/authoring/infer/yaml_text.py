"""Write a proposal as a table spec with comments: each guess with what the sample shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from string import Template
from typing import Final

from pinot_assets.authoring.infer.csv_shape import CsvShape
from pinot_assets.authoring.infer.proposal import GROUPS, Field, Proposal
from pinot_assets.segment.column.types import FieldType
from pinot_assets.table_spec.yaml.writer import in_line

_HEAD: Final = Template(
    """\
# Written by `pinot-assets init` from $sampled.
# What is in doubt is said beside it: look through it, then `pinot-assets tables validate` and
# `pinot-assets tables apply`. docs/tables.md describes every key.
schema:
  schemaName: $name"""
)
_KEYS: Final = Template(
    """\
  # No value twice in the sample, so these may be keys: $keys.
  # Pinot keeps to no key in a table of files; assert it before each switch with audit:
  # (docs/guides/audit.md), or note it with primaryKeyColumns: [...]."""
)
_GROUPS: Final = (
    (FieldType.DIMENSION, "What queries filter and group by."),
    (FieldType.METRIC, "What queries add up."),
    (FieldType.DATE_TIME, "Times."),
)
_TABLE: Final = Template(
    """
table:
  tableName: $name
  tableType: OFFLINE
  segmentsConfig:
    $time
    replication: "1"
  tenants: {}
  tableIndexConfig:
    loadMode: MMAP$nulls
  ingestionConfig:
    batchIngestionConfig:
      # REFRESH keeps what is replaced for a while, so that there is a way back.
      segmentIngestionType: REFRESH
      segmentIngestionFrequency: DAILY
  metadata: {}
"""
)
_TIME: Final = "# Retention, and pruning by time, go by it.\n    timeColumnName: "
_NO_TIME: Final = "# No column is a time from 1971 to 2070 in every row; with one, add timeColumnName."
_NULLS: Final = """
    # Some values are missing. With this, IS NULL finds them; queries show Pinot's defaults in their place.
    nullHandlingEnabled: true"""
_SWITCH: Final = Template(
    """\
  # Where segments wait and snapshots are kept; outside of Pinot's own data and of the files.
  output.segment.dir.uri: $staging
  # All files of a session are shown at one instant; without this, each one once it is pushed.
  consistentPushEnabled: "true"
  # sync: the table is what the files are; append: rows are only ever added.
  ingestionMode: sync
  consistentPushMaxRetries: "3"
"""
)


def proposed_spec(
    name: str,
    proposal: Proposal,
    settings: Mapping[str, str],
    staging_uri: str,
    shape: CsvShape | None,
    sampled: str,
) -> str:
    """Return the whole YAML.

    :param settings: where the files are, and how they are reached: the first keys of `fileIngestion`.
    :param staging_uri: the staging area.
    :param shape: of csv files.
    :param sampled: what was looked at, for people.
    """
    time = _TIME + in_line(proposal.time) if proposal.time else _NO_TIME
    lines = [
        _HEAD.substitute(sampled=_comment(sampled), name=in_line(name)),
        *_schema(proposal),
        _TABLE.substitute(name=in_line(name), time=time, nulls=_NULLS if proposal.has_nulls else ""),
        "fileIngestion:",
        *_settings(settings),
        *_ingestion(proposal, shape),
        _SWITCH.substitute(staging=in_line(staging_uri)),
    ]
    return "\n".join(lines)


def _schema(proposal: Proposal) -> Iterator[str]:
    if proposal.keys:
        yield _KEYS.substitute(keys=_comment(", ".join(proposal.keys)))
    for column, why in proposal.left_out.items():
        yield f"  # Left out: {_comment(column)}, {_comment(why)}."
    for role, what in _GROUPS:
        if fields := proposal.of(role):
            yield f"  # {what}\n  {GROUPS[role]}:"
            yield from map(_field, fields)


def _field(field: Field) -> str:
    why = f" ({_comment(field.why)})" if field.why else ""
    doubt = f"    # In doubt: {_comment(field.doubt)}.\n" if field.doubt else ""
    members = ", ".join(f"{key}: {in_line(value)}" for key, value in field.spec.items())
    return (
        f"{doubt}    # {_comment(field.name)}: {field.data_type}{why}; {_comment(field.summary)}\n"
        f"    - {{{members}}}"
    )


def _ingestion(proposal: Proposal, shape: CsvShape | None) -> Iterator[str]:
    if shape is not None:
        yield from _reader(shape)
    for field in proposal.fields:
        if field.source:
            names = f"{_comment(field.name)} is {_comment(field.source)}"
            yield f"  # {names} in the files: Pinot takes no blank in a name."
    if made := {field.name: field.transform for field in proposal.fields if field.transform}:
        yield '  # Spark reads the files for these: pip install "pinot-assets[sql]".'
        yield from _settings(made, "transforms.")


def _reader(shape: CsvShape) -> Iterator[str]:
    if shape.doubt:
        yield f"  # The first row is in doubt: {shape.doubt}."
    if not shape.has_header:
        yield "  # Name the columns here and above."
    for old, new in shape.renamed:
        why = (
            f"is {_comment(old)} in the files: that is there twice, or queries would need quotes for it"
            if old
            else "has no name in the files"
        )
        yield f"  # {_comment(new)} {why}."
    yield from _settings(shape.reader, "recordReader.prop.")


def _settings(settings: Mapping[str, str], family: str = "") -> Iterable[str]:
    return (f"  {in_line(family + name)}: {in_line(value)}" for name, value in settings.items())


def _comment(text: str) -> str:
    """A text in one line, for any name that a file's column may have."""
    return "".join(c if c.isprintable() else "?" for c in text)
