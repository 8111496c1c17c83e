"""Files that fail again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fakes.looked import looked

from pinot_assets.core.check_result import CheckResult
from pinot_assets.health import source
from pinot_assets.health.readings import Attempts, still_there
from pinot_assets.session.values.plan import Plan, Row, RowStatus
from pinot_assets.session.values.state import Mode
from pinot_assets.snapshot.receipt import Failure
from pinot_assets.source import Fingerprint, SourceFile

V1, V2 = Fingerprint(1, 1), Fingerprint(1, 2)


def failure(name: str, attempt: int) -> Failure:
    return Failure(f"s/{name}", 0, attempt, "UNREADABLE", "line 3")


def failing_files(attempts: Attempts, failing_now: Sequence[Failure]) -> CheckResult:
    return source.failing_files(looked(session=None, attempts=attempts, failing_now=failing_now))


def test_no_failure_and_a_first_one_pass() -> None:
    assert failing_files({}, ()).passed
    answer = failing_files({("cp1", 0): [failure("a", 0)]}, [failure("a", 0)])
    assert answer.passed
    assert "1 failed once" in answer.message
    assert answer.numbers["files_failing"] == 1


def test_a_file_that_failed_in_several_attempts_and_sessions() -> None:
    attempts = {
        ("cp1", 0): [failure("a", 0), failure("b", 0)],
        ("cp1", 1): [failure("a", 1)],
        ("cp2", 0): [failure("a", 0), failure("c", 0)],
    }
    answer = failing_files(attempts, [failure("a", 0), failure("c", 0)])
    assert (answer.passed, answer.expected, answer.found) == (False, 0, 1)
    assert answer.message == "1 file failed again and again: a in 3 attempts (UNREADABLE: line 3)"
    assert answer.next_step.startswith("correct a or delete it, then run t")
    assert answer.numbers == {"files_failing": 2, "most_attempts": 3, "attempts_with_failures": 3}


def test_a_file_that_was_built_in_the_end_is_forgotten() -> None:
    attempts = {("cp1", 0): [failure("a", 0)], ("cp1", 1): [failure("a", 1)]}
    assert failing_files(attempts, ()).passed


def test_a_file_that_was_removed_or_repaired_is_not_there_as_it_was() -> None:
    failures = [replace(failure(name, 0), ordinal=n) for n, name in enumerate("abcd")]
    rows = tuple(Row(f"s/{name}", n, V1, RowStatus.BUILD) for n, name in enumerate("abc"))
    plan = Plan("cp1-aaaaaa", 0, Mode.APPEND, rows, (), {}, "")
    files = {f"s/{name}": SourceFile(f"s/{name}", found) for name, found in (("a", V1), ("b", V2), ("d", V1))}
    there = still_there(failures, plan, files)
    assert [failure.uri for failure in there] == ["s/a", "s/d"], "Pinot refused d, so no plan has it any more"
    assert still_there(failures, plan, {}) == ()
