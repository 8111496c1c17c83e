"""Segments are committed, followed by the next one, and listed while they are COMMITTING."""

from __future__ import annotations

from fakes.realtime.memory import MINUTE_MS, S1, S2, FakeRealtime, table_config

from pinot_assets.core.check_result import Severity
from pinot_assets.realtime.health.consuming import committing_list, next_segment, segment_status

ERROR = {S1: "ERROR", S2: "ERROR"}


def healthy() -> FakeRealtime:
    pinot = FakeRealtime()
    pinot.segment(sequence=0)
    pinot.segment(sequence=1, status="IN_PROGRESS", start=100, end=150)
    return pinot


def test_a_table_that_commits() -> None:
    state = healthy().look()
    assert segment_status(state).passed
    assert segment_status(state).message == "1 IN_PROGRESS, 0 COMMITTING, 1 DONE, 0 UPLOADED"
    assert next_segment(state).passed
    assert committing_list(state).passed


def test_a_commit_is_stuck_after_five_minutes() -> None:
    pinot = healthy()
    pinot.segment(1, 0, "COMMITTING", age_ms=4 * MINUTE_MS)
    pinot.segment(2, 0, "COMMITTING", age_ms=6 * MINUTE_MS)
    answer = segment_status(pinot.look())
    assert (answer.passed, answer.found, answer.severity) == (False, 1, Severity.WARN)
    assert "clicks__2__0" in answer.message
    assert "Pinot looks for them every 24 h" in answer.message
    assert answer.numbers["oldest_committing_s"] == 360


def test_every_stuck_commit_is_counted() -> None:
    pinot = healthy()
    for partition in (1, 2, 3):
        pinot.segment(partition, 0, "COMMITTING", age_ms=6 * MINUTE_MS)
    answer = segment_status(pinot.look())
    assert (answer.found, answer.numbers["stuck_committing"]) == (3, 3)
    assert "3 segments are COMMITTING for more than 300 s" in answer.message


def test_a_stuck_commit_in_error_everywhere_is_worse() -> None:
    pinot = healthy()
    pinot.segment(1, 0, "COMMITTING", states=ERROR)
    answer = segment_status(pinot.look())
    assert answer.severity is Severity.ERROR
    assert "1 of them in ERROR on all replicas, without a URL" in answer.message


def test_a_partial_upsert_table_is_left_alone_by_pinot() -> None:
    pinot = healthy()
    pinot.config["upsertConfig"] = {"mode": "PARTIAL"}
    pinot.segment(1, 0, "COMMITTING", states=ERROR)
    assert "Pinot does not re-ingest segments of this table" in segment_status(pinot.look()).message
    pinot.config = table_config(disasterRecoveryMode="ALWAYS")
    pinot.config["upsertConfig"] = {"mode": "PARTIAL"}
    assert "every 24 h" in segment_status(pinot.look()).message


def test_nobody_ends_a_commit_of_a_table_that_is_no_longer_pauseless() -> None:
    pinot = healthy()
    pinot.config = table_config(pauselessConsumptionEnabled=False)
    pinot.segment(1, 0, "COMMITTING")
    assert "no longer pauseless" in segment_status(pinot.look()).message


def test_a_segment_without_a_node() -> None:
    pinot = healthy()
    del pinot.nodes[pinot.segment(1, 0)]
    answer = segment_status(pinot.look())
    assert answer.severity is Severity.ERROR
    assert "without a node" in answer.message


def test_2a_the_next_segment_was_never_made() -> None:
    pinot = FakeRealtime()
    pinot.segment(status="COMMITTING", ideal="CONSUMING")
    answer = next_segment(pinot.look())
    assert (answer.passed, answer.found) == (False, 0)
    assert "is COMMITTING, and no next segment was made" in answer.message
    assert "Pinot's validation repairs it within 60 min" in answer.next_step


def test_2a_a_young_one_is_given_time() -> None:
    pinot = FakeRealtime()
    pinot.segment(status="COMMITTING", ideal="CONSUMING", age_ms=MINUTE_MS)
    assert next_segment(pinot.look()).passed


def test_2a_pinot_looks_for_one_status_only() -> None:
    pinot = FakeRealtime()
    pinot.segment(status="DONE", ideal="CONSUMING")
    assert "Pinot repairs this only for COMMITTING" in next_segment(pinot.look()).message


def test_2b_one_replica_has_given_up() -> None:
    pinot = FakeRealtime()
    name = pinot.segment(status="IN_PROGRESS")
    pinot.ideal[name][S2] = "OFFLINE"
    assert f"no longer consumed by {S2}" in next_segment(pinot.look()).message


def test_2c_all_replicas_have_given_up_or_are_closed() -> None:
    pinot = FakeRealtime()
    pinot.segment(0, 0, "IN_PROGRESS", ideal="OFFLINE")
    pinot.segment(1, 0, "DONE")
    answer = next_segment(pinot.look())
    assert answer.found == 0
    assert "was given up by all its servers" in answer.message
    assert "is closed, and no next segment was made" in answer.message


def test_2c_before_1_3_only_a_resumption_makes_the_next_segment() -> None:
    pinot = FakeRealtime("1.2.0")
    pinot.segment(0, 0, "DONE")
    assert "POST /tables/clicks/resumeConsumption" in next_segment(pinot.look()).next_step


def test_2c_a_paused_table_has_no_next_segment() -> None:
    pinot = FakeRealtime()
    pinot.segment(0, 0, "DONE")
    pinot.segment(10_000, 0, "DONE")
    pinot.stream = {}
    pinot.ideal_fields["pauseState"] = '{"paused": false, "indexOfInactiveTopics": [1]}'
    assert "partition 0" in next_segment(pinot.look()).message
    assert "10000" not in next_segment(pinot.look()).message
    pinot.ideal_fields["pauseState"] = '{"paused": true, "reasonCode": "ADMINISTRATIVE"}'
    assert next_segment(pinot.look()).passed


def test_2c_a_mixture_is_never_mended() -> None:
    pinot = FakeRealtime()
    name = pinot.segment(status="DONE")
    pinot.ideal[name][S2] = "OFFLINE"
    assert "which Pinot never repairs" in next_segment(pinot.look()).message


def test_2d_a_segment_that_never_got_into_the_ideal_state() -> None:
    pinot = healthy()
    del pinot.ideal[pinot.segment(0, 2, "IN_PROGRESS", start=150)]
    assert "is not in the ideal state" in next_segment(pinot.look()).message
    del pinot.ideal[pinot.segment(0, 3, "DONE", start=150)]
    assert "which Pinot only logs" in next_segment(pinot.look()).message


def test_2e_a_partition_of_the_stream_without_a_segment() -> None:
    pinot = healthy()
    pinot.stream[1] = (0, 5)
    assert "partition 1 of the stream has no segment" in next_segment(pinot.look()).message


def test_the_list_of_committing_segments_is_compared_both_ways() -> None:
    pinot = healthy()
    listed = pinot.segment(1, 0, "COMMITTING")
    missing = pinot.segment(2, 0, "COMMITTING")
    pinot.committing = [listed, "clicks__9__0__20260202T0240Z", "clicks__0__0__20260202T0240Z"]
    answer = committing_list(pinot.look())
    assert answer.numbers == {"listed_not_committing": 2, "committing_not_listed": 1}
    assert missing in answer.message


def test_the_list_may_be_behind_a_commit_that_runs() -> None:
    pinot = healthy()
    pinot.segment(1, 0, "COMMITTING", age_ms=1000)
    assert committing_list(pinot.look()).passed
