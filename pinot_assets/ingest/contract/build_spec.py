"""What the session asks of a builder, and what Spark SQL makes of the rows, as plain picklable values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self, TypeVar

from pinot_assets.core.installation_policy import Policy
from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.stored_format import FIRST
from pinot_assets.errors import UnsupportedFeature
from pinot_assets.ingest.contract.accepted_rows import MissingColumn
from pinot_assets.segment.config.transforms import Translation, read_transforms
from pinot_assets.settings.file_limits import FileLimits
from pinot_assets.snapshot.receipt import Failure, Receipt, SourceFile


@dataclass(frozen=True, slots=True)
class Query:
    """Spark SQL expressions, in the order in which they are applied. With none, rows stay as they are.

    :ivar where: rows that stay, judged by the file's columns.
    :ivar transforms: columns of the table made of the file's columns, all of them at once.
    :ivar derived: columns filled where they are null, one after the other: Pinot's `transformConfigs`.
    :ivar dropped: rows that go, judged by what the columns are then: Pinot's `filterConfig`.
    """

    where: str = ""
    transforms: Mapping[str, str] = field(default_factory=dict)
    derived: tuple[tuple[str, Translation], ...] = ()
    dropped: Translation | None = None

    @classmethod
    def of(cls, where: str, transforms: Mapping[str, str], table_config: JsonMapping) -> Self:
        """The query of a table spec.

        :param table_config: one that the segment writer takes.
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
        """Whether rows go that are not bad."""
        return bool(self.where) or self.dropped is not None

    @property
    def expressions(self) -> dict[str, str]:
        """All of them, by what people call them."""
        named = {
            "filter": self.where,
            "filterConfig": self.dropped.sql if self.dropped else "",
            **{f"transforms.{column}": sql for column, sql in self.transforms.items()},
            **{f"transformConfigs of {column}": made.sql for column, made in self.derived},
        }
        return {name: sql for name, sql in named.items() if sql}


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BuildSpec:
    """What all files of one attempt have in common.

    :ivar table: raw table name.
    :ivar session: session id, `cp<seq>-<nonce>`.
    :ivar attempt: number of the attempt; stands in receipts and segment names.
    :ivar creation_time_ms: creation time written into every segment of the session, so that a task run
        twice makes the same bytes.
    :ivar schema: Pinot schema, as JSON values.
    :ivar table_config: Pinot table config, as JSON values.
    :ivar input_format: `csv`, `json`, `parquet`, `avro` or `orc`.
    :ivar reader: format settings (`delimiter`, `header`, `nullStringValue`, …).
    :ivar source_uri: the input directory.
    :ivar source_props: how to reach it; names of environment variables, never secrets.
    :ivar staging_uri: the session's own folder in the staging area
        (`<output.segment.dir.uri>/sessions/<session>`): receipts go to `files/` below it.
    :ivar segments_uri: where tars go (`<output.segment.dir.uri>/segments`).
    :ivar staging_props: how to reach the staging area.
    :ivar max_rows_per_segment: a larger file becomes several segments.
    :ivar min_server: oldest Pinot server that must be able to read the segments.
    :ivar desired_segment_bytes: about how large a segment's rows may be in memory, None if that is no matter.
    :ivar max_bad_rows: how many rows of a file may be put aside (`100`, `0.5%`), None if a bad one fails it.
    :ivar missing_column: what a column becomes that a file lacks: `null`, or the file fails (`fail`).
    :ivar policy: what the table spec may reach, on every machine that builds.
    :ivar query: what Spark SQL makes of the rows, which Spark's own readers then read; None where they are
        read through Arrow.
    :ivar limits: how much of one file a worker takes in.
    :ivar format: of the receipts.
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
    min_server: str
    policy: Policy
    desired_segment_bytes: int | None = None
    max_bad_rows: str | None = None
    missing_column: MissingColumn = "null"
    query: Query | None = None
    limits: FileLimits = field(default_factory=FileLimits)
    format: int = FIRST


@dataclass(frozen=True, slots=True)
class FileTask:
    """One file to build: the version planned and its number in the session."""

    file: SourceFile
    ordinal: int


def segment_name(table: str, session: str, attempt: int, ordinal: int, k: int) -> str:
    """Name of the k-th segment of one file: `<table>__<session>_<attempt>_<ordinal>_<k>`.

    Source: docs/design/session.md#segment-names, rules R16 and R17.
    """
    return f"{table}__{session}_{attempt}_{ordinal}_{k}"


def nobody(rows: int) -> None:
    """Hears how many rows are read, and does nothing."""


class Builder(Protocol):
    """Turns files into staged segments; Spark's in production."""

    def build(
        self,
        build_spec: BuildSpec,
        tasks: Sequence[FileTask],
        on_done: Callable[[Receipt | Failure], None],
        on_rows: Callable[[int], None] = nobody,
    ) -> None:
        """Build all tasks; call `on_done` once for each, in any order, from the calling thread.

        `on_rows` is told, from the same thread, how many rows are read of files that are not done: only when
        a task has come further, so that it never speaks for one that hangs.

        One file's failure is a `Failure`, never an exception. An exception means that the builder itself
        broke (the Spark application died); the files without an `on_done` are then not built.
        """

    def everywhere(self, look: Callable[[], T]) -> list[T]:
        """Run something at about every place where files are built; what they return.

        :param look: picklable, as its answer is.
        :raises BuildError: the builder itself broke.
        """
