"""What thousands of files cost in Dagster: a sensor's tick, a run's events, the assets page, the database.

`make bench-dagster` prints the rows of docs/scale.md. Spark, Pinot and ZooKeeper are values in memory; the
files, Dagster's storage (SQLite), its runs, its web server and the browser are real.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg
from fakes.tables import SYNC, write_table
from in_memory import NAME, InMemoryTable, in_place_of_the_machine
from pages import measure, webserver
from rich.console import Console

from pinot_assets.assets.history import TableHistory
from pinot_assets.definitions import build_definitions

CONSOLE = Console(width=160, highlight=False)
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass(frozen=True)
class Case:
    """Some files, and how they are spread over partitions."""

    name: str
    files: int
    directories: int
    options: dict[str, str] = field(default_factory=dict)


CASES = {
    "files": Case("2,000 files, each a partition", 2_000, 100),
    "directory": Case("10,000 files in 100 directories", 10_000, 100, {"partitionGroup": "directory"}),
    "hash": Case("10,000 files in 2,000 hash buckets", 10_000, 100, {"partitionGroup": "hash:2000"}),
}


class Bench:
    """One case, measured."""

    def __init__(self, case: Case, folder: Path, instance: dg.DagsterInstance) -> None:
        self.case = case
        self.source = folder / "source"
        self.instance = instance
        self.spec = write_table(folder, NAME, {**SYNC, "maxFilePartitions": "2000", **case.options})
        self.table = InMemoryTable(self.spec)
        self.history = TableHistory(instance, self.spec)
        self.definitions = build_definitions(folder / "tables")

    def path(self, number: int) -> Path:
        """Of one file."""
        directory = self.source / f"day={number % self.case.directories:03}"
        return directory / f"part-{number:05}.csv"

    def write(self, numbers: range, text: str) -> None:
        """Write these files anew."""
        for number in numbers:
            self.path(number).parent.mkdir(parents=True, exist_ok=True)
            self.path(number).write_text(text)

    def tick(self, what: str) -> None:
        """One tick of the files sensor."""
        sensor = self.definitions.resolve_sensor_def(f"{NAME}_files")
        with (
            dg.build_sensor_context(
                self.instance, definitions=self.definitions, resources=self.definitions.resources
            ) as context,
            timed(f"tick, {what}"),
        ):
            ticked = sensor.evaluate_tick(context)
        say(
            f"tick, {what}: says",
            str(ticked.skip_message or [r.tags["pinot/tick"] for r in ticked.run_requests or ()]),
        )

    def run(self, what: str) -> None:
        """One run of the table's job, its events counted."""
        job = self.definitions.resolve_job_def(f"{NAME}_ingest")
        with timed(f"run, {what}"):
            result = job.execute_in_process(
                instance=self.instance, run_config=QUIET, partition_key="all files"
            )
        for step in self.instance.get_run_step_stats(result.run_id):
            assert step.start_time is not None
            assert step.end_time is not None
            say(f"run, {what}: {step.step_key}", f"{step.end_time - step.start_time:.1f} s")
        kinds = {dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.ASSET_OBSERVATION}
        events = self.instance.all_logs(result.run_id, of_type=kinds)
        say(f"run, {what}: events", str(len(events)))

    def measure(self) -> None:
        """The life of the table."""
        count = self.case.files
        self.write(range(count), "v\na\n")
        self.tick("everything is new")
        self.run("everything is new")
        say("partitions", str(len(self.history.partitions())))
        shown = {key: version.rsplit("-", 1)[0] for key, version in self.history.materialized().items()}
        assert self.history.observed() == shown
        self.tick("nothing changed")
        self.write(range(10), "v\nanother\n")
        self.tick("10 files rewritten")
        self.run("10 files rewritten")
        for number in range(count // 2, count):
            self.path(number).unlink()
        self.tick("half of the files deleted")
        self.run("half of the files deleted")
        self.write(range(count // 2, count), "v\na\n")
        self.tick("and back again")


def say(what: str, value: str) -> None:
    """One row of a Markdown table."""
    CONSOLE.print(f"| {what} | {value} |")


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Say how long it took, and how much of that this process worked."""
    wall, worked = time.perf_counter(), time.process_time()
    yield
    wall, worked = time.perf_counter() - wall, time.process_time() - worked
    say(what, f"{wall:.1f} s ({worked:.1f} s of CPU)")


def bench(case: Case) -> None:
    """Measure one case in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="dagster-scale-"))
    home = folder / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\nnux: {enabled: false}\n")
    try:
        CONSOLE.print(f"\n**{case.name}** (load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)\n")
        say("what", "seconds")
        say("---", "---")
        with dg.DagsterInstance.from_config(str(home)) as instance:
            one = Bench(case, folder, instance)
            with in_place_of_the_machine(one.table):
                one.measure()
            shown = sorted(one.history.partitions())[1]
        size = sum(path.stat().st_size for path in home.rglob("*.db"))
        say("database", f"{size / 1e6:.0f} MB")
        with webserver(home, folder / "tables") as url:
            for what, seconds in (measure(url, shown) or {}).items():
                say(f"page: {what}", f"{seconds:.1f} s")
        CONSOLE.print(f"\nload {os.getloadavg()[0]:.1f} at the end")
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Measure the cases that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", nargs="*", choices=[[], *CASES], help="all without")
    parser.add_argument("--files", type=int, help="so many files instead")
    arguments = parser.parse_args()
    for name in arguments.case or CASES:
        case = CASES[name]
        bench(Case(case.name, arguments.files or case.files, case.directories, case.options))


if __name__ == "__main__":
    main()
