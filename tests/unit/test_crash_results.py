"""`make crash-matrix` goes on where it was stopped, and has one total: without a server."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from crash import __main__ as matrix
from crash.__main__ import Matrix, Results
from crash.points import Verdict
from rich.progress import Progress


class Course:
    """One of two points; recording it fails as often as the test says."""

    failures = 0
    tried: list[str]

    def __init__(self, *_: object) -> None: ...

    def __enter__(self) -> Course:
        return self

    def __exit__(self, *_: object) -> None: ...

    def record(self) -> list[str]:
        if Course.failures:
            Course.failures -= 1
            raise RuntimeError("a server was slow")
        return ["p1", "p2"]

    def try_point(self, point: str) -> Verdict:
        Course.tried.append(point)
        problems = ("rows are missing",) if point == "p2" and Course.tried.count("p2") == 1 else ()
        return Verdict(f"sync/change/{point}", problems, answers=10, mixed=0, triggers=1, seconds=1.0)


def test_what_failed_is_tried_again_and_what_was_recovered_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix, "Course", Course)
    monkeypatch.setattr(matrix, "points_of", lambda recorded: recorded)
    Course.failures, Course.tried = 1, []

    def run() -> Results:
        results = Results(tmp_path / "results.jsonl")
        with Progress(disable=True) as bar:
            Matrix(cast(Any, SimpleNamespace()), tmp_path, results, "", bar).run("sync", "change")
        return results

    assert [verdict.name for verdict in run().failed] == ["sync/change/undisturbed"]
    assert [verdict.name for verdict in run().failed] == ["sync/change/p2"]
    last = run()
    assert last.failed == []
    assert Course.tried == ["p1", "p2", "p2"]
    assert last.verdicts.keys() == {"sync/change/p1", "sync/change/p2"}
    assert sum(verdict.answers for verdict in last.verdicts.values()) == 20
