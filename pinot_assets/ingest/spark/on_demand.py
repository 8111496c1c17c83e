"""The environment's Spark for a process that may have nothing to build: the command line's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeVar

from pinot_assets.ingest.contract.build_spec import Builder, BuildSpec, FileTask, nobody
from pinot_assets.snapshot.receipt import FileResult

T = TypeVar("T")


class SparkOnDemand:
    """A `Builder` (see there) on the Spark that the environment asks for.

    PySpark is imported, and Spark starts, with the first file to build.
    """

    @cached_property
    def _builder(self) -> Builder:
        from pinot_assets.ingest.spark.builder import SparkBuilder
        from pinot_assets.ingest.spark.environment import environment_context, environment_session

        return SparkBuilder(environment_session, environment_context)

    def build(
        self,
        build_spec: BuildSpec,
        tasks: Sequence[FileTask],
        on_done: Callable[[FileResult], None],
        on_rows: Callable[[int], None] = nobody,
    ) -> None:
        """Build all tasks, if there are any; see `SparkBuilder.build`."""
        if tasks:
            self._builder.build(build_spec, tasks, on_done, on_rows)

    def everywhere(self, look: Callable[[], T]) -> list[T]:
        """Call `look` where files are built; see `SparkBuilder.everywhere`."""
        return self._builder.everywhere(look)
