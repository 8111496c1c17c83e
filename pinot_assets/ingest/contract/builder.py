"""What turns files into segments, as a session sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from pinot_assets.snapshot.receipt import Failure, Receipt

if TYPE_CHECKING:
    from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask  # loads what only builds need

T = TypeVar("T")


def ignore_rows(rows: int) -> None:
    """Ignore how many rows are read: the default of `on_rows`."""


class Builder(Protocol):
    """Turns files into staged segments; in production with Spark."""

    def build(
        self,
        build_spec: BuildSpec,
        tasks: Sequence[FileTask],
        on_done: Callable[[Receipt | Failure], None],
        on_rows: Callable[[int], None] = ignore_rows,
    ) -> None:
        """Build all tasks; call `on_done` once for each, in any order, from the calling thread.

        Call `on_rows` from the same thread with the rows read of files that are not done. Call it only when
        a task made progress, so that a task that hangs never looks alive.

        One file's failure is a `Failure`, never an exception. An exception means that the builder itself
        broke (the Spark application died); the files without an `on_done` are then not built.
        """

    def everywhere(self, look: Callable[[], T]) -> list[T]:
        """Call `look` at about every place where files are built; return all its results.

        :param look: picklable, and so is its result.
        :raises BuildError: the builder itself broke.
        """
