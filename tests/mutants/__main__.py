"""`make mutants`: plant each defect of `defects.toml`, run the tests that reach it, count what is found.

    python -m mutants                  record what reaches what, if that is not known yet, and go through all
    python -m mutants record           only the former; parts that are recorded are not run again
    python -m mutants run ID…          only these, whatever is known of them
    python -m mutants --commit REV …   the same on another commit
    python -m mutants check            each anchor matches once, each replacement is Python

It works on commits, in a clone of its own, and goes on where it was stopped. A defect is found when a test
fails, or hangs, that passes without it. The last line compares with `before.json`, the figures of the commit
that it names.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

from mutants import reach
from mutants.defects import Defect, Unplantable, defects
from mutants.scratch import PROJECT, commit_of, make_scratch

HERE = Path(__file__).parent
HOME = PROJECT / ".mutants"
LEAST_S = 900.0
TIMES = 4
"""A run hangs that takes so many times as long as its tests took, and `LEAST_S` for servers to start."""
WANTED = 55
AT_ONCE = 2
"""Most tests wait for servers; each of the runs has servers of its own."""
_RUNNING: set[subprocess.Popen[bytes]] = set()


def main() -> None:
    parser = argparse.ArgumentParser(
        "mutants", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("verb", nargs="?", choices=["all", "record", "run", "check"], default="all")
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--commit", default="HEAD")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends its tests, as after Ctrl-C
    commit = commit_of(given.commit)
    known = defects(commit)
    if given.verb == "run" and (strange := set(given.ids) - {d.id for d in known}):
        parser.error(f"no such defect: {', '.join(sorted(strange))}")
    folder = HOME / commit[:12]
    scratches = [make_scratch(folder / f"clone-{number}", commit) for number in range(AT_ONCE)]
    _check(known, scratches[0])
    if given.verb == "check":
        print(f"{len(known)} defects can be planted in {commit[:12]}")
        return
    if not (folder / "reach" / "data").exists():
        print(f"recording which tests reach what; pytest writes into {folder / 'reach'}", flush=True)
        reach.record(scratches[0], folder / "reach", sorted({defect.file for defect in known}), AT_ONCE)
    if given.verb == "record":
        return
    results = folder / "results.json"
    done: dict[str, str] = json.loads(results.read_text()) if results.exists() else {}
    chosen = [d for d in known if d.id in given.ids or (not given.ids and d.id not in done)]
    for defect, test in _all_found(chosen, scratches, reach.load(folder / "reach")):
        done[defect.id] = test
        print(f"{defect.id}: {test or 'MISSED'}", flush=True)
        results.write_text(json.dumps(done, indent=1, sort_keys=True) + "\n")
    sys.exit(_tell(known, done))


def _all_found(
    chosen: Iterable[Defect], scratches: Iterable[Path], recorded: reach.Reach
) -> Iterator[tuple[Defect, str]]:
    """Each defect with the test that finds it, as they are found; a clone holds one at a time."""
    free: SimpleQueue[Path] = SimpleQueue()
    for scratch in scratches:
        free.put(scratch)

    def find(defect: Defect) -> tuple[Defect, str]:
        scratch = free.get()
        try:
            return defect, found_by(defect, scratch, recorded)
        finally:
            free.put(scratch)

    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        for finished in as_completed([pool.submit(find, defect) for defect in chosen]):
            yield finished.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for running in [*_RUNNING]:
            _end(running)


def _check(known: Sequence[Defect], scratch: Path) -> None:
    for defect in known:
        try:
            defect.planted((scratch / defect.file).read_text())
        except (Unplantable, OSError) as error:
            sys.exit(str(error))


def found_by(defect: Defect, scratch: Path, recorded: reach.Reach) -> str:
    """The test that fails on the defect, empty where none does."""
    path = scratch / defect.file
    source = path.read_text()
    left = recorded.tests_of(defect.file, source, *defect.lines(source))
    while left:
        path.write_text(defect.planted(source))
        try:
            failed, passed = _first_failure(scratch, left, recorded)
        finally:
            path.write_text(source)
        if failed not in left or not _first_failure(scratch, [failed], recorded)[0]:
            return failed
        left = [test for test in left if test not in {failed, *passed}]  # it fails by itself, now and then
    return ""


def _first_failure(scratch: Path, tests: Collection[str], recorded: reach.Reach) -> tuple[str, set[str]]:
    """The first test that fails, or what happened where no single one does; and those that passed."""
    chosen, report = scratch.with_suffix(".tests"), scratch.with_suffix(".report")
    chosen.write_text("".join(f"{test}\n" for test in tests))
    # Planting is quicker than the clock by which Python knows a compiled file to be old.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTHONPATH", None)
    longest_s = LEAST_S + TIMES * sum(recorded.seconds[test] for test in tests)
    command = [
        str(scratch / ".venv" / "bin" / "pytest"),
        "-x",
        "-q",
        "-rfEp",
        "-p",
        "no:cacheprovider",
        f"@{chosen}",
    ]
    with report.open("w") as output:
        running = subprocess.Popen(
            command, cwd=scratch, env=environment, stdout=output, stderr=output, start_new_session=True
        )
        _RUNNING.add(running)
        try:
            code = running.wait(longest_s)
        except subprocess.TimeoutExpired:
            return f"not over after {longest_s:.0f} s", set()
        finally:
            _end(running)
            _RUNNING.discard(running)
    lines = report.read_text(errors="replace").splitlines()
    passed = {line.removeprefix("PASSED ") for line in lines if line.startswith("PASSED ")}
    if code == 0:
        return "", passed
    failed = [line.partition(" ")[2] for line in lines if line.startswith(("FAILED ", "ERROR "))]
    if code not in (1, 2, 4) or not failed:
        sys.exit(f"pytest could not run (exit code {code}): see {report}")
    # The name may hold what stands between it and the error.
    named = [test for test in tests if f"{failed[0]} ".startswith(f"{test} ")]
    return max(named, key=len, default=failed[0].partition(" - ")[0]), passed


def _end(running: subprocess.Popen[bytes]) -> None:
    """With all that it has started; the tests' own servers first, as after Ctrl-C."""
    if running.poll() is None:
        running.terminate()
        with suppress(subprocess.TimeoutExpired):
            running.wait(60)
    with suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)
    running.wait()


def _tell(known: Sequence[Defect], done: dict[str, str]) -> int:
    """The figures; returns the exit code."""
    before = json.loads((HERE / "before.json").read_text()) if (HERE / "before.json").exists() else {}
    for defect in known:
        if done.get(defect.id) == "":
            print(f"missed: {defect.id}: {defect.what} ({defect.file})")
    found = sum(bool(done.get(d.id)) for d in known)
    then = sum(bool(before.get("found", {}).get(d.id)) for d in known)
    print(f"defects found: {found} of {len(known)} (before: {then})")
    return int(len(done.keys() & {d.id for d in known}) == len(known) and found < max(then, WANTED))


if __name__ == "__main__":
    main()
