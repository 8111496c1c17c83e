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
# Not the patch `subprocess`: its children would take over the context of pytest's own process.
_RC = """\
[run]
source_pkgs = pinot_assets
data_file = {folder}/data
parallel = true
relative_files = true
context = child:${{PYTEST_CURRENT_TEST-}}
patch = _exit, execv, fork
sigterm = true
disable_warnings = module-not-imported, no-data-collected, couldnt-parse
"""


_CHILD = "child:"
_ITSELF = "child:|"  # no test ran when pytest's own process began; it says which one runs


@dataclass(frozen=True)
class Reach:
    """What was recorded.

    :ivar data: file, relative to the clone → line → contexts that ran it.
    :ivar seconds: test that passed → how long it took.
    """

    data: CoverageData
    seconds: dict[str, float]

    def tests_of(self, file: Path, source: str, first: int, last: int) -> list[str]:
        """Tests that run any of these lines of a source, and passed, quickest first."""
        return self._named(self._contexts(file), _statement(source, first, last))

    def _contexts(self, file: Path) -> dict[int, list[str]]:
        return self.data.contexts_by_lineno(str(file))

    def _named(self, lines: dict[int, list[str]], span: range) -> list[str]:
        tests: set[str] = set()
        for line in span:
            for context in lines.get(line, ()):
                tests |= self._tests(context)
        return sorted(tests & self.seconds.keys(), key=lambda test: (self.seconds[test], test))

    def _tests(self, context: str) -> set[str]:
        if context.startswith(_ITSELF):
            return {context.removeprefix(_ITSELF)}
        module = context.removeprefix(_CHILD).partition("::")[0]
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
        ended = subprocess.run(run, cwd=scratch, env=environment, stdout=log, stderr=log, check=False)
    if ended.returncode not in (0, 1):  # 1: some tests failed; those are left out
        raise SystemExit(f"the tests did not run to their end (exit code {ended.returncode}): see {log.name}")
    subprocess.run(
        [python, "-m", "coverage", "combine", "--quiet", f"--rcfile={rc}"], cwd=scratch, check=True
    )


def load(folder: Path) -> Reach:
    """What `record` wrote."""
    data = CoverageData(str(folder / "data"))
    data.read()
    seconds: dict[str, float] = {}
    for line in (folder / "durations.jsonl").read_text().splitlines():
        test, took, passed = json.loads(line)
        if passed:
            seconds[test] = took
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
