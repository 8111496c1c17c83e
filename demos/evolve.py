"""Five changes of a published table, each carried out while four threads query both brokers: an index and a
column, which servers build when they reload; a filter and a type, which only a rebuild can make; and the way
back over both rebuilds.

Each step changes the table spec, shows that published segments are not as it says, and carries it out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from rich.console import Console
from rich.table import Table

from demos.load import LoadReport, QueryAnswer, QueryLoad
from demos.steps import LEAST_ANSWERS, TABLE, Story, World, flights_under_load, show_queries
from pinot_assets.core.json_object import JsonObject
from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.ingest.spark.environment import environment_context, environment_session
from pinot_assets.local.sample_data import Flight
from pinot_assets.pinot import HttpPinotClient
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.clients import open_clients
from pinot_assets.session.values.outdated import RebuildRequest
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.settings.environment import load_settings, tables_directory
from pinot_assets.table_spec import TableSpec, load_tables
from pinot_assets.table_spec.tables.apply import apply_plan, plan_apply
from pinot_assets.table_spec.yaml.writer import dumped

DAYS: Final = 6
CHANGES: Final = 5
FAR: Final = 500
"""Miles: the filter keeps flights of at least this distance."""


@dataclass(frozen=True, slots=True)
class EvolveLine:
    """One line of the table at the end.

    :ivar change: whether the step carries a change of the spec out.
    :ivar how: what carried it out.
    """

    key: str
    title: str
    change: bool
    seconds: float
    how: str


@dataclass(frozen=True, slots=True)
class EvolveSummary:
    """The result of all steps and of the load.

    :ivar carried_out: number of changes that were carried out.
    :ivar mixed: answers that match neither the table before a step nor the one after it.
    :ivar errors: queries without an answer.
    :ivar answers: number of answers that were judged.
    """

    carried_out: int
    mixed: int
    errors: int
    answers: int

    @property
    def well(self) -> bool:
        """Whether the demo shows what it promises."""
        enough = self.answers >= LEAST_ANSWERS
        return self.carried_out == CHANGES and self.mixed == self.errors == 0 and enough

    def __str__(self) -> str:
        changes = f"changes carried out: {self.carried_out} of {CHANGES}"
        return f"{changes}, mixed answers: {self.mixed} of {self.answers:,}"


def verdict(steps: Sequence[EvolveLine], report: LoadReport) -> EvolveSummary:
    """Return the numbers that decide whether the demo succeeded."""
    changes = sum(step.change for step in steps)
    return EvolveSummary(changes, report.mixed, report.errors, report.queries - report.errors)


def tell(home: Path, console: Console, release: str | None = None) -> bool:
    """Start a stack for the demo, run all steps on it, stop and purge it.

    :param home: folder for stack, files and tables; removed before and after.
    :param release: a release of Apache Pinot; None for that of a new local stack.
    :returns: whether all changes were carried out, and no query saw a half of one.
    :raises PinotAssetsError: a step did not do what it promises.
    """
    with flights_under_load(home, console, release) as (pinot, load):
        steps = EvolveStory(home, console, pinot, load).tell()
    return show(console, steps, load.report())


class EvolveStory(Story[EvolveLine]):
    """The table, its five changes, and what carries each of them out."""

    def __init__(self, home: Path, console: Console, pinot: HttpPinotClient, load: QueryLoad) -> None:
        super().__init__(console, pinot, load)
        self._file = home / "tables" / f"{TABLE}.yaml"
        self._document: JsonObject = yaml.safe_load((tables_directory() / self._file.name).read_text())
        self._world = World(home / "data" / TABLE, DAYS + 1)
        self._builder = SparkBuilder(environment_session, environment_context)
        self._served: QueryAnswer = ()
        self._keeps: Callable[[Flight], bool] = lambda _: True

    def tell(self) -> list[EvolveLine]:
        """Run all steps in order, and return a line for each."""
        self._apply()
        for number in range(DAYS):
            self._world.add(self._world.day(number))
        self._publish("0", f"{DAYS} days of flights")
        self._add_index()
        self._add_column()
        self._world.add(self._world.day(DAYS))
        self._publish("2b", "another day, which has the index and the column from the start")
        before = self._session()
        self._change_filter()
        self._retype()
        self._roll_back(before)
        return self._steps

    # --- the changes -----------------------------------------------------------------------------

    def _add_index(self) -> None:
        self._document["table"]["tableIndexConfig"]["invertedIndexColumns"] = ["carrier"]
        with self._step("1", "an index is added", [self._served], "reload"):
            self._reloads_all()

    def _add_column(self) -> None:
        self._document["schema"]["dimensionFieldSpecs"].append({"name": "gate", "dataType": "STRING"})
        with self._step("2", "a column is added", [self._served], "reload"):
            self._reloads_all()
            rows = sum(int(str(count)) for _, count, _ in self._served)
            for url in self._pinot.brokers(TABLE):
                sql = f"SELECT COUNT(*) FROM {TABLE} WHERE gate = 'null'"
                (found,) = self._pinot.broker(url).query(sql).rows[0]
                self._require(found == rows, f"{url} finds {found} of {rows} rows by the new column")

    def _change_filter(self) -> None:
        self._document["fileIngestion"]["filter"] = f"distance >= {FAR}"
        self._keeps = lambda row: float(row["distance"]) >= FAR
        self._rebuilds("3", "a filter is added", self._world.answer(self._keeps))

    def _retype(self) -> None:
        for column in self._document["schema"]["dimensionFieldSpecs"]:
            if column["name"] == "flight":
                column["dataType"] = "LONG"
        self._require_type("INT")
        self._rebuilds("4", "a column gets another type", self._served)
        self._require_type("LONG")

    def _roll_back(self, to: str) -> None:
        """Go back over both rebuilds; Pinot's configs and the YAML file follow."""
        self._keeps = lambda _: True
        after = self._world.answer()
        with self._step("5", "both rebuilds are rolled back", [self._served, after], "rollback"):
            with self._driver() as driver:
                way = driver.rollback_plan(to)
                self._require(way.spec is not None, "the rollback does not say what the spec must be")
                assert way.spec is not None
                for line in way.spec.lines:
                    self._console.print(f"   {line}", highlight=False)
                driver.rollback(to, way)
                driver.apply_recipe(way.spec.recipe)
            self._require_answer(after)
            self._require_type("INT")
            del self._document["fileIngestion"]["filter"]
            for column in self._document["schema"]["dimensionFieldSpecs"]:
                if column["name"] == "flight":
                    column["dataType"] = "INT"
            report = self._run(None)
            self._require(report.result is TriggerResult.NOTHING, f"a run would do more: {report.summary}")
        self._served = after

    # --- what carries them out -------------------------------------------------------------------

    def _apply(self) -> None:
        apply_plan(plan_apply(self._spec(), self._pinot), self._pinot)

    def _reloads_all(self) -> None:
        """Apply the spec; require that servers reload every segment, and hold what it says then."""
        plan = plan_apply(self._spec(), self._pinot)
        self._console.print(f"   {plan.reload}: {', '.join(plan.reload.reasons)}", highlight=False)
        self._require(len(plan.reload.segments) == plan.reload.of, f"only {plan.reload} would be reloaded")
        apply_plan(plan, self._pinot)
        self._require(plan_apply(self._spec(), self._pinot).changes_nothing, "servers still lack something")
        self._require_answer(self._served)

    def _rebuilds(self, key: str, title: str, after: QueryAnswer) -> None:
        """Apply the spec; require that a run says what waits, and that a rebuild does it in one switch."""
        with self._step(key, title, list(dict.fromkeys([self._served, after])), "rebuild"):
            self._apply()
            waits = [note for note in self._run(None).notes if "pinot-assets rebuild" in note]
            self._require(len(waits) == 1, f"a run says {waits}")
            self._console.print(f"   {waits[0]}", highlight=False)
            self._require_answer(self._served)
            report = self._run(RebuildRequest())
            self._require(len(report.rebuilt) == DAYS + 1, f"{len(report.rebuilt)} files were built again")
            self._require_answer(after)
        self._served = after

    def _publish(self, key: str, title: str) -> None:
        after = self._world.answer(self._keeps)
        with self._under_load(key, title, [self._served, after]):
            start = time.monotonic()
            self._run(None)
            self._require_answer(after)
            seconds = time.monotonic() - start
        self._steps.append(EvolveLine(key, title, False, seconds, "run"))
        self._served = after

    def _run(self, request: RebuildRequest | None) -> TriggerReport:
        """Run, or rebuild what is asked for; publish what was staged."""
        with self._driver() as driver:
            plan_hash = driver.plan(request).planned.plan_basis.hash
            report = driver.trigger_planned(plan_hash, request)
            if report.result is TriggerResult.STAGED:
                driver.audit()
                driver.publish()
            return report

    def _session(self) -> str:
        with self._driver() as driver:
            snapshot = driver.observe().snapshot
        assert snapshot is not None
        return snapshot.session

    @contextmanager
    def _driver(self) -> Iterator[Driver]:
        spec = self._spec()
        with (
            open_clients(spec, load_settings(), self._builder) as clients,
            Driver(spec, clients, "evolve-demo") as driver,
        ):
            yield driver

    def _spec(self) -> TableSpec:
        self._file.write_text(dumped(self._document))
        return load_tables(self._file.parent)[TABLE]

    def _require_type(self, kind: str) -> None:
        for url in self._pinot.brokers(TABLE):
            (found,) = self._pinot.broker(url).query(f"SELECT flight FROM {TABLE} LIMIT 1").types
            self._require(found == kind, f"{url} answers {found} in place of {kind}")

    @contextmanager
    def _step(self, key: str, title: str, allowed: Sequence[QueryAnswer], how: str) -> Iterator[None]:
        with self._under_load(key, title, allowed):
            start = time.monotonic()
            yield
            seconds = time.monotonic() - start
        self._steps.append(EvolveLine(key, title, True, seconds, how))


def show(console: Console, steps: Sequence[EvolveLine], report: LoadReport) -> bool:
    """Print the table of steps and the result; return whether the demo shows what it promises."""
    phases = {phase.name: phase for phase in report.phases}
    table = Table("step", "", "by", "seconds", "queries", "errors", "mixed answers")
    for name in ("seconds", "queries", "errors", "mixed answers"):
        next(column for column in table.columns if column.header == name).justify = "right"
    for step in steps:
        phase = phases[step.key]
        figures = [str(phase.queries), str(phase.errors), str(phase.mixed)]
        table.add_row(step.key, step.title, step.how, f"{step.seconds:.1f}", *figures)
    console.print(table)
    outcome = verdict(steps, report)
    show_queries(console, report, outcome.answers)
    console.print(str(outcome), highlight=False)
    return outcome.well
