"""The process that is killed: one step of one table through production's own wiring, without Spark.

Forked from a server that has imported everything, so that a start costs no more than a fork; what is forked
is a process of its own, with its own clients, which SIGKILL ends like any other.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from fakes.builder import BuildsHere

from pinot_assets.errors import PinotAssetsError
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.contract.builder import ignore_rows
from pinot_assets.ingest.task import build_file
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.clients import open_clients
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.settings.environment import Settings
from pinot_assets.snapshot.receipt import Failure, Receipt
from pinot_assets.table_spec import load_tables


@dataclass(frozen=True)
class Order:
    """What a driver process is to do.

    :ivar step: run, trigger, rollback, resume or clear.
    :ivar failing: base names of files that cannot be built.
    :ivar environ: variables that the table spec refers to.
    """

    specs: Path
    table: str
    settings: Settings
    step: str
    run_id: str
    failing: frozenset[str]
    environ: Mapping[str, str]


@dataclass(frozen=True)
class Answer:
    """How it ended.

    :ivar said: a trigger's result, or the name of the error.
    :ivar built: base names of the files that were built.
    """

    said: str
    text: str = ""
    built: tuple[str, ...] = ()

    @property
    def quiet(self) -> bool:
        """Whether there was nothing left to do."""
        return self.said in (TriggerResult.NOTHING, TriggerResult.HELD)


class Builder(BuildsHere):
    """Builds what it is told to, one file after the other, so that effects come in one order."""

    def __init__(self, failing: frozenset[str]) -> None:
        self._failing = failing
        self.built: list[str] = []

    def build(
        self,
        build_spec: BuildSpec,
        tasks: Sequence[FileTask],
        on_done: Callable[[Receipt | Failure], None],
        on_rows: Callable[[int], None] = ignore_rows,
    ) -> None:
        """Build, or fail as ordered."""
        for task in tasks:
            name = task.file.uri.rpartition("/")[2]
            self.built.append(name)
            if name in self._failing:
                failure = Failure(task.file.uri, task.ordinal, build_spec.attempt, "UNREADABLE", "as ordered")
                on_done(failure)
            else:
                on_done(build_file(build_spec, task))


def drive(order: Order, answer: Connection) -> None:
    """What the process runs."""
    os.environ.update(order.environ)
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # it tells of every connection that is cut
    builder = Builder(order.failing)
    try:
        said, text = _drive(order, builder)
    except PinotAssetsError as error:
        said, text = type(error).__name__, str(error)
    answer.send(Answer(said, text, tuple(builder.built)))


def _drive(order: Order, builder: Builder) -> tuple[str, str]:
    spec = load_tables(order.specs)[order.table]
    with (
        open_clients(spec, order.settings, builder) as clients,
        Driver(spec, clients, order.run_id) as driver,
    ):
        match order.step:
            case "rollback":
                return "ROLLED BACK", driver.rollback().session
            case "resume":
                return "RESUMED", str(driver.resume())
            case "clear":
                return "CLEARED", str(driver.clear())
        report = driver.trigger()
        if order.step == "run" and report.result in (TriggerResult.STAGED, TriggerResult.FAILED):
            _, findings = driver.audit()
            if not any(finding.blocks for finding in findings):
                driver.publish()
                return "PUBLISHED", "; ".join(report.notes)
            return "SHUT", "; ".join(f.message for f in findings if not f.passed)
        return report.result, "; ".join(report.notes)
