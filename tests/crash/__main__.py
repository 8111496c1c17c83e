"""`make crash-matrix`: every crash point of every scenario, on a local stack of its own."""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from crash import outages
from crash.points import Course, Verdict, points_of
from crash.scenarios import SCENARIOS
from fakes.processes.forked import preload
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from pinot_assets.local.stack import Stack
from pinot_assets.settings.local_stack import StackState

SOURCES = ("pinot_assets", "tests/crash", "tests/fakes")
HOME = Path(".pinot-assets/crash-matrix")
OUTAGES = "outage"
MODES = ("append", "sync", "swap", "append-packed", "sync-packed", "swap-packed")


class Results:
    """Verdicts, each written down at once, so that a matrix that was stopped goes on.

    :ivar verdicts: by the point's name, those of earlier runs included.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        lines = path.read_text().splitlines() if path.exists() else []
        verdicts = [Verdict(**json.loads(line)) for line in lines]
        self.verdicts = {verdict.name: verdict for verdict in verdicts}

    def add(self, verdict: Verdict) -> None:
        with self._lock, self._path.open("a") as file:
            file.write(json.dumps(asdict(verdict)) + "\n")
            self.verdicts[verdict.name] = verdict

    def forget(self, name: str) -> None:
        """What went wrong there before did not this time, and is no point to be counted."""
        with self._lock:
            self.verdicts.pop(name, None)

    def is_recovered(self, name: str) -> bool:
        verdict = self.verdicts.get(name)
        return verdict is not None and not verdict.problems

    @property
    def failed(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts.values() if verdict.problems]


class Matrix:
    """All courses side by side, each on tables of its own."""

    def __init__(self, stack: StackState, folder: Path, results: Results, only: str, bar: Progress) -> None:
        self._stack, self._folder, self._results, self._only = stack, folder, results, only
        self._bar = bar
        self._task: TaskID = bar.add_task("crash points", total=0)
        self._total = itertools.count(1)
        self.over = threading.Event()

    def run(self, mode: str, scenario: str) -> None:
        """One course, from its recording to its last point."""
        name = f"{mode}/{scenario}"
        if self.over.is_set() or not (self._only.startswith(name) or name.startswith(self._only)):
            return
        with Course(self._stack, mode, scenario, self._folder) as course:
            try:
                points = points_of(course.record())
            except Exception as error:
                self._tell(
                    Verdict(f"{name}/undisturbed", (f"{type(error).__name__}: {error}",), 0, 0, 0, 0.0)
                )
                return
            self._results.forget(f"{name}/undisturbed")
            chosen = [p for p in points if f"{name}/{p}".startswith(self._only)]
            todo = [p for p in chosen if not self._results.is_recovered(f"{name}/{p}")]
            self._bar.update(self._task, total=(self._bar.tasks[self._task].total or 0) + len(todo))
            for point in todo:
                if self.over.is_set():
                    return
                self._tell(course.try_point(point))

    def outages(self) -> None:
        """What kills servers, one after the other."""
        chosen = [name for name in outages.NAMES if name.startswith(self._only)]
        todo = [name for name in chosen if not self._results.is_recovered(name)]
        self._bar.update(self._task, total=(self._bar.tasks[self._task].total or 0) + len(todo))
        for name in todo:
            self._tell(outages.try_outage(self._stack, name, self._folder))

    def _tell(self, verdict: Verdict) -> None:
        self._results.add(verdict)
        self._bar.advance(self._task)
        if verdict.problems:
            self._bar.console.print(f"[red]✗[/] {verdict.name}: {verdict.problems[0]}", highlight=False)


def code() -> str:
    """Stands for the code that is tried and that tries it: what another one did proves nothing."""
    digest = hashlib.sha256()
    for path in sorted(path for folder in SOURCES for path in Path(folder).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def report(results: Results, path: Path) -> None:
    """What was not recovered, and how to go through it again."""
    lines = ["# Crash points that were not recovered", ""]
    for verdict in results.failed:
        lines += [
            f"## {verdict.name}",
            "",
            *(f"- {problem}" for problem in verdict.problems),
            "",
            *(f"    {line}" for line in verdict.story),
            "",
            f"Again: `make crash-matrix ARGS='--only \"{verdict.name}\"'`",
            "",
        ]
    path.write_text("\n".join(lines))


def main(
    mode: Annotated[
        list[str], typer.Option(help="One of append, sync, swap, each also with -packed, or outage.")
    ] = [],  # noqa: B006
    only: Annotated[str, typer.Option(help="Points whose name begins so: sync/change/pinot upload")] = "",
    lanes: Annotated[int, typer.Option(help="Tables side by side.")] = 6,
    home: Annotated[Path, typer.Option(help="Where stack and results are kept.")] = HOME,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget the results of earlier runs.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the stack running.")] = False,
) -> None:
    """Kill a driver before and after each of its effects, and lose each reply; then let triggers recover.

    Goes on from where an earlier run of the same code was stopped; points that failed are tried again.
    """
    console = Console(soft_wrap=True)
    folder = home / "tables"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    path = home / f"results-{code()}.jsonl"
    if fresh:
        path.unlink(missing_ok=True)
    results = Results(path)
    preload()
    stack = Stack(home / "stack")
    try:
        state = stack.up(s3=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console) as bar:
            matrix = Matrix(state, folder, results, only, bar)
            courses = [
                (m, name)
                for name, scenario in SCENARIOS.items()
                for m in scenario.modes
                if not mode or m in mode
            ]
            with ThreadPoolExecutor(lanes) as pool:
                done = [pool.submit(matrix.run, *course) for course in courses]
                try:
                    for future in done:
                        future.result()
                except KeyboardInterrupt:
                    matrix.over.set()
                    raise
            if not mode or OUTAGES in mode:
                matrix.outages()
    finally:
        if not keep:
            stack.purge()
    report(results, home / "report.md")
    verdicts = [v for v in results.verdicts.values() if v.name.startswith(only)]
    recovered = sum(not v.problems for v in verdicts)
    mixed, answers = sum(v.mixed for v in verdicts), sum(v.answers for v in verdicts)
    if results.failed:
        console.print(f"what failed, and how to repeat it: {home / 'report.md'}")
    if gaps := sum(v.gaps for v in verdicts):
        console.print(f"answers in the gap of a revert (crash/watch.py): {gaps}")
    console.print(
        f"crash points recovered: {recovered} of {len(verdicts)}, mixed answers: {mixed} of {answers}",
        highlight=False,
    )
    sys.exit(recovered != len(verdicts) or not verdicts)


if __name__ == "__main__":
    typer.run(main)
