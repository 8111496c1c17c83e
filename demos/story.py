"""The main demo: six steps on a real Pinot, while four threads send the same query to both brokers.

Dagster does the pushes, the command line does the rollback, and the control goes directly to Pinot. The demo
compares each answer with figures counted from the source files without the project's readers. An answer is
*mixed* if it matches neither the table before a step nor the table after it.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import dagster as dg
from dagster._core.definitions.data_version import DATA_VERSION_TAG
from dagster._core.execution.plan.objects import StepFailureData
from rich.console import Console
from rich.table import Table
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from demos.load import LoadReport, QueryAnswer, QueryLoad
from demos.steps import LEAST_ANSWERS, TABLE, Story, World, flights_under_load, show_queries
from pinot_assets.assets.history import STAGED
from pinot_assets.assets.partitions import ALL_FILES
from pinot_assets.core.files import temporary_folder
from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.this_machine import run_child
from pinot_assets.core.untrusted import typed
from pinot_assets.definitions import build_definitions
from pinot_assets.errors import PinotAssetsError
from pinot_assets.pinot import HttpPinotClient, PushMode, wait_online
from pinot_assets.resources import PinotResource
from pinot_assets.segment import rename_tar
from pinot_assets.session.detect.observe import observe
from pinot_assets.session.stores.clients import open_session_store, open_staging
from pinot_assets.session.stores.staging import Staging
from pinot_assets.settings.environment import load_settings, tables_directory
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.receipt import Output
from pinot_assets.table_spec import TableSpec, load_tables
from pinot_assets.table_spec.tables.apply import apply_plan, plan_apply

# --- Dagster: the shipped code location with the demo's own directory of tables, and one instance ------


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run of the table's job.

    :ivar segments: the trigger's metadata for the whole table, empty if there was nothing to do.
    :ivar gate: whether the check `consistent_push` passed, None if it did not run.
    :ivar gate_text: description of the check's result.
    :ivar snapshot: metadata of the asset `snapshot`, empty if the run did not switch.
    """

    success: bool
    segments: JsonObject
    built: tuple[str, ...]
    gate: bool | None
    gate_text: str
    snapshot: JsonObject


@dataclass(slots=True)
class Location:
    """Run the table's job and its files sensor as Dagster does.

    :param tables: directory of table specs; read again at each use, as by a reload.
    """

    tables: Path
    table: str
    instance: dg.DagsterInstance
    cursor: str | None = None

    def tick(self) -> tuple[bool, str]:
        """Evaluate the files sensor once; return whether it requests a run, and its message."""
        definitions = build_definitions(self.tables)
        sensor = definitions.resolve_sensor_def(f"{self.table}_files")
        context = dg.build_sensor_context(
            instance=self.instance,
            cursor=self.cursor,
            definitions=definitions,
            resources={"pinot": PinotResource()},
        )
        result = sensor.evaluate_tick(context)
        self.cursor = result.cursor
        if result.run_requests:
            return True, result.run_requests[0].tags["pinot/tick"]
        return False, result.skip_message or ""

    def run(self) -> JobRun:
        """Run the job `<table>_ingest` to its end."""
        job = build_definitions(self.tables).resolve_job_def(f"{self.table}_ingest")
        self.instance.add_dynamic_partitions(f"{self.table}_files", [ALL_FILES])
        result = job.execute_in_process(
            # The demo prints its own lines; the instance has the events.
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            instance=self.instance,
            partition_key=ALL_FILES,
            raise_on_error=False,
        )
        observed = [e.asset_observation_data.asset_observation for e in result.get_asset_observation_events()]
        made = [event.materialization for event in result.get_asset_materialization_events()]
        built = (
            str(one.partition)
            for one in made
            if one.asset_key.path[-1] != "snapshot"
            if (one.tags or {}).get(DATA_VERSION_TAG, "").startswith(STAGED)
        )
        checks = result.get_asset_check_evaluations()
        if not result.success and not checks:
            failures = [_message(e.step_failure_data) for e in result.get_step_failure_events()]
            raise PinotAssetsError("the run failed", why=(failures or ["no step ran"])[0])
        return JobRun(
            success=result.success,
            segments=_values(observed, "segments"),
            built=tuple(sorted(built)),
            gate=checks[0].passed if checks else None,
            gate_text=(checks[0].description or "") if checks else "",
            snapshot=_values(made, "snapshot"),
        )


def _message(failure: StepFailureData) -> str:
    """Return why a step failed, without Dagster's frame around it and without the stack."""
    error = failure.error
    return (error.cause or error).message.strip() if error else failure.error_display_string


def _values(events: Sequence[dg.AssetMaterialization | dg.AssetObservation], asset: str) -> JsonObject:
    """Return the metadata of an asset's events."""
    of_asset = (event for event in events if event.asset_key.path[-1] == asset)
    return {key: value.value for event in of_asset for key, value in event.metadata.items()}


# --- the story -----------------------------------------------------------------------------------

CONTROL = "f"
DAYS = 30
CATCH_UP_S = 60


@dataclass(frozen=True, slots=True)
class StoryLine:
    """One line of the table at the end.

    :ivar built: "built of listed", empty for a step that builds nothing.
    """

    key: str
    title: str
    seconds: float
    built: str
    rows: int


def tell(home: Path, console: Console, release: str | None = None) -> bool:
    """Start a stack for the demo, run all steps on it, stop and purge it.

    :param home: folder for stack, files, tables and Dagster; removed before and after.
    :param release: a release of Apache Pinot; None for that of a new local stack.
    :returns: whether no query saw a mixed answer, and the control did.
    :raises PinotAssetsError: a step did not do what it promises.
    """
    with flights_under_load(home, console, release) as (pinot, load):
        shutil.copy(tables_directory() / f"{TABLE}.yaml", home / "tables")
        (home / "dagster").mkdir()
        with dg.DagsterInstance.local_temp(
            str(home / "dagster"), overrides={"telemetry": {"enabled": False}}
        ) as instance:
            steps = FlightsStory(home, console, pinot, instance, load).tell()
    return show(console, steps, load.report())


class FlightsStory(Story[StoryLine]):
    """The six steps, each a change under load."""

    def __init__(
        self,
        home: Path,
        console: Console,
        pinot: HttpPinotClient,
        instance: dg.DagsterInstance,
        load: QueryLoad,
    ) -> None:
        super().__init__(console, pinot, load)
        self._spec_file = home / "tables" / f"{TABLE}.yaml"
        self._location = Location(home / "tables", TABLE, instance)
        self._world = World(home / "data" / TABLE, 2 * DAYS + 5)
        self._answers: list[QueryAnswer] = [()]

    def tell(self) -> list[StoryLine]:
        """Run all steps in order, and return a line for each."""
        apply_plan(plan_apply(self._spec(), self._pinot), self._pinot)
        self._first_push()
        self._sync()
        self._retry()
        former = self._published()
        self._swap()
        swapped = self._published()
        self._rollback()
        self._control(former, swapped)
        return self._steps

    # --- the steps -------------------------------------------------------------------------------

    def _first_push(self) -> None:
        for number in range(DAYS):
            self._world.add(self._world.day(number))

        with self._step("a", f"{DAYS} days of flights", self._world.answer()) as built:
            self._expect_tick(f"{DAYS} new, 0 rewritten, 0 deleted")
            built += self._switch(DAYS)

    def _sync(self) -> None:
        world = self._world
        rewritten, new = world.day(3), [world.day(DAYS), world.day(DAYS + 1)]
        world.rewrite(rewritten)
        world.delete(world.day(7))
        for day in new:
            world.add(day)

        with self._step("b", "1 file rewritten, 2 new, 1 deleted", world.answer()) as built:
            self._expect_tick("2 new, 1 rewritten, 1 deleted")
            built += self._switch(3, {world.path(day).name for day in (rewritten, *new)})

    def _retry(self) -> None:
        world = self._world
        new = [world.day(DAYS + n) for n in (2, 3, 4)]
        for day in new:
            world.add(day)
        broken = new[-1]
        world.corrupt(broken)

        with self._step("c", "1 of 3 new files corrupt; repaired; retried", world.answer()) as built:
            failed = self._location.run()
            self._require(failed.gate is False and not failed.snapshot, "the gate let a broken file through")
            self._require(len(failed.built) == 2, f"the good files were not kept: {failed.built}")
            self._console.print(f"   gate shut: {failed.gate_text}", highlight=False)
            self._require_answer(self._answers[-1])
            world.repair(broken)
            built += self._switch(1, {world.path(broken).name})

    def _swap(self) -> None:
        text = self._spec_file.read_text()
        swap = text.replace('consistentPushEnabled: "true"', 'consistentPushSwapEnabled: "true"')
        self._require(swap != text, f"{self._spec_file.name} has no consistentPushEnabled to change")
        self._spec_file.write_text(swap)
        self._world.replace_all([self._world.day(n) for n in range(DAYS + 5, 2 * DAYS + 5)])
        with self._step("d", "swap of the whole table", self._world.answer()) as built:
            built += self._switch(DAYS)

    def _rollback(self) -> None:
        with self._step("e", "rollback of the swap, in one command", self._answers[-2]):
            command = [sys.executable, "-m", "pinot_assets", "rollback", TABLE, "--yes"]
            command += ["--tables", str(self._spec_file.parent)]
            done = run_child(command)
            self._require(done.returncode == 0, f"rollback: {done.stderr}")

    def _control(self, former: Snapshot, swapped: Snapshot) -> None:
        with self._step(CONTROL, "control: the swap again, pushed plainly", self._answers[-2]):
            new, old = list(swapped.segments.values()), list(former.segments)
            push_plainly(self._pinot, TABLE, open_staging(self._spec()), new, old)
            # Brokers learn of plain deletions one by one: until then they count too much, or fail.
            for again in Retrying(
                retry=retry_if_exception_type(PinotAssetsError),
                stop=stop_after_delay(CATCH_UP_S),
                wait=wait_fixed(0.2),
                reraise=True,
            ):
                with again:
                    self._require_answer(self._answers[-2])

    # --- one step --------------------------------------------------------------------------------

    @contextmanager
    def _step(self, key: str, title: str, after: QueryAnswer) -> Iterator[list[str]]:
        """Change the table under load, to this answer; the block adds "built of listed" if it builds."""
        before, built = self._answers[-1], list[str]()
        self._require(before != after, "the step would change nothing")
        with self._under_load(key, title, [before, after]):
            start = time.monotonic()
            yield built
            seconds = time.monotonic() - start
            self._require_answer(after)
        self._answers.append(after)
        rows = sum(typed(count, int) for _, count, _ in after)
        self._steps.append(StoryLine(key, title, seconds, "".join(built), rows))
        files = "".join(f"{one} files built; " for one in built)
        self._console.print(f"   {files}{rows:,} rows, {seconds:.1f} s")

    def _expect_tick(self, changes: str) -> None:
        launch, message = self._location.tick()
        self._require(launch and message.startswith(changes), f"the sensor said: {message}")
        self._console.print(f"   files sensor: {message}", highlight=False)

    def _switch(self, built: int, names: set[str] | None = None) -> list[str]:
        """Run the job, require that it switches, and return "built of listed"."""
        outcome = self._location.run()
        self._require(outcome.success and bool(outcome.snapshot), f"not switched: {outcome.gate_text}")
        found = set(outcome.built)
        self._require(len(found) == built and names in (None, found), f"built other files: {sorted(found)}")
        return [f"{built} of {outcome.segments['files_listed']}"]

    def _spec(self) -> TableSpec:
        return load_tables(self._spec_file.parent)[TABLE]

    def _published(self) -> Snapshot:
        with open_session_store(self._spec(), load_settings()) as store:
            snapshot = observe(store, open_staging(self._spec())).snapshot
        assert snapshot is not None
        return snapshot


# --- the control ---------------------------------------------------------------------------------


def push_plainly(
    pinot: HttpPinotClient, table: str, staging: Staging, new: Sequence[Output], old: Sequence[str]
) -> None:
    """Push the new segments one by one, then delete the old ones one by one, without a lineage.

    This shows that the query load detects mixed answers. The new segments get fresh names, because names that
    a rollback took back cannot be used again.
    """
    for number, output in enumerate(new):
        name = f"{table}_plain_{number}"
        with temporary_folder("demo") as folder:
            source, target = folder / "source", folder / "target"
            staging.fetch_tar(output, source)
            renamed = rename_tar(source, target, name=name)
            plain = replace(
                output,
                segment=name,
                crc=renamed.crc,
                tar_bytes=renamed.tar.bytes,
                tar_sha256=renamed.tar.sha256,
            )
            pinot.push(table, [plain], staged=_Files({plain.tar_uri: target}), mode=PushMode.TAR)
        wait_online(pinot, table, [name], seconds=60)
    for name in old:
        pinot.delete_segments(table, [name])


class _Files:
    """A stand-in for the staging area: files by URI."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._paths = paths

    def read(self, uri: str) -> bytes:
        return self._paths[uri].read_bytes()

    def fetch_tar(self, output: Output, path: Path) -> None:
        shutil.copyfile(self._paths[output.tar_uri], path)


# --- the end -------------------------------------------------------------------------------------


def show(console: Console, steps: list[StoryLine], report: LoadReport) -> bool:
    """Print the table of steps and the result; return whether the demo shows what it promises."""
    phases = {phase.name: phase for phase in report.phases}
    table = Table("step", "", "seconds", "files built", "rows", "queries", "errors", "mixed answers")
    for column in table.columns[2:]:
        column.justify = "right"
    for step in steps:
        phase = phases[step.key]
        figures = [f"{step.seconds:.1f}", step.built, f"{step.rows:,}"]
        counts = [str(phase.queries), str(phase.errors), str(phase.mixed)]
        table.add_row(step.key, step.title, *figures, *counts)
    console.print(table)
    counted = [phase for phase in report.phases if phase.name != CONTROL]
    mixed, errors = sum(p.mixed for p in counted), sum(p.errors for p in counted)
    answers = sum(p.queries for p in counted) - errors
    control = phases[CONTROL].mixed
    show_queries(console, report, answers)
    console.print(f"mixed answers: {mixed} of {answers} (control: {control})", highlight=False)
    return mixed == errors == 0 and answers >= LEAST_ANSWERS and control > 0
