"""What the session gives a builder, with the query of Spark SQL for the rows; plain picklable values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from pinot_assets.core.installation_policy import Policy
from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.stored_format import FIRST
from pinot_assets.errors import UnsupportedFeature
from pinot_assets.ingest.contract.accepted_rows import MissingColumn
from pinot_assets.segment.config.transforms import Translation, read_transforms
from pinot_assets.segment.functions.pinot_functions import LongSteps
from pinot_assets.segment.values.cells import CellSettings
from pinot_assets.settings.file_limits import FileLimits
from pinot_assets.snapshot.receipt import SourceFile


@dataclass(frozen=True, slots=True)
class Query:
    """Spark SQL expressions, in the order in which they are applied. Without any, the rows do not change.

    :ivar where: condition on the file's columns; rows that meet it stay.
    :ivar transforms: columns of the table, computed from the file's columns, all at once.
    :ivar derived: columns filled where they are null, one after the other: Pinot's `transformConfigs`.
    :ivar dropped: condition on the columns after that; rows that meet it go: Pinot's `filterConfig`.
    """

    where: str = ""
    transforms: Mapping[str, str] = field(default_factory=dict)
    derived: tuple[tuple[str, Translation], ...] = ()
    dropped: Translation | None = None

    @classmethod
    def of(cls, where: str, transforms: Mapping[str, str], table_config: JsonMapping) -> Self:
        """Return the query of a table spec.

        :param table_config: a table config that the segment writer accepts.
        :raises UnsupportedFeature: its `transformConfigs` or `filterConfig` cannot be translated.
        """
        pinot = read_transforms(table_config)
        if pinot.problems:
            raise UnsupportedFeature(
                "the table's own functions cannot be translated to Spark SQL",
                why="; ".join(pinot.problems),
                hint="write transforms and filter in fileIngestion",
            )
        return cls(where, dict(transforms), pinot.derived, pinot.dropped)

    @property
    def drops_rows(self) -> bool:
        """Whether a filter may drop rows that are not bad."""
        return bool(self.where) or self.dropped is not None

    def columns_used(self, of_table: Iterable[str], read: Iterable[str]) -> tuple[str, ...]:
        """Return the table's columns that no expression makes, then the columns that expressions read."""
        made = {*self.transforms, *dict(self.derived)}
        return tuple(dict.fromkeys([*(name for name in of_table if name not in made), *read]))

    @property
    def long_steps(self) -> tuple[tuple[str, LongSteps], ...]:
        """Return the columns that are filled, with their steps; none unless such steps are all there is."""
        steps = [(column, made.long_steps) for column, made in self.derived if made.long_steps is not None]
        rest = self.drops_rows or self.transforms or len(steps) < len(self.derived)
        return () if rest else tuple(steps)

    @property
    def expressions(self) -> dict[str, str]:
        """Return all expressions, by the keys under which people know them."""
        named = {
            "filter": self.where,
            "filterConfig": self.dropped.sql if self.dropped else "",
            **{f"transforms.{column}": sql for column, sql in self.transforms.items()},
            **{f"transformConfigs of {column}": made.sql for column, made in self.derived},
        }
        return {name: sql for name, sql in named.items() if sql}


@dataclass(frozen=True, slots=True)
class PackSettings:
    """What tasks need for packs.

    :ivar staging_uri: the table's folder in the staging area: member lists and rows objects.
    :ivar target_bytes: size of a segment as servers hold it, unpacked.
    :ivar bytes_per_row: how many of these bytes a row needs in published packs; 0 if none are published: then
        the task that reads the rows measures it.
    :ivar cells: what decides which rows may share a segment; None if all may.
    """

    staging_uri: str
    target_bytes: int
    bytes_per_row: float = 0.0
    cells: CellSettings | None = None


@dataclass(frozen=True, slots=True)
class BuildSpec:
    """The settings that all files of one attempt share.

    :ivar table: raw table name.
    :ivar session: session id, `cp<seq>-<nonce>`.
    :ivar attempt: number of the attempt; part of receipts and segment names.
    :ivar creation_time_ms: creation time written into every segment of the session, so that a task run
        twice makes the same bytes.
    :ivar schema: Pinot schema, as JSON values.
    :ivar table_config: Pinot table config, as JSON values.
    :ivar input_format: `csv`, `json`, `parquet`, `avro` or `orc`.
    :ivar reader: format settings (`delimiter`, `header`, `nullStringValue`, …).
    :ivar source_uri: the input directory.
    :ivar source_props: settings to reach it; names of environment variables, never secrets.
    :ivar staging_uri: the session's own folder in the staging area
        (`<output.segment.dir.uri>/sessions/<session>`): receipts go to `files/` below it.
    :ivar segments_uri: folder for tars (`<output.segment.dir.uri>/segments`).
    :ivar staging_props: settings to reach the staging area.
    :ivar max_rows_per_segment: most rows of a segment; a larger file becomes several segments.
    :ivar write_for: release of the oldest Pinot server that must be able to read the segments.
    :ivar desired_segment_bytes: about how large a segment's rows may be in memory, None for no limit.
    :ivar max_bad_rows: how many rows of a file may be put aside (`100`, `0.5%`); None: a bad row fails it.
    :ivar missing_column: what happens if a file lacks a column: it is all null (`null`), or the file fails
        (`fail`).
    :ivar provenance_column: column that gets the path of each row's file, "" for none.
    :ivar policy: what the table spec may reach, on every machine that builds.
    :ivar query: Spark SQL for the rows; Spark's own readers then read the file, or ours if Spark has none
        for its format (`spark_formats`). None: Arrow reads it.
    :ivar limits: how much of one file a worker may load.
    :ivar format: format of the receipts.
    :ivar packs: None for a table without packs.
    """

    table: str
    session: str
    attempt: int
    creation_time_ms: int
    schema: JsonMapping
    table_config: JsonMapping
    input_format: str
    reader: Mapping[str, str]
    source_uri: str
    source_props: Mapping[str, str]
    staging_uri: str
    segments_uri: str
    staging_props: Mapping[str, str]
    max_rows_per_segment: int
    write_for: str
    policy: Policy
    desired_segment_bytes: int | None = None
    max_bad_rows: str | None = None
    missing_column: MissingColumn = "null"
    provenance_column: str = ""
    query: Query | None = None
    limits: FileLimits = field(default_factory=FileLimits)
    format: int = FIRST
    packs: PackSettings | None = None


class TaskKind(StrEnum):
    """What a task makes."""

    FILE = "FILE"
    """Segments of one file."""
    SMALL_FILE = "SMALL_FILE"
    """Rows of one file, which wait for their pack."""
    PACK = "PACK"
    """Segments of one pack, from rows that were read before."""


@dataclass(frozen=True, slots=True)
class FileTask:
    """One file to build: its planned version and its number in the session; or one pack, and then the file is
    its member list."""

    file: SourceFile
    ordinal: int
    kind: TaskKind = TaskKind.FILE


def segment_name(table: str, session: str, attempt: int, ordinal: int, k: int) -> str:
    """Return the name of the k-th segment of one file: `<table>__<session>_<attempt>_<ordinal>_<k>`.

    Source: docs/design/session.md#segment-names, rules R16 and R17.
    """
    return f"{table}__{session}_{attempt}_{ordinal}_{k}"
