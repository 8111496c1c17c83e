"""Which tests reach a line: recorded once a commit by coverage.py, child processes included.

Inside pytest's own process each line is recorded with the test that ran it. A child process carries the test
that started it; since one that lives long (a Spark worker, a code server, a fork server) goes on to serve the
tests after it, whatever it reaches counts for all tests of that module.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from coverage import CoverageData

# pytest sets PYTEST_CURRENT_TEST in its environment, which children inherit: "tests/x.py::test_y (call)".
_RC = """\
[run]
source_pkgs = pinot_assets
data_file = {folder}/data
parallel = true
relative_files = true
context = child:${{PYTEST_CURRENT_TEST-}}
patch = _exit, execv, fork, subprocess
sigterm = true
disable_warnings = module-not-imported, no-data-collected, couldnt-parse
"""


@dataclass(frozen=True)
class Reach:
    """What was recorded.

    :ivar lines: file, relative to the clone → line → contexts that ran it.
    :ivar seconds: test → how long it took, dearest run if it ran more than once.
    """

    data: CoverageData
    seconds: dict[str, float]

    def tests_of(self, file: Path, source: str, first: int, last: int) -> list[str]:
        """Tests that run any of these lines of a source, quickest first.

        Lines that run only at import are reached by whoever runs anything else of that file.
        """
        lines = self._contexts(file)
        span = _statement(source, first, last)
        reached = self._named(lines, span)
        return reached or self._named(lines, range(1, source.count("\n") + 2))

    def _contexts(self, file: Path) -> dict[int, list[str]]:
        measured = next((f for f in self.data.measured_files() if f.endswith(str(file))), None)
        return {} if measured is None else self.data.contexts_by_lineno(measured)

    def _named(self, lines: dict[int, list[str]], span: range) -> list[str]:
        tests: set[str] = set()
        for line in span:
            for context in lines.get(line, ()):
                tests |= self._tests(context)
        return sorted(tests & self.seconds.keys(), key=lambda test: (self.seconds[test], test))

    def _tests(self, context: str) -> set[str]:
        child, _, test = context.partition("|")
        if test:
            return {test}
        module = child.removeprefix("child:").partition("::")[0]
        return {test for test in self.seconds if test.partition("::")[0] == module} if module else set()


def record(scratch: Path, folder: Path, tests: list[str], options: list[str]) -> None:
    """Run the tests in the scratch clone and write down what reaches what.

    :param folder: where data go; emptied by the caller.
    :param options: of pytest.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rc = folder / "coveragerc"
    rc.write_text(_RC.format(folder=folder))
    here = Path(__file__).parent
    environment = {
        **os.environ,
        "COVERAGE_PROCESS_START": str(rc),
        "MUTANTS_DURATIONS": str(folder / "durations.jsonl"),
        "PYTHONPATH": str(here),
    }
    python = str(scratch / ".venv" / "bin" / "python")
    pytest = str(scratch / ".venv" / "bin" / "pytest")
    run = [pytest, "-p", "recording", "-q", "--timeout=1200", *options, *tests]
    with (folder / "log").open("w") as log:
        subprocess.run(run, cwd=scratch, env=environment, stdout=log, stderr=log, check=False)
    subprocess.run(
        [python, "-m", "coverage", "combine", "--quiet", f"--rcfile={rc}"], cwd=scratch, check=True
    )


def load(folder: Path) -> Reach:
    """What `record` wrote."""
    data = CoverageData(str(folder / "data"))
    data.read()
    seconds: dict[str, float] = {}
    for line in (folder / "durations.jsonl").read_text().splitlines():
        test, took = json.loads(line)
        seconds[test] = max(took, seconds.get(test, 0.0))
    return Reach(data, seconds)


def _statement(source: str, first: int, last: int) -> range:
    """The lines, from the beginning of the smallest statement that the first of them belongs to.

    coverage.py knows a statement of several lines by its first one.
    """
    starts = [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.stmt) and node.lineno <= first <= (node.end_lineno or node.lineno)
    ]
    return range(max(starts, default=first), last + 1)
