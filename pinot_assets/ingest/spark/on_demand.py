"""The environment's Spark for a process that may have nothing to build: the command line's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pinot_assets.ingest.contract.builder import Builder, ignore_rows
from pinot_assets.snapshot.receipt import FileResult

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask

T = TypeVar("T")


class SparkOnDemand:
    """A `Builder` (see there) on the Spark that the environment asks for.

    PySpark is imported, and Spark starts, with the first file to build.

    :param starting: entered while Spark starts.
    :param log: file for what Spark's JVM writes on standard error; None shares this process's.
    """

    def __init__(
        self,
        starting: Callable[[], AbstractContextManager[None]] = nullcontext,
        log: Path | None = None,
    ) -> None:
        self._starting, self._log = starting, log

    @cached_property
    def _builder(self) -> Builder:
        with self._starting():
            from pinot_assets.ingest.spark.builder import SparkBuilder
        return SparkBuilder(self._session, self._context)

    def _session(self) -> SparkSession:
        from pinot_assets.ingest.spark.environment import environment_session

        with self._starting():
            return environment_session(log=self._log)

    def _context(self) -> SparkContext:
        from pinot_assets.ingest.spark.environment import environment_context

        with self._starting():
            return environment_context(log=self._log)

    def build(
        self,
        build_spec: BuildSpec,
        tasks: Sequence[FileTask],
        on_done: Callable[[FileResult], None],
        on_rows: Callable[[int], None] = ignore_rows,
    ) -> None:
        """Build all tasks, if there are any; see `SparkBuilder.build`."""
        if tasks:
            self._builder.build(build_spec, tasks, on_done, on_rows)

    def everywhere(self, look: Callable[[], T]) -> list[T]:
        """Call `look` where files are built; see `SparkBuilder.everywhere`."""
        return self._builder.everywhere(look)
