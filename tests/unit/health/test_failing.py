"""Files that fail again and again."""

from __future__ import annotations

from pinot_assets.health.failing import failing_files
from pinot_assets.session.receipt import Failure


def failure(name: str, attempt: int) -> Failure:
    return Failure(f"s/{name}", 0, attempt, "UNREADABLE", "line 3")


def test_no_failure_and_a_first_one_pass() -> None:
    assert failing_files("t", {}, ()).passed
    answer = failing_files("t", {("cp1", 0): [failure("a", 0)]}, [failure("a", 0)])
    assert answer.passed
    assert "1 failed once" in answer.message
    assert answer.numbers["files_failing"] == 1


def test_a_file_that_failed_in_several_attempts_and_sessions() -> None:
    attempts = {
        ("cp1", 0): [failure("a", 0), failure("b", 0)],
        ("cp1", 1): [failure("a", 1)],
        ("cp2", 0): [failure("a", 0), failure("c", 0)],
    }
    answer = failing_files("t", attempts, [failure("a", 0), failure("c", 0)])
    assert (answer.passed, answer.expected, answer.found) == (False, 0, 1)
    assert answer.message == "1 files keep failing: a in 3 attempts (UNREADABLE: line 3)"
    assert answer.next_step.startswith("repair a or take it away, then run t")
    assert answer.numbers == {"files_failing": 2, "most_attempts": 3, "attempts_with_failures": 3}


def test_a_file_that_was_built_in_the_end_is_forgotten() -> None:
    attempts = {("cp1", 0): [failure("a", 0)], ("cp1", 1): [failure("a", 1)]}
    assert failing_files("t", attempts, ()).passed
