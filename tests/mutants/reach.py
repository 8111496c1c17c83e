"""Which tests reach a line: recorded once a commit by coverage.py, child processes included.

Inside pytest's own process each line is recorded with the test that ran it. A child process carries the test
that started it; since one that lives long (a Spark worker, a code server, a fork server) goes on to serve the
tests after it, whatever it reaches counts for all tests of that module.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import time
import tomllib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from coverage import CoverageData

# pytest sets PYTEST_CURRENT_TEST in its environment, which children inherit: "tests/x.py::test_y (call)".
# Not the patch `subprocess`: its children would take over the context of pytest's own process.
_RC = """\
[run]
include = {files}
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
        """Tests that run any of these lines of a source, and passed, cheapest first."""
        return self._named(self._contexts(file), _statement(source, first, last))

    def _contexts(self, file: Path) -> dict[int, list[str]]:
        # A child process that began in another folder knows the file by its whole path.
        names = [
            name for name in self.data.measured_files() if Path(name).parts[-len(file.parts) :] == file.parts
        ]
        by_line: dict[int, list[str]] = {}
        for name in names:
            for line, contexts in self.data.contexts_by_lineno(name).items():
                by_line.setdefault(line, []).extend(contexts)
        return by_line

    def _named(self, lines: dict[int, list[str]], span: range) -> list[str]:
        tests: set[str] = set()
        for line in span:
            for context in lines.get(line, ()):
                tests |= self._tests(context)
        return sorted(tests & self.seconds.keys(), key=self._cost)

    def _cost(self, test: str) -> tuple[float, float, str]:
        """The module's slowest test counts first: it starts the servers that the module's others use."""
        return self._slowest[_module(test)], self.seconds[test], test

    @cached_property
    def _slowest(self) -> dict[str, float]:
        slowest: dict[str, float] = {}
        for test, took in self.seconds.items():
            slowest[_module(test)] = max(took, slowest.get(_module(test), 0.0))
        return slowest

    def _tests(self, context: str) -> set[str]:
        if context.startswith(_ITSELF):
            return {context.removeprefix(_ITSELF)}
        module = _module(context.removeprefix(_CHILD))
        return {test for test in self.seconds if _module(test) == module} if module else set()


def _module(test: str) -> str:
    return test.partition("::")[0]


def parts(tests: Path) -> list[str]:
    """What is recorded at a time: a folder of tests with all that is in it, or the files loose in one."""
    apart = [tests / "contract", tests / "integration"]  # large ones, by their folders
    folders = [folder for top in (tests, *apart) for folder in sorted(top.iterdir()) if folder.is_dir()]
    whole = [folder for folder in folders if folder not in apart and any(folder.rglob("test_*.py"))]
    loose = [folder / "test_*.py" for folder in apart]
    return [str(part.relative_to(tests.parent)) for part in (*loose, *whole)]


def record(scratch: Path, folder: Path, files: Iterable[Path], at_once: int) -> None:
    """Run the tests in the scratch clone, part by part, and write down what reaches what in these files.

    :param folder: where data go; parts that are there are not run again.
    """
    work = scratch / "pyproject.toml"
    left_out = tomllib.loads(work.read_text())["tool"]["pytest"]["ini_options"]["norecursedirs"]
    todo = [part for part in parts(scratch / "tests") if part not in left_out]
    with ThreadPoolExecutor(at_once) as pool:
        for _ in pool.map(lambda part: _record_part(scratch, folder / _file_name(part), part, files), todo):
            pass
    ready = [str(folder / _file_name(part)) for part in todo]
    python = str(scratch / ".venv" / "bin" / "python")
    combine = ["combine", "--quiet", "--keep", f"--data-file={folder / 'data'}", *ready]
    subprocess.run([python, "-m", "coverage", *combine], cwd=scratch, check=True)
    lines = [line for part in ready for line in (Path(part) / "durations.jsonl").read_text().splitlines()]
    (folder / "durations.jsonl").write_text("".join(f"{line}\n" for line in lines))


def _file_name(part: str) -> str:
    return part.replace("/", "-").replace("*", "")


def _record_part(scratch: Path, folder: Path, part: str, files: Iterable[Path]) -> None:
    if (folder / "ready").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rc = folder / "coveragerc"
    rc.write_text(_RC.format(folder=folder, files="".join(f"\n  {scratch / file}" for file in files)))
    environment = {
        **os.environ,
        "COVERAGE_PROCESS_START": str(rc),
        "MUTANTS_DURATIONS": str(folder / "durations.jsonl"),
        "PYTHONPATH": str(Path(__file__).parent),
    }
    pytest = str(scratch / ".venv" / "bin" / "pytest")
    tests = sorted(str(path.relative_to(scratch)) for path in scratch.glob(part))
    run = [pytest, "-p", "recording", "-p", "no:cacheprovider", "-q", "--timeout=1200", *tests]
    started = time.monotonic()
    with (folder / "log").open("w") as log:
        ended = subprocess.run(run, cwd=scratch, env=environment, stdout=log, stderr=log, check=False)
    if ended.returncode not in (0, 1):  # 1: some tests failed; those are left out
        raise SystemExit(f"the tests did not run to their end (exit code {ended.returncode}): see {log.name}")
    print(f"{part}: {time.monotonic() - started:.0f} s", flush=True)
    (folder / "ready").touch()


def load(folder: Path) -> Reach:
    """What `record` wrote."""
    data = CoverageData(str(folder / "data"))
    data.read()
    seconds: dict[str, float] = {}
    for line in (folder / "durations.jsonl").read_text().splitlines():
        test, took, _, passed = json.loads(line)
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
