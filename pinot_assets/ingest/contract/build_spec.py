"""What the session asks of a builder, and what Spark SQL makes of the rows, as plain picklable values.

And why a file was not built: the failure of an error, of the machine, of a worker or executor that died.

Libraries report trouble of the machine beside the errors of a damaged file; of a death, Spark tells.
"""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, Self, TypeVar

import pyarrow as pa

from pinot_assets.core.file_errors import FileRejected
from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.policy import Policy
from pinot_assets.core.stored_format import FIRST
from pinot_assets.errors import (
    PinotAssetsError,
    SettingError,
    SourceChanged,
    SourceError,
    StoreConflict,
    UnsupportedFeature,
)
from pinot_assets.ingest.contract.accepted_rows import MissingColumn
from pinot_assets.segment.config.transforms import Translation, read_transforms
from pinot_assets.settings.file_limits import FileLimits
from pinot_assets.snapshot.receipt import (
    BECAME_FOLDER,
    MACHINE,
    OUT_OF_MEMORY,
    WORKER_DIED,
    Failure,
    Receipt,
    SourceFile,
)


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
        ...

    def everywhere(self, look: Callable[[], T]) -> list[T]:
        """Run something at about every place where files are built; what they return.

        :param look: picklable, as its answer is.
        :raises BuildError: the builder itself broke.
        """
        ...


class Vanished(SourceError):
    """The file is not there any more."""


class BecameFolder(SourceError):
    """A folder is where the file was."""


_CODES: Final[tuple[tuple[type[PinotAssetsError], str], ...]] = (
    (BecameFolder, BECAME_FOLDER),
    (Vanished, "VANISHED"),
    (SourceChanged, "CHANGED_DURING_READ"),
    (StoreConflict, "STAGING_CONFLICT"),
    (SettingError, "SETTINGS"),
    (SourceError, "STORE"),
    (UnsupportedFeature, "UNSUPPORTED"),
    (PinotAssetsError, "BUILD"),
)

ADVICE: Final = (
    "fewer rows per segment (maxNumRecordsPerSegment, desiredSegmentSize), or more memory for workers "
    "(PINOT_ASSETS_WORKER_MEMORY, spark.executor.memoryOverhead, spark.executor.pyspark.memory)"
)
"""What to do about a file for which memory runs out."""

_MACHINE: Final = frozenset(
    (
        errno.EAGAIN,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOSPC,
        errno.EROFS,
        errno.ESTALE,
    )
)
_NO_MEMORY: Final = re.compile(
    r"^\W*(?:Caused by: )?(?:java\.lang\.OutOfMemoryError"
    r"|memory allocation of [0-9]+ bytes failed"  # Rust, before it aborts
    r"|what\(\):  std::bad_alloc"  # C++, the same
    r"|(?:[A-Za-z]+ error: )*(?:Resources exhausted"  # DataFusion, its errors one in the other
    r"|out of memory|Cannot allocate memory|memory allocation failed because the memory allocator"
    r"|Allocation error : not enough memory))"  # zstd within it
    r"|Out of memory: (?:malloc|realloc) of size [0-9]+ failed",  # Arrow, before it aborts
    re.MULTILINE,
)
"""What is written of it where there is no error of its own."""

_NO_THREAD: Final = ("Unknown error: Failed to launch worker thread", "can't start new thread")
"""Arrow's and Python's words for a limit of threads, or of their stacks' memory."""


def trouble_of(error: BaseException) -> str | None:
    """The code of a failure for which the file is not to blame; None where it may be.

    Looks at what caused the error, too: a reader may have taken it for a damaged file.
    """
    for one in _causes(error):
        if isinstance(one, MemoryError) or getattr(one, "errno", None) == errno.ENOMEM:
            return OUT_OF_MEMORY
        if isinstance(one, OSError) and one.errno in _MACHINE:
            return MACHINE
        if str(one).startswith(_NO_THREAD):
            return MACHINE
        # What our own errors, and Arrow's, quote of a file is not said by a library.
        is_quoting = isinstance(one, (PinotAssetsError, pa.ArrowException, ValueError))
        if not is_quoting and tells_of_memory(str(one)):
            return OUT_OF_MEMORY
    return None


def tells_of_memory(text: str) -> bool:
    """Whether a text, of a log or an error, says that memory ran out."""
    return _NO_MEMORY.search(text) is not None


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


_TASK: Final = re.compile(r"Task ([0-9]+) in stage [0-9.]+ failed [0-9]+ times")
_DEAD: Final = re.compile(
    r"Python worker exited unexpectedly"
    r"|PYTHON_WORKER_EXITED_UNEXPECTEDLY"
    r"|ExecutorLostFailure"
    r"|Executor heartbeat timed out"
)
_OF_MEMORY: Final = re.compile(
    r"Container killed by YARN for exceeding|OOMKilled|exit(?:ed with)? code:? (?:52|137)\b"
)
"""What resource managers say: 52 is the end of a JVM without memory, 137 that of a process by SIGKILL."""
_RAISED: Final = re.compile(r"^(?:Caused by: )?\S*\.PythonException\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Death:
    """The end of a job by the death of what ran one of its tasks.

    :ivar task: the task's place in its job, None where Spark does not say.
    :ivar of_memory: whether it was ended because memory ran out, as far as Spark knows.
    """

    task: int | None
    of_memory: bool

    def failure(self, build_spec: BuildSpec, task: FileTask, how: str) -> Failure:
        """The failure of a file whose worker, or executor, died again and again, or for its memory.

        :param how: Spark's words, or the process's end.
        """
        code = OUT_OF_MEMORY if self.of_memory else WORKER_DIED
        reason = f"what built the file died, alone as well: {how} → see Spark's log for its end"
        if self.of_memory:
            reason = f"the worker had too little memory for the file: {how} → {ADVICE}"
        return Failure(task.file.uri, task.ordinal, build_spec.attempt, code, reason)


def death_of(text: str) -> Death | None:
    """What a Spark error says of a worker that died; None where none did.

    :param text: the whole of it, stack traces included.
    """
    is_dead = _DEAD.search(text) is not None and not _RAISED.search(text)
    of_memory = tells_of_memory(text) or (is_dead and _OF_MEMORY.search(text) is not None)
    if not (is_dead or of_memory):
        return None
    found = _TASK.search(text)
    return Death(None if found is None else int(found[1]), of_memory)


def failure_of(build_spec: BuildSpec, task: FileTask, error: Exception) -> Failure:
    """What went wrong with one file as its outcome; `INTERNAL` for what is none of our own errors."""
    code, reason = _code(error), str(error)
    if not isinstance(error, PinotAssetsError):
        reason = f"{type(error).__name__}: {error}"
    if code == OUT_OF_MEMORY:
        reason = f"the worker had too little memory for the file: {reason} → {ADVICE}"
    elif code == MACHINE:
        reason = f"the machine {socket.gethostname()} failed, not the file: {reason}"
    # A damaged file may be quoted; its bytes must not steer the terminal that shows them.
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(reason.split()))
    return Failure(task.file.uri, task.ordinal, build_spec.attempt, code, text)


def _code(error: Exception) -> str:
    trouble = trouble_of(error)
    if trouble == OUT_OF_MEMORY or (trouble == MACHINE and not isinstance(error, SourceError)):
        return trouble
    if isinstance(error, FileRejected):
        return error.code
    return next((code for kind, code in _CODES if isinstance(error, kind)), "INTERNAL")
