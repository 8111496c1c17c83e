"""Three times a file loses half of its rows, and each time another tier of the audit keeps the gate shut.
Meanwhile four threads query both brokers.

Tier 1 checks the built files, tier 2 what the servers loaded, and tier 3 queries it. In each case the same
audit then passes the repaired file: an audit that stops everything would prove nothing.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Final, cast
from urllib.parse import unquote, urlsplit

from rich.console import Console
from rich.table import Table

from demos.load import LoadReport, QueryAnswer, QueryLoad
from demos.steps import LEAST_ANSWERS, TABLE, Story, World, flights_under_load, show_queries
from pinot_assets.audit.checks import Finding
from pinot_assets.errors import SnapshotIncomplete
from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.ingest.spark.environment import environment_context, environment_session
from pinot_assets.pinot import HttpPinotClient, PinotClient, PushReport
from pinot_assets.pinot.shadow_table import shadow_tables
from pinot_assets.segment import rename_tar
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.clients import open_clients
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.settings.environment import load_settings, tables_directory
from pinot_assets.snapshot.receipt import Output
from pinot_assets.table_spec import TableSpec, load_tables
from pinot_assets.table_spec.tables.apply import apply_plan, plan_apply
from pinot_assets.table_spec.yaml.writer import dumped

DAYS = 10
CASES = 3

BY_FILE: Final = [{"check": "row_change", "of": "file", "min": "-20%"}]
"""Tier 1: a rewritten file may not lose more than a fifth of its rows."""
BY_SERVERS: Final = [
    {"sql": f"SELECT month, day, COUNT(*) FROM {TABLE} GROUP BY month, day", "expect": "after >= 0.8 * live"}
]
"""Tier 3: no day may lose more than a fifth of its rows; the servers are queried."""
BY_SHADOW: Final = [
    {
        "sql": f"SELECT month, day, DISTINCTCOUNT(tailnum) FROM {TABLE} GROUP BY month, day",
        "expect": "after >= 0.8 * live",
        "via": "shadow",
    }
]
"""Tier 3: no day may lose more than a fifth of its aircraft, which only a broker can count."""


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One line of the table at the end.

    :ivar tier: the tier that the step shows, 0 for none.
    :ivar stopped_by: names of the findings that kept the gate shut; empty if the run switched.
    """

    key: str
    title: str
    tier: int
    seconds: float
    stopped_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StorySummary:
    """The result of all steps and of the load.

    :ivar stopped: number of tiers that stopped their bad file.
    :ivar mixed: answers that match neither the table before a step nor the one after it.
    :ivar errors: queries without an answer.
    :ivar answers: number of answers that were judged.
    """

    stopped: int
    mixed: int
    errors: int
    answers: int

    @property
    def well(self) -> bool:
        """Whether the demo shows what it promises."""
        return self.stopped == CASES and self.mixed == self.errors == 0 and self.answers >= LEAST_ANSWERS

    def __str__(self) -> str:
        return f"stopped by tiers: {self.stopped} of {CASES}, mixed answers: {self.mixed}"


def verdict(steps: Sequence[AuditLine], report: LoadReport) -> StorySummary:
    """Return the numbers that decide whether the demo succeeded."""
    stopped = {step.tier for step in steps if step.tier and step.stopped_by}
    return StorySummary(len(stopped), report.mixed, report.errors, report.queries - report.errors)


def tell(home: Path, console: Console, release: str | None = None) -> bool:
    """Start a stack for the demo, run all steps on it, stop and purge it.

    :param home: folder for stack, files and tables; removed before and after.
    :param release: a release of Apache Pinot; None for that of a new local stack.
    :returns: whether each tier stopped its case, and no query saw any of the bad data.
    :raises PinotAssetsError: a step did not do what it promises.
    """
    with flights_under_load(home, console, release) as (pinot, load):
        steps = AuditStory(home, console, pinot, load).tell()
    return show(console, steps, load.report())


def write_spec(folder: Path, audit: Sequence[dict[str, str]]) -> None:
    """Write the spec of the sample table with this `audit:` block, or without one if it is empty."""
    name = f"{TABLE}.yaml"
    text = (tables_directory() / name).read_text()
    block = dumped({"audit": list(audit)}) if audit else ""
    (folder / name).write_text(f"{text}\n{block}")


def wrong_on_the_way(pinot: PinotClient, other: Path) -> PinotClient:
    """Return a Pinot client whose push sends another tar than the one in the staging area.

    During a push, each staged tar is replaced by another segment's tar under the same name. Before and after
    it, the staging area is as it was built. All other calls go to the real client unchanged.

    :param pinot: the real client.
    :param other: the tar that is sent instead.
    """
    return cast("PinotClient", _WrongOnTheWay(pinot, other))


class _WrongOnTheWay:
    """Has the methods of `PinotClient`: it delegates all of them except `push`."""

    def __init__(self, pinot: PinotClient, other: Path) -> None:
        self._pinot = pinot
        self._other = other

    def __getattr__(self, name: str) -> object:
        return getattr(self._pinot, name)

    def push(self, table: str, outputs: Sequence[Output], **options: object) -> PushReport:
        """Push the wrong tars, then restore the right ones."""
        tars = {output.segment: tar_of(output) for output in outputs}
        built = {tar: tar.read_bytes() for tar in tars.values()}
        push: Callable[..., PushReport] = self._pinot.push
        try:
            for name, tar in tars.items():
                rename_tar(self._other, tar, name=name)
            return push(table, outputs, **options)
        finally:
            for tar, content in built.items():
                tar.write_bytes(content)


def tar_of(output: Output) -> Path:
    """Return the path of the tar on this machine."""
    return Path(unquote(urlsplit(output.tar_uri).path))


class AuditStory(Story[AuditLine]):
    """Three cases under load: in each a bad file is stopped, and then the good one is published."""

    def __init__(self, home: Path, console: Console, pinot: HttpPinotClient, load: QueryLoad) -> None:
        super().__init__(console, pinot, load)
        self._tables = home / "tables"
        self._half = home / "half.tar.gz"
        self._world = World(home / "data" / TABLE, DAYS)
        self._builder = SparkBuilder(environment_session, environment_context)
        self._served: QueryAnswer = ()

    def tell(self) -> list[AuditLine]:
        """Run all steps in order, and return a line for each."""
        write_spec(self._tables, ())
        apply_plan(plan_apply(self._spec(), self._pinot), self._pinot)
        for number in range(DAYS):
            self._world.add(self._world.day(number))
        self._passes("0", f"{DAYS} days of flights", 0)
        self._lost_at_the_source()
        self._lost_on_the_way()
        self._lost_without_a_bound()
        return self._steps

    # --- the cases -------------------------------------------------------------------------------

    def _lost_at_the_source(self) -> None:
        write_spec(self._tables, BY_FILE)
        day = self._bad_file(2)
        self._stops("1a", "a file lost half of its rows at the source", 1, ["row_change of file"])
        self._world.repair(day)
        self._passes("1b", "the file, whole", 1)

    def _lost_on_the_way(self) -> None:
        """Stop a push in which file and staged tar are complete, but Pinot got another tar."""
        self._world.rewrite(self._world.day(4))
        title = "a tar lost half of its rows on its way to Pinot"
        self._stops(
            "2a", title, 2, ["crc_on_servers", "rows_as_built"], lambda it: wrong_on_the_way(it, self._half)
        )
        self._passes("2b", "the tar, as it was built", 2)

    def _lost_without_a_bound(self) -> None:
        write_spec(self._tables, BY_SERVERS)
        day = self._bad_file(6)
        self._stops("3a", "a file lost half of its rows; servers are asked", 3, ["sql"])
        write_spec(self._tables, BY_SHADOW)
        self._stops("3b", "the same; a shadow table is asked", 3, ["sql via shadow"])
        self._world.repair(day)
        self._passes("3c", "the file, whole", 3)

    def _bad_file(self, number: int) -> date:
        """Rewrite the file of a day and lose half of its rows; return the day."""
        day = self._world.day(number)
        self._world.rewrite(day)
        self._world.halve(day)
        return day

    # --- one step --------------------------------------------------------------------------------

    def _stops(
        self,
        key: str,
        title: str,
        tier: int,
        by: Sequence[str],
        meddle: Callable[[PinotClient], PinotClient] = lambda pinot: pinot,
    ) -> None:
        """Run, and require that only these checks keep the gate shut and that queries see no change."""
        with self._step(key, title, tier, [self._served]) as stopped_by:
            stopped_by += self._run(meddle)
            as_expected = bool(stopped_by) and set(stopped_by) <= set(by)
            self._require(as_expected, f"stopped by {stopped_by}, expected {list(by)}")
            self._require_answer(self._served)

    def _passes(self, key: str, title: str, tier: int) -> None:
        """Run, and require that the run switches."""
        after = self._world.answer()
        self._require(after != self._served, "the step would change nothing")
        with self._step(key, title, tier, [self._served, after]) as stopped_by:
            stopped_by += self._run(lambda pinot: pinot)
            self._require(not stopped_by, f"stopped by {stopped_by}")
            self._require_answer(after)
        self._served = after

    @contextmanager
    def _step(self, key: str, title: str, tier: int, allowed: Sequence[QueryAnswer]) -> Iterator[list[str]]:
        with self._under_load(key, title, allowed):
            start, stopped_by = time.monotonic(), list[str]()
            yield stopped_by
            seconds = time.monotonic() - start
        self._steps.append(AuditLine(key, title, tier, seconds, tuple(stopped_by)))
        left = shadow_tables(self._pinot, self._pinot.offline_tables())
        self._require(not left, f"{left} were left behind")

    def _run(self, meddle: Callable[[PinotClient], PinotClient]) -> list[str]:
        """Build, stage, audit and, if the gate is open, switch; return the checks that kept the gate shut."""
        spec, settings = self._spec(), load_settings()
        with open_clients(spec, settings, self._builder) as clients:
            clients = replace(clients, pinot=meddle(clients.pinot))
            with Driver(spec, clients, "audit-demo") as driver:
                report = driver.trigger()
                self._require(report.result is TriggerResult.STAGED, f"not staged: {report.summary}")
                if report.built and not self._half.exists() and self._steps:
                    shutil.copyfile(tar_of(report.built[0].outputs[0]), self._half)
                _, findings = driver.audit()
                shut = [finding for finding in findings if finding.blocks]
                for finding in shut:
                    self._console.print(f"   gate shut: {finding.name}: {finding.message}", highlight=False)
                try:
                    driver.publish()
                except SnapshotIncomplete:
                    self._require(bool(shut), "the gate is shut, and no finding says why")
                else:
                    self._require(not shut, "the gate let it through")
        return [kind_of(finding) for finding in shut]

    def _spec(self) -> TableSpec:
        return load_tables(self._tables)[TABLE]


def kind_of(finding: Finding) -> str:
    """Return the kind of check from a finding's name, without its arguments."""
    return finding.name.partition(":")[0].partition(" (")[0]


def show(console: Console, steps: Sequence[AuditLine], report: LoadReport) -> bool:
    """Print the table of steps and the result; return whether the demo shows what it promises."""
    phases = {phase.name: phase for phase in report.phases}
    table = Table("step", "", "seconds", "stopped by", "queries", "errors", "mixed answers")
    for name in ("seconds", "queries", "errors", "mixed answers"):
        next(column for column in table.columns if column.header == name).justify = "right"
    for step in steps:
        phase = phases[step.key]
        figures = [str(phase.queries), str(phase.errors), str(phase.mixed)]
        stopped_by = ", ".join(step.stopped_by) or "nothing: switched"
        table.add_row(step.key, step.title, f"{step.seconds:.1f}", stopped_by, *figures)
    console.print(table)
    outcome = verdict(steps, report)
    show_queries(console, report, outcome.answers)
    console.print(str(outcome), highlight=False)
    return outcome.well
