from __future__ import annotations

from fakes.realtime.memory import S1, S2, FakeRealtime

from pinot_assets.realtime.health.condition import Condition, condition


def consuming() -> FakeRealtime:
    pinot = FakeRealtime()
    pinot.segment(0, 0)
    pinot.segment(0, 1, "IN_PROGRESS", states={S1: "CONSUMING", S2: "CONSUMING"})
    return pinot


def test_a_table_that_consumes() -> None:
    assert condition(consuming().look()) is Condition.CONSUMING


def test_a_paused_table() -> None:
    pinot = consuming()
    pinot.ideal_fields = {"isTablePaused": "true"}
    assert condition(pinot.look()) is Condition.PAUSED


def test_a_replica_in_error() -> None:
    pinot = consuming()
    pinot.segment(0, 2, states={S1: "ERROR", S2: "ONLINE"})
    assert condition(pinot.look()) is Condition.IN_ERROR


def test_a_partition_without_a_consuming_segment() -> None:
    pinot = FakeRealtime()
    pinot.segment(0, 0)
    assert condition(pinot.look()) is Condition.STOPPED


def test_a_table_without_a_segment() -> None:
    pinot = FakeRealtime()
    pinot.stream = {}
    assert condition(pinot.look()) is Condition.STOPPED


def test_what_cannot_be_read_is_not_judged() -> None:
    pinot = consuming()
    pinot.away = {"/zk/get"}
    state = pinot.look()
    assert state.unread, "a part is missing"
    assert condition(state) is Condition.UNKNOWN
