"""The code location with a breakpoint in its builds.

`RUNS_FOLDER` is the folder of the table: a file is not built while `hold-<name>` lies there, and `built`
gets a line for each one that was.
"""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from pinot_assets import definitions
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.contract.builder import ignore_rows
from pinot_assets.ingest.task import build_file
from pinot_assets.resources import consistent_push
from pinot_assets.scheduling import stalled_session
from pinot_assets.sensors import session
from pinot_assets.snapshot.receipt import Failure, Receipt

T = TypeVar("T")

FOLDER = Path(os.environ["RUNS_FOLDER"])


class PausingBuilder:
    """One file after the other, in this process."""

    def everywhere(self, look: Callable[[], T]) -> list[T]:
        return [look()]

    def build(
        self,
        build_spec: BuildSpec,
        tasks: Sequence[FileTask],
        on_done: Callable[[Receipt | Failure], None],
        on_rows: Callable[[int], None] = ignore_rows,
    ) -> None:
        for task in tasks:
            name = task.file.uri.rsplit("/", 1)[-1]
            while (FOLDER / f"hold-{name}").exists():
                time.sleep(0.1)
            outcome = build_file(build_spec, task)
            with (FOLDER / "built").open("a") as log:
                log.write(f"{name}\n")
            on_done(outcome)


vars(consistent_push)["SparkBuilder"] = lambda *_: PausingBuilder()
# A minute less to wait for.
stalled_session.PATIENCE_S = 5
session.INTERVAL_S = 5

defs = definitions.build_definitions(FOLDER / "tables")
