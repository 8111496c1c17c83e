"""`make mutants`: plant each defect of `defects.toml`, run the tests that reach it, count what is found.

    python -m mutants                  record what reaches what, if that is not known yet, and go through all
    python -m mutants run ID…          only these, whatever is known of them
    python -m mutants --commit REV …   the same on another commit
    python -m mutants check            each anchor matches once, each replacement is Python

It works on commits, in a clone of its own, and goes on where it was stopped. A defect is found when a test
fails, or hangs. The last line compares with `before.json`, the figures of the commit that it names.
"""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from mutants import reach
from mutants.scratch import PROJECT, commit_of, make_scratch

HERE = Path(__file__).parent
HOME = PROJECT / ".mutants"
LONGEST_S = 1800.0
SPREAD = ["--numprocesses=3", "--no-loadscope-reorder"]


@dataclass(frozen=True)
class Defect:
    """One that is planted.

    :ivar anchor: text that is in the file once; `replacement` takes its place.
    :ivar chosen: `code` where it was chosen before the tests were looked at, else `tests`.
    """

    id: str
    area: str
    what: str
    chosen: str
    file: Path
    anchor: str
    replacement: str

    def planted(self, source: str) -> str:
        """The source with the defect.

        :raises SystemExit: the anchor is not there exactly once, or Python cannot read the result.
        """
        if source.count(self.anchor) != 1:
            raise SystemExit(f"{self.id}: the anchor is {source.count(self.anchor)} times in {self.file}")
        planted = source.replace(self.anchor, self.replacement)
        try:
            ast.parse(planted)
        except SyntaxError as error:
            raise SystemExit(f"{self.id}: not Python any more: {error}") from None
        return planted

    def lines(self, source: str) -> tuple[int, int]:
        """First and last line of the anchor."""
        first = source[: source.index(self.anchor)].count("\n") + 1
        return first, first + self.anchor.rstrip("\n").count("\n")


def defects(commit: str) -> list[Defect]:
    """All of them; where a defect's code was another on that commit, `was` has its file and anchor."""
    made = []
    for entry in tomllib.loads((HERE / "defects.toml").read_text())["defect"]:
        was = entry.pop("was", None)
        if was is not None and commit.startswith(was.pop("commit")):
            entry |= was
        made.append(Defect(**entry | {"file": Path(entry["file"])}))
    assert len({d.id for d in made}) == len(made)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(
        "mutants", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("verb", nargs="?", choices=["all", "record", "run", "check"], default="all")
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--commit", default="HEAD")
    given = parser.parse_args()
    commit = commit_of(given.commit)
    known = defects(commit)
    folder = HOME / commit[:12]
    scratch = make_scratch(folder / "clone", commit)
    for defect in known:
        defect.planted((scratch / defect.file).read_text())
    if given.verb == "check":
        return
    if given.verb == "record" or not (folder / "reach" / "data").exists():
        shutil.rmtree(folder / "reach", ignore_errors=True)
        reach.record(scratch, folder / "reach", given.ids, SPREAD)
    if given.verb == "record":
        return
    results = folder / "results.json"
    done = json.loads(results.read_text()) if results.exists() else {}
    recorded = reach.load(folder / "reach")
    for defect in known:
        if defect.id in given.ids or (not given.ids and defect.id not in done):
            done[defect.id] = found_by(defect, scratch, recorded)
            print(f"{defect.id}: {done[defect.id] or 'MISSED'}", flush=True)
            results.write_text(json.dumps(done, indent=1, sort_keys=True) + "\n")
    _tell(known, done)


def found_by(defect: Defect, scratch: Path, recorded: reach.Reach) -> str:
    """The test that fails on the defect, empty where none does."""
    path = scratch / defect.file
    source = path.read_text()
    tests = recorded.tests_of(defect.file, source, *defect.lines(source))
    if not tests:
        return ""
    chosen = scratch.parent / "tests.txt"
    chosen.write_text("\n".join(tests) + "\n")
    path.write_text(defect.planted(source))
    try:
        return _first_failure(scratch, chosen)
    finally:
        path.write_text(source)


def _first_failure(scratch: Path, chosen: Path) -> str:
    command = [
        str(scratch / ".venv" / "bin" / "pytest"),
        "-x",
        "-q",
        "--timeout=300",
        "-p",
        "no:cacheprovider",
    ]
    report = scratch.parent / "report.txt"
    with report.open("w") as output:
        try:
            ended = subprocess.run(
                [*command, f"@{chosen}"],
                cwd=scratch,
                stdout=output,
                stderr=output,
                timeout=LONGEST_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"not over after {LONGEST_S:.0f} s"
    if ended.returncode == 0:
        return ""
    lines = report.read_text(errors="replace").splitlines()
    failed = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    if ended.returncode not in (1, 2) or not failed:
        raise SystemExit(f"pytest could not run (exit code {ended.returncode}): see {report}")
    return failed[0].partition(" ")[2].partition(" - ")[0]


def _tell(known: list[Defect], done: dict[str, str]) -> None:
    before = json.loads((HERE / "before.json").read_text()) if (HERE / "before.json").exists() else {}
    ids = [d.id for d in known if d.id in done]
    missed = [i for i in ids if not done[i]]
    for defect in known:
        if defect.id in missed:
            print(f"missed: {defect.id}: {defect.what} ({defect.file})")
    then = sum(bool(before.get("found", {}).get(d.id)) for d in known)
    print(f"defects found: {len(ids) - len(missed)} of {len(known)} (before: {then})")
    sys.exit(bool(missed) and len(ids) - len(missed) < then)


main()
