"""Queries that leave out rows without a word."""

from __future__ import annotations

import pytest
from fakes.realtime.memory import MINUTE_MS, S1, S2, FakeRealtime

from pinot_assets.core.check_result import Severity
from pinot_assets.core.json_object import JsonObject
from pinot_assets.realtime.health.serving import answers, new_segments_on_dead_servers

FIRST, SECOND = "http://broker1:8099", "http://broker2:8099"


def table() -> FakeRealtime:
    pinot = FakeRealtime()
    pinot.segment(0, 0, end=100)
    pinot.segment(0, 1, "IN_PROGRESS", start=100, end=150)
    return pinot


def test_every_row_is_found() -> None:
    answer = answers(table().look())
    assert (answer.passed, answer.expected, answer.found) == (True, 150, 150)


def test_one_broker_leaves_out_a_segment() -> None:
    pinot = table()
    rows = pinot.all_rows()
    consuming = next(name for name in rows if "__0__1__" in name)
    pinot.rows["broker2"] = {name: count for name, count in rows.items() if name != consuming}
    pinot.kill(S2)
    pinot.consuming[consuming] = {S1: ("CONSUMING", 150, 0)}
    answer = answers(pinot.look())
    assert (answer.passed, answer.severity) == (False, Severity.ERROR)
    assert (answer.expected, answer.found) == (150, 100)
    assert f"{SECOND} leaves out 50 rows (33.3 %)" in answer.message
    assert FIRST not in answer.message
    assert f"start {S2} again" in answer.next_step


def test_a_replica_that_is_behind_is_not_an_incomplete_answer() -> None:
    pinot = table()
    name = next(name for name in pinot.nodes if "__0__1__" in name)
    pinot.consuming[name] = {S1: ("CONSUMING", 150, 0), S2: ("CONSUMING", 130, 0)}
    pinot.rows["broker1"] = {**pinot.all_rows(), name: 30}
    assert answers(pinot.look()).passed


def test_offsets_that_are_no_rows_ask_for_one_row_only() -> None:
    pinot = FakeRealtime()
    pinot.segment(0, 0, end=100, docs=90)  # transaction markers, or a filter
    name = pinot.segment(0, 1, "IN_PROGRESS", start=100, end=150)
    pinot.rows["broker1"] = {**pinot.all_rows(), name: 44}
    answer = answers(pinot.look())
    assert answer.passed
    assert answer.message == "2 brokers find 134 rows; the table has at least 91"
    pinot.rows["broker1"].pop(name)
    assert not answers(pinot.look()).passed


@pytest.mark.parametrize(
    "config",
    [
        {"dedupConfig": {"dedupEnabled": True}},
        {"upsertConfig": {"mode": "FULL", "dropOutOfOrderRecord": True}},
        {"ingestionConfig": {"filterConfig": {"filterFunction": "bot = 1"}}},
        {"ingestionConfig": {"aggregationConfigs": [{"columnName": "n", "aggregationFunction": "SUM(n)"}]}},
        {"tableIndexConfig": {"aggregateMetrics": True}},
    ],
)
def test_rows_that_the_table_itself_drops_are_not_left_out(config: JsonObject) -> None:
    """That every message of the segments before became a row says nothing of the next message."""
    pinot = table()
    ingestion = {**pinot.config["ingestionConfig"], **config.get("ingestionConfig", {})}
    pinot.config |= {**config, "ingestionConfig": ingestion}
    consuming = next(name for name in pinot.nodes if "__0__1__" in name)
    rows = pinot.all_rows()
    pinot.rows = {broker: {**rows, consuming: 49} for broker in pinot.brokers}
    assert answers(pinot.look()).passed
    for found in pinot.rows.values():
        del found[consuming]  # a duplicate each
    assert answers(pinot.look()).passed
    pinot.rows["broker1"][consuming] = 49
    answer = answers(pinot.look())
    assert (answer.passed, answer.expected, answer.found) == (False, 101, 100)
    assert f"{SECOND} leaves out 1 row" in answer.message


def test_a_broker_that_answers_with_an_error_is_told_beside_the_others() -> None:
    pinot = table()
    pinot.away.add("broker2/query")
    answer = answers(pinot.look())
    assert not answer.passed
    assert answer.severity is Severity.WARN
    assert "the answers are not known: http://broker2:8099" in answer.message
    pinot.away.add("broker1/query")
    assert not answers(pinot.look()).known


def test_new_segments_on_a_dead_server() -> None:
    pinot = FakeRealtime()
    pinot.segment(0, 0, age_ms=60 * MINUTE_MS)
    pinot.kill(S2, ago_ms=20 * MINUTE_MS)
    assert new_segments_on_dead_servers(pinot.look()).passed
    pinot.segment(0, 1, "IN_PROGRESS", states={S1: "CONSUMING"}, age_ms=10 * MINUTE_MS)
    answer = new_segments_on_dead_servers(pinot.look())
    assert (answer.found, answer.severity) == (1, Severity.ERROR)
    assert "clicks__0__1" in answer.message


def test_what_was_served_everywhere_before_the_server_died_is_not_new() -> None:
    pinot = FakeRealtime()
    pinot.segment(0, 0, age_ms=4 * MINUTE_MS)
    pinot.kill(S2, ago_ms=1000)
    assert new_segments_on_dead_servers(pinot.look()).passed
    name = pinot.segment(0, 1, states={S1: "ONLINE"}, age_ms=30_000)
    assert new_segments_on_dead_servers(pinot.look()).found == 1
    pinot.external[name][S1] = "ERROR"
    assert new_segments_on_dead_servers(pinot.look()).passed


def test_a_server_that_is_starting_counts_for_young_segments() -> None:
    pinot = FakeRealtime()
    pinot.segment(0, 0, states={S1: "ONLINE"}, age_ms=4 * MINUTE_MS)
    pinot.servers[S2].ready = False
    assert not new_segments_on_dead_servers(pinot.look()).passed
    pinot.broker_config["pinot.broker.new.segment.expiration.seconds"] = "60"
    assert new_segments_on_dead_servers(pinot.look()).passed


def test_before_1_0_nothing_is_left_out() -> None:
    pinot = FakeRealtime("0.11.0")
    pinot.kill(S2)
    pinot.segment(0, 0, states={S1: "ONLINE"}, age_ms=1000)
    assert new_segments_on_dead_servers(pinot.look()).message == "this Pinot leaves out none"
