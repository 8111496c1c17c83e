"""A check answers with its worst problem first and says what to do."""

from __future__ import annotations

from pinot_assets.core.check_result import (
    CheckProblem,
    Severity,
    check_result_of,
    failed,
    hours,
    passed,
    some,
    unknown,
    warned,
)


def test_the_worst_problem_leads() -> None:
    problems = [CheckProblem("slow", "wait"), CheckProblem("lost", "restore", Severity.ERROR)]
    answer = check_result_of("x", problems, expected=1, found=0, good="fine", numbers={"n": 2})
    assert (answer.passed, answer.severity, answer.known) == (False, Severity.ERROR, True)
    assert answer.description == "lost; slow\n→ restore"
    assert answer.numbers == {"n": 2}


def test_without_problems_it_passes_with_its_numbers() -> None:
    answer = check_result_of("x", [], expected=3, found=3, good="fine", numbers={"n": 0})
    assert (answer.passed, answer.expected, answer.found) == (True, 3, 3)
    assert answer.description == "fine"


def test_what_is_not_known_has_failed_with_its_reason() -> None:
    answer = unknown("x", "Pinot is away", "")
    assert (answer.passed, answer.known, answer.severity) == (False, False, Severity.WARN)
    assert answer.description == "not known: Pinot is away\n→ look again later"


def test_only_a_failure_that_is_no_warning_blocks() -> None:
    answers = (passed("x", "fine"), warned("x", "slow", "wait"), failed("x", "lost", "restore"))
    assert [answer.blocks for answer in answers] == [False, False, True]
    assert [answer.pick("ok", "warn", "fail") for answer in answers] == ["ok", "warn", "fail"]
    assert [answer.passed for answer in answers] == [True, False, False]


def test_names_and_hours_for_people() -> None:
    assert some(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert some(["a"]) == "a"
    assert hours(5_400_000) == 1.5
    assert hours(-1) == 0.0
