"""Parts of answers put together and held against what is expected."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinot_assets.audit.assertions import (
    Answers,
    as_expected,
    assertion_holds,
    assertion_unanswered,
    broker_tally,
    tally,
)
from pinot_assets.errors import PinotError
from pinot_assets.pinot.client.broker import QueryResult
from pinot_assets.pinot.client.data_table import DataTable
from pinot_assets.table_spec.blocks.assertion import MOST_GROUPS
from pinot_assets.table_spec.blocks.assertion_sql import read_question, read_shadow_question
from pinot_assets.table_spec.blocks.audit import Assertion

ALL = "SELECT COUNT(*), SUM(x), MIN(x), MAX(x) FROM t"
BY_DAY = "SELECT day, COUNT(*), MAX(x) FROM t GROUP BY day"


def answer(*rows: tuple[Any, ...], width: int | None = None, cut: bool = False) -> DataTable:
    columns = tuple(("c", "DOUBLE") for _ in range(width if width is not None else len(rows[0])))
    return DataTable(columns, rows, {}, 1, 1, cut)


def finding(sql: str, expect: str, answers: Answers, severity: Any = "error") -> Any:
    return assertion_holds(Assertion(sql=sql, expect=expect, severity=severity), answers)


def test_each_aggregate_is_put_together_in_its_own_way() -> None:
    parts = [answer((3, 10.0, 1.0, 7.0)), answer((2, -4.0, -9.0, 5.0))]
    assert tally(read_question(ALL), parts) == {(): (5, 6.0, -9.0, 7.0)}


def test_groups_of_several_servers_meet() -> None:
    parts = [answer(("mon", 3, 7.0), ("tue", 1, 2.0)), answer(("tue", 4, 9.0))]
    assert tally(read_question(BY_DAY), parts) == {("mon",): (3, 7.0), ("tue",): (5, 9.0)}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-50, 50)), min_size=1), st.data())
def test_an_answer_is_the_same_however_rows_lie_on_servers(rows: list[tuple[str, int]], data: Any) -> None:
    question = read_question("SELECT g, COUNT(*), SUM(x), MIN(x), MAX(x) FROM t GROUP BY g")

    def served(part: list[tuple[str, int]]) -> DataTable:
        by_group: dict[str, list[int]] = {}
        for group, value in part:
            by_group.setdefault(group, []).append(value)
        found = [(g, len(v), sum(v), min(v), max(v)) for g, v in by_group.items()]
        return answer(*found, width=5)

    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    parts = [served(rows[a:b]) for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    assert tally(question, parts) == tally(question, [served(rows)])


NAN = float("nan")


@pytest.mark.parametrize(
    "parts", [[(1, NAN, NAN, NAN), (1, 2.0, 2.0, 2.0)], [(1, 2.0, 2.0, 2.0), (1, NAN, NAN, NAN)]]
)
def test_what_is_no_number_on_one_server_is_none_of_all(parts: list[tuple[Any, ...]]) -> None:
    """Pinot's own minimum of a NaN and a number is NaN, whichever comes first."""
    values = tally(read_question(ALL), [answer(part) for part in parts])[()]
    assert [str(value) for value in values] == ["2.0", "nan", "nan", "nan"]
    for expect in (">= 0", "!= 5", "<= 5"):
        found = finding(ALL, expect, Answers(({(): values},)))
        assert (found.passed, found.expected - found.found) == (False, 3)


def test_groups_that_are_no_number_meet() -> None:
    parts = [answer((float("nan"), 3, 7.0)), answer((float("nan"), 1, 2.0))]
    assert list(tally(read_question(BY_DAY), parts).values()) == [(4.0, 7.0)]


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (answer((1, 2)), "instead of 4 values"),
        (answer((1, 2, None, 4)), "only Pinot can merge"),
        (answer(width=4), "0 rows"),
        (answer((1, 2, 3, 4), (1, 2, 3, 4)), "2 rows"),
    ],
)
def test_an_answer_to_another_question_is_refused(part: DataTable, reason: str) -> None:
    with pytest.raises(PinotError, match=reason):
        tally(read_question(ALL), [part])


def test_groups_that_a_server_left_out_are_no_answer() -> None:
    for part in (answer(("mon", 1, 1.0), cut=True), answer(*[(n, 1, 1.0) for n in range(MOST_GROUPS)])):
        with pytest.raises(PinotError, match="left groups out"):
            tally(read_question(BY_DAY), [part])


def test_a_value_that_holds() -> None:
    found = finding("SELECT COUNT(*) FROM t WHERE x < 0", "= 0", Answers(({(): (0.0,)},)))
    assert (found.passed, found.expected, found.found, found.blocks) == (True, 1, 1, False)


def test_a_value_that_does_not_hold_is_told_with_what_was_expected() -> None:
    found = finding("SELECT COUNT(*) FROM t WHERE x < 0", "= 0", Answers(({(): (1234.0,)},)))
    assert (found.passed, found.blocks, found.at_fault) == (False, True, ())
    assert found.name == "sql: SELECT COUNT(*) FROM t WHERE x < 0 (= 0)"
    assert found.message == "0 of 1 answers are = 0: COUNT(*) is 1,234"


def test_a_warning_keeps_nothing_back() -> None:
    found = finding("SELECT COUNT(*) FROM t", "= 0", Answers(({(): (1.0,)},)), "warn")
    assert (found.passed, found.blocks) == (False, False)


def test_one_replica_that_answers_otherwise_is_enough() -> None:
    found = finding("SELECT COUNT(*) FROM t", "= 3", Answers(({(): (3.0,)}, {(): (2.0,)})))
    assert (found.passed, found.expected, found.found) == (False, 2, 1)


def test_what_all_replicas_say_is_told_once() -> None:
    found = finding("SELECT COUNT(*) FROM t", "= 3", Answers(({(): (2.0,)}, {(): (2.0,)})))
    assert (found.expected, found.found) == (2, 0)
    assert found.message == "0 of 2 answers are = 3: COUNT(*) is 2"


def test_every_group_is_compared_with_its_own_live_one() -> None:
    sql = "SELECT day, COUNT(*) FROM t GROUP BY day"
    live = {("mon",): (100.0,), ("tue",): (10.0,), ("wed",): (50.0,)}
    staged = {("mon",): (95.0,), ("tue",): (8.0,), ("thu",): (1.0,)}
    found = finding(sql, ">= 0.9 * live", Answers((staged,), leaving=live))
    assert (found.expected, found.found) == (4, 2)
    assert "COUNT(*) for tue is 8, live 10" in found.message
    assert "COUNT(*) for wed is 0, live 50" in found.message


def test_what_queries_will_see_is_what_stays_and_what_comes() -> None:
    answers = Answers(({(): (5.0,)},), kept={(): (90.0,)}, leaving={(): (10.0,)})
    assert finding("SELECT COUNT(*) FROM t", "after >= 0.95 * live", answers).passed
    assert not finding("SELECT COUNT(*) FROM t", "after >= live", answers).passed
    assert finding("SELECT COUNT(*) FROM t", "after = 95", answers).passed


@pytest.mark.parametrize("expect", ["staged <= 2 * live", "after <= 1.5 * live", ">= live", "!= live"])
@pytest.mark.parametrize("sql", [ALL, BY_DAY])
def test_where_nothing_is_live_there_is_nothing_to_compare_with(sql: str, expect: str) -> None:
    values: Any = {(): (5.0, 6.0, 1.0, 2.0)} if sql == ALL else {("mon",): (3.0, 7.0)}
    found = finding(sql, expect, Answers((values,), live=False))
    assert (found.passed, found.expected) == (True, 0)
    assert "nothing is published" in found.message


def test_what_is_not_compared_with_live_is_asked_of_the_first_switch_too() -> None:
    assert not finding("SELECT COUNT(*) FROM t", "after > 9", Answers(({(): (5.0,)},), live=False)).passed


def test_a_switch_that_removes_only() -> None:
    gone = Answers((), kept={}, leaving={(): (10.0,)})
    assert finding("SELECT COUNT(*) FROM t", "> 0", gone).passed  # nothing is staged
    assert not finding("SELECT COUNT(*) FROM t", "after > 0", gone).passed
    assert not finding("SELECT COUNT(*) FROM t", "after >= 0.5 * live", gone).passed


def test_the_smallest_of_no_rows_is_nothing() -> None:
    none = Answers(({(): (float("inf"),)},))
    found = finding("SELECT MIN(x) FROM t", ">= 0", none)
    assert (found.passed, found.message) == (False, "0 of 1 answers are >= 0: MIN(x) is nothing")


def test_what_was_not_answered_keeps_the_gate_shut_and_waits() -> None:
    found = assertion_unanswered(Assertion(sql="SELECT COUNT(*) FROM t", expect="= 0"), "Server_1 is away")
    assert (found.blocks, found.at_fault) == (True, ())
    assert "Server_1 is away" in found.message


# --- what a broker answers -----------------------------------------------------------------------------


def broker(*rows: tuple[Any, ...]) -> QueryResult:
    return QueryResult((), (), rows, 1, 1)


def test_keys_and_values_are_told_apart_by_their_places() -> None:
    question = read_shadow_question("SELECT AVG(x), day, DISTINCTCOUNT(y) FROM t GROUP BY day")
    found = broker_tally(question, broker((1.5, "mon", 3), ("-Infinity", "tue", 0)))
    assert found == {("mon",): (1.5, 3.0), ("tue",): (-float("inf"), 0.0)}


@pytest.mark.parametrize("rows", [[], [(1,), (2,)]])
def test_one_row_is_wanted_where_nothing_is_grouped(rows: list[tuple[Any, ...]]) -> None:
    with pytest.raises(PinotError, match=f"{len(rows)} rows instead of one"):
        broker_tally(read_shadow_question("SELECT AVG(x) FROM t"), broker(*rows))


def test_a_value_that_is_no_number_is_no_answer() -> None:
    question = read_shadow_question("SELECT DISTINCTCOUNTRAWHLL(x) FROM t")
    for value in ("0a1b", [1, 2]):
        with pytest.raises(PinotError, match="not a number"):
            broker_tally(question, broker((value,)))
    assert broker_tally(question, broker(("12.50",))) == {(): (12.5,)}


def test_groups_beyond_the_limit_are_no_answer_unless_the_text_has_its_own() -> None:
    rows = [(n, 1) for n in range(MOST_GROUPS)]
    with pytest.raises(PinotError, match="left groups out"):
        broker_tally(read_shadow_question("SELECT a, AVG(b) FROM t GROUP BY a"), broker(*rows))
    limited = read_shadow_question(f"SELECT a, AVG(b) FROM t GROUP BY a LIMIT {MOST_GROUPS}")
    assert len(broker_tally(limited, broker(*rows))) == MOST_GROUPS


def shadow(sql: str, expect: str) -> Assertion:
    return Assertion(sql=sql, expect=expect, via="shadow")


def test_the_average_of_no_rows_is_nothing() -> None:
    asked = shadow("SELECT AVG(x) FROM t", "<= 9")
    found = as_expected(asked, [broker_tally(asked.question, broker((None,)))], None)
    assert (found.passed, found.message) == (False, "0 of 1 answers are <= 9: AVG(x) is nothing")


def test_a_sum_of_no_rows_is_0_for_a_broker_that_handles_nulls_too() -> None:
    for expect, passed in (("= 0", True), (">= 0", True), ("< 0", False)):
        asked = shadow("SELECT SUM(x) FROM t", expect)
        assert as_expected(asked, [broker_tally(asked.question, broker((None,)))], None).passed == passed


def test_rows_of_another_shape_are_no_answer() -> None:
    with pytest.raises(PinotError, match="do not have 1 values"):
        broker_tally(read_shadow_question("SELECT AVG(x) FROM t"), broker((1, 2)))


def test_a_group_that_went_has_no_different_values() -> None:
    asked = shadow("SELECT day, DISTINCTCOUNT(x), AVG(x) FROM t GROUP BY day", ">= live")
    found = as_expected(asked, [{}], {("mon",): (2.0, 1.0)})
    assert found.name == "sql via shadow: SELECT day, DISTINCTCOUNT(x), AVG(x) FROM t GROUP BY day (>= live)"
    assert (found.expected, found.found, found.of_data) == (2, 0, True)
    assert "DISTINCTCOUNT(x) for mon is 0, live 2; AVG(x) for mon is nothing, live 1" in found.message
