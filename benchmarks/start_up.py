"""What a command costs before it has anything to do: `--version`, `status`, and a run that finds no change.

`make bench-cli`. A former commit does the same in turn, in a clone, with the same interpreter and packages,
on the same table of a local stack. CPU seconds are those of all processes of a command, a JVM included.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from fakes.tables import write_files, write_table
from measure import CONSOLE, head, machine, median_ratio, rounds, row, spread
from mutants.scratch import PROJECT, commit_of

from pinot_assets.local.stack import Stack
from pinot_assets.settings.local_stack import StackState

BEFORE = "7c0b8a12367407f141ed45b16d9ea64fb3915454"
"""The last commit at whose start all commands were imported, with PySpark and pandas for every run."""
ROUNDS = 11
TABLE = "start_up"
COMMANDS = {
    "start-up": ["--version"],
    "status": ["status", TABLE],
    "no-op run": ["run", TABLE],
}
_WHOLE_TREE = Path(__file__).resolve().with_name("whole_tree.py")
ALLOWED_S = 0.2
"""More than an empty program, for `--version`."""


class Shell:
    """A working directory with a published table, and the program as two commits have it."""

    def __init__(self, folder: Path, stack: StackState) -> None:
        self._folder = folder
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("PINOT_", "PYTHON"))}
        self._environment = kept | {
            "PINOT_CONTROLLER_URL": stack.controller_url,
            "PINOT_ZOOKEEPER": stack.zookeeper,
            "PYTHONSAFEPATH": "1",
        }

    def publish(self) -> None:
        """Make the table, and publish its two files."""
        write_table(self._folder, TABLE)
        write_files(self._folder, F1="a b", F2="c")
        for words in (["tables", "apply", TABLE, "--yes"], ["run", TABLE]):
            command = [sys.executable, "-m", "pinot_assets", *words]
            subprocess.run(
                command, cwd=self._folder, env=self._with(PROJECT), check=True, capture_output=True
            )

    def cpu(self, project: Path, *words: str) -> float:
        """CPU seconds of one start of Python, where a project's package is found."""
        command = [sys.executable, str(_WHOLE_TREE), sys.executable, *words]
        done = subprocess.run(
            command, cwd=self._folder, env=self._with(project), check=True, stdout=subprocess.PIPE
        )
        return float(done.stdout.splitlines()[-1])

    def _with(self, project: Path) -> dict[str, str]:
        return self._environment | {"PYTHONPATH": str(project)}


def cloned(revision: str, folder: Path) -> Path:
    """A clone of the project at that revision."""
    commit = commit_of(revision)
    for words in (
        ["clone", "--quiet", str(PROJECT), str(folder)],
        ["-C", str(folder), "checkout", "--quiet", commit],
    ):
        subprocess.run(["git", *words], check=True)
    return folder


def measure(shell: Shell, before: Path, count: int) -> dict[tuple[str, Path | None], list[float]]:
    """CPU seconds by command and project; an empty program has no project."""
    program = ["-m", "pinot_assets"]
    sides = {
        (name, project): [*program, *words]
        for name, words in COMMANDS.items()
        for project in (PROJECT, before)
    }
    for (_, project), words in sides.items():  # stores bytecode
        shell.cpu(project, *words)
    seconds: dict[tuple[str, Path | None], list[float]] = {}
    for _ in rounds(count, "each command, now and before"):
        seconds.setdefault(("empty", None), []).append(shell.cpu(PROJECT, "-c", "pass"))
        for (name, project), words in sides.items():
            seconds.setdefault((name, project), []).append(shell.cpu(project, *words))
    return seconds


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--before", default=BEFORE, help="a git revision to compare with")
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    options = arguments.parse_args()
    machine("typer", "pydantic", "pyarrow", "httpx")
    with tempfile.TemporaryDirectory(prefix="pinot-assets-bench-") as name:
        folder = Path(name)
        before = cloned(options.before, folder / "before")
        stack = Stack(folder / "stack")
        try:
            (work := folder / "work").mkdir()
            shell = Shell(work, stack.up())
            shell.publish()
            seconds = measure(shell, before, options.rounds)
        finally:
            stack.purge()
    head("command", "CPU s now", "before", "now / before")
    row("`python -c pass`", spread(seconds["empty", None]), "", "")
    for name in COMMANDS:
        now, then = seconds[name, PROJECT], seconds[name, before]
        row(name, spread(now), spread(then), f"{median_ratio(now, then):.2f}")
    beyond = median(seconds["start-up", PROJECT]) - median(seconds["empty", None])
    CONSOLE.print(f"\n`--version` takes {beyond:.2f} CPU s more than an empty program (goal: {ALLOWED_S})")
    medians = ", ".join(f"{name}: {median(seconds[name, PROJECT]):.2f}" for name in COMMANDS)
    former = ", ".join(f"{median(seconds[name, before]):.2f}" for name in COMMANDS)
    CONSOLE.print(f"{medians} CPU s (before: {former})")


if __name__ == "__main__":
    main()
