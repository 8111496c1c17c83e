"""What brings a segment in ERROR back, and whether Pinot does so."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from fakes.realtime.memory import S1, S2, FakeRealtime, table_config

from pinot_assets.core.check_result import Severity
from pinot_assets.realtime.health.copies import error_segments, replicas_not_moved
from pinot_assets.realtime.health.recovery import (
    Recovery,
    RecoveryWay,
    offset,
    recoveries,
    recovery,
    stream_holds,
)

BOTH = {S1: "ERROR", S2: "ERROR"}
ONE = {S1: "ONLINE", S2: "ERROR"}


def found(
    status: str,
    states: Mapping[str, str],
    *,
    url: str | None = "",
    earliest: int = 0,
    mode: str = "NONE",
    scheme: str | None = "http",
    pauseless: bool = True,
    dead: str | None = None,
) -> Recovery:
    pinot = FakeRealtime()
    pinot.config = table_config(pauselessConsumptionEnabled=pauseless)
    pinot.config["upsertConfig"] = {"mode": mode}
    pinot.config["segmentsConfig"]["peerSegmentDownloadScheme"] = scheme
    pinot.segment(status=status, states=states, url=url, start=10, end=100)
    pinot.stream = {0: (earliest, 500)}
    if dead:
        pinot.kill(dead)
    (one,) = recoveries(pinot.look())
    return one


@pytest.mark.parametrize(
    ("status", "states", "url", "way", "by_pinot", "recoverable"),
    [
        ("DONE", BOTH, "s3://b/x", RecoveryWay.RESET, True, True),
        ("DONE", ONE, "", RecoveryWay.RESET, True, True),
        ("DONE", BOTH, "", RecoveryWay.CONSUME_AGAIN, True, False),
        ("COMMITTING", ONE, None, RecoveryWay.RESET, True, True),
        ("COMMITTING", BOTH, None, RecoveryWay.REINGEST, True, True),
        ("IN_PROGRESS", BOTH, None, RecoveryWay.RESET, True, True),
        ("IN_PROGRESS", {S1: "CONSUMING", S2: "ERROR"}, None, RecoveryWay.RESET, False, True),
    ],
)
def test_by_status_and_copies(
    status: str,
    states: Mapping[str, str],
    url: str | None,
    way: RecoveryWay,
    by_pinot: bool,
    recoverable: bool,
) -> None:
    one = found(status, states, url=url)
    assert (one.way, one.by_pinot, one.recoverable) == (way, by_pinot, recoverable)


def test_offsets_that_have_expired_are_lost() -> None:
    assert found("DONE", BOTH, earliest=11).way is RecoveryWay.NONE
    assert found("COMMITTING", BOTH, url=None, earliest=11).way is RecoveryWay.NONE
    consumed = found("IN_PROGRESS", BOTH, url=None, earliest=11)
    assert (consumed.way, consumed.recoverable) == (RecoveryWay.RESET, False)
    assert "consumption continues at offset 11" in consumed.why


def test_a_server_that_is_away_may_have_the_only_copy() -> None:
    one = found("DONE", ONE, dead=S1)
    assert (one.way, one.recoverable) == (RecoveryWay.BRING_BACK, True)
    assert S1 in one.why
    assert found("COMMITTING", ONE, url=None, earliest=11, dead=S1).way is RecoveryWay.BRING_BACK


def test_a_copy_helps_the_others_only_with_a_peer_scheme() -> None:
    assert found("DONE", ONE, scheme=None).way is RecoveryWay.UPLOAD_THEN_RESET


def test_rows_that_must_be_read_in_order_are_not_reingested_and_pinot_leaves_the_whole_table_alone() -> None:
    one = found("COMMITTING", BOTH, url=None, mode="PARTIAL")
    assert (one.way, one.by_pinot, one.recoverable) == (RecoveryWay.CONSUME_AGAIN, False, False)
    assert found("COMMITTING", BOTH, url=None, mode="FULL").way is RecoveryWay.REINGEST
    done = found("DONE", ONE, url="s3://b/x", mode="PARTIAL")
    assert (done.way, done.by_pinot) == (RecoveryWay.RESET, False)


def test_pinot_resets_blocking_tables_unless_told_not_to() -> None:
    assert found("DONE", ONE, pauseless=False).by_pinot
    pinot = FakeRealtime()
    pinot.config = table_config(pauselessConsumptionEnabled=False)
    pinot.segment(states=ONE)
    pinot.controller_config["controller.segment.error.autoReset"] = "false"
    assert not next(recoveries(pinot.look())).by_pinot


def test_an_older_pinot_resets_nothing() -> None:
    pinot = FakeRealtime("0.11.0")
    pinot.config = table_config(pauselessConsumptionEnabled=False)
    pinot.segment(states=ONE)
    assert not next(recoveries(pinot.look())).by_pinot


def test_replicas_out_of_phase_are_told() -> None:
    one = found("COMMITTING", {S1: "OFFLINE", S2: "ERROR"}, url=None)
    assert one.way is RecoveryWay.REINGEST
    assert "only while all of them are in ERROR at once" in one.why


def test_an_offset_that_is_no_number_is_not_compared() -> None:
    pinot = FakeRealtime()
    name = pinot.segment(status="COMMITTING", states=BOTH)
    pinot.nodes[name].fields["segment.realtime.startOffset"] = '{"shard": "1"}'
    pinot.rows = {broker: {} for broker in pinot.brokers}
    state = pinot.look()
    assert stream_holds(state, state.segments[0]) is None
    assert recovery(state, state.segments[0]).way is RecoveryWay.REINGEST


def test_the_check_tells_the_three_kinds_apart() -> None:
    pinot = FakeRealtime()
    pinot.segment(0, 0, states=BOTH, url="")
    pinot.segment(0, 1, states=ONE)
    pinot.segment(0, 2, "IN_PROGRESS", states={S1: "CONSUMING", S2: "ERROR"})
    answer = error_segments(pinot.look())
    assert (answer.found, answer.severity) == (3, Severity.ERROR)
    assert answer.numbers == {"segments_in_error": 3, "unrecoverable": 1, "left_to_us": 1, "left_to_pinot": 1}
    assert "delete and consume again" in answer.message


def test_no_error_at_all() -> None:
    pinot = FakeRealtime()
    pinot.segment()
    assert error_segments(pinot.look()).passed


def test_a_replica_that_nobody_moves() -> None:
    pinot = FakeRealtime()
    name = pinot.segment(states={S1: "ONLINE", S2: "OFFLINE"})
    answer = replicas_not_moved(pinot.look())
    assert (answer.found, answer.severity) == (1, Severity.ERROR)
    assert f"restart only {S2}, then look again" in answer.next_step
    pinot.servers[S2].messages = [name]
    assert replicas_not_moved(pinot.look()).passed


def test_a_replica_of_a_server_that_does_not_serve_is_another_check() -> None:
    pinot = FakeRealtime()
    pinot.segment(states={S1: "ONLINE", S2: "OFFLINE"})
    pinot.servers[S2].ready = False
    assert replicas_not_moved(pinot.look()).passed
    pinot.servers[S2].ready = True
    pinot.nodes.popitem()
    pinot.segment(states={S1: "ONLINE", S2: "OFFLINE"}, age_ms=1000)
    assert replicas_not_moved(pinot.look()).passed


@pytest.mark.parametrize("text", ["²", "9" * 5000, "٣", "-1", "", None])
def test_what_only_looks_like_an_offset_is_none(text: str | None) -> None:
    assert offset(text) is None
