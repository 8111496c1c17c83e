"""Paused, stuck, or behind."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.realtime.memory import S1, S2, FakeRealtime, table_config

from pinot_assets.core.check_result import Severity
from pinot_assets.realtime.health.consuming import consumption, consumption_lag, farthest
from pinot_assets.realtime.health.metrics import numbers
from pinot_assets.realtime.model.state import RealtimeState


def consumed(offset: int = 150, lag_ms: int | None = 10) -> FakeRealtime:
    pinot = FakeRealtime()
    pinot.segment(0, 0)
    name = pinot.segment(0, 1, "IN_PROGRESS", start=100)
    pinot.consuming[name] = dict.fromkeys((S1, S2), ("CONSUMING", offset, lag_ms))
    pinot.stream = {0: (0, 150)}
    return pinot


def test_a_table_that_is_consumed() -> None:
    answer = consumption(consumed().look())
    assert (answer.passed, answer.message) == (True, "1 partition is consumed")


def test_a_table_without_a_single_partition_is_not_consumed() -> None:
    pinot = FakeRealtime()
    pinot.stream = {}
    answer = consumption(pinot.look())
    assert (answer.passed, answer.severity) == (False, Severity.ERROR)
    assert "no partition" in answer.message
    pinot.ideal_fields["isTablePaused"] = "true"
    assert consumption(pinot.look()).passed


def test_an_operators_pause_is_no_fault() -> None:
    pinot = FakeRealtime()
    pinot.segment(0, 0)
    pinot.ideal_fields["pauseState"] = (
        '{"paused": true, "reasonCode": "ADMINISTRATIVE", "comment": "new disks"}'
    )
    answer = consumption(pinot.look())
    assert (answer.passed, answer.message) == (True, "an operator paused the table (new disks)")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("RESOURCE_UTILIZATION_LIMIT_EXCEEDED", "disks or memory"),
        ("STORAGE_QUOTA_EXCEEDED", "storage quota"),
        ("SOMETHING_NEWER", "a reason that pinot-assets does not know"),
    ],
)
def test_a_pause_by_pinot_is_told_with_its_reason(code: str, words: str) -> None:
    pinot = FakeRealtime()
    pinot.segment(0, 0)
    pinot.ideal_fields["pauseState"] = f'{{"paused": true, "reasonCode": "{code}"}}'
    answer = consumption(pinot.look())
    assert (answer.passed, answer.severity) == (False, Severity.ERROR)
    assert words in answer.message


def test_nobody_consumes_and_nobody_paused() -> None:
    pinot = consumed()
    pinot.kill(S1)
    assert consumption(pinot.look()).passed
    pinot.kill(S2)
    answer = consumption(pinot.look())
    assert answer.severity is Severity.ERROR
    assert "no server consumes partitions 0, and no operator paused them" in answer.message


def test_a_paused_topic_is_told_and_the_others_are_watched() -> None:
    pinot = consumed()
    pinot.segment(10_000, 0)
    pinot.ideal_fields["pauseState"] = '{"paused": false, "indexOfInactiveTopics": [1]}'
    answer = consumption(pinot.look())
    assert (answer.passed, answer.message) == (True, "1 partition is consumed; topics 1 are paused")


def test_a_consumer_that_stands_still() -> None:
    pinot = consumed(offset=120)
    state = pinot.look()
    assert consumption(state).passed  # it got something a second ago
    late = tuple(replace(one, consumed_ms=state.read_ms - 61_000) for one in state.consumption)
    answer = consumption(replace(state, consumption=late))
    assert answer.severity is Severity.ERROR
    assert "make no progress, although the stream has more" in answer.message
    # Blocking commits take their time.
    pinot.config = table_config(pauselessConsumptionEnabled=False)
    assert consumption(replace(pinot.look(), consumption=late)).passed


def test_the_end_of_a_transaction_is_no_message_that_waits() -> None:
    pinot = consumed(offset=149)
    state = pinot.look()
    late = tuple(replace(one, consumed_ms=state.read_ms - 61_000) for one in state.consumption)
    # Each committed offset of this partition was a row: the last one is a row, too.
    assert not consumption(replace(state, consumption=late)).passed
    pinot.nodes[pinot.segment(0, 0)].fields["segment.total.docs"] = "99"
    state = pinot.look()
    assert consumption(replace(state, consumption=late)).passed
    pinot.stream = {0: (150, 150)}
    assert consumption_lag(pinot.look()).passed


def test_a_consumer_that_has_just_begun() -> None:
    pinot = consumed(offset=120)
    state = pinot.look()
    never = tuple(replace(one, consumed_ms=0) for one in state.consumption)
    assert not consumption(replace(state, consumption=never)).passed
    *others, newest = state.segments
    young = (*others, replace(newest, created_ms=state.read_ms - 1000))
    assert consumption(replace(state, consumption=never, segments=young)).passed


def test_a_consumer_that_says_so() -> None:
    pinot = consumed()
    name = next(iter(pinot.consuming))
    pinot.consuming[name] = {S1: ("NOT_CONSUMING", 120, None), S2: ("NOT_CONSUMING", 120, None)}
    assert "partitions 0 make no progress" in consumption(pinot.look()).message
    pinot.consuming[name][S2] = ("CONSUMING", 110, None)
    assert farthest(pinot.look())[0].server == S2
    assert consumption(pinot.look()).passed


def test_lag() -> None:
    pinot = consumed(offset=120)
    answer = consumption_lag(pinot.look())
    assert (answer.passed, answer.numbers["lag_messages"]) == (True, 30)
    pinot = consumed(offset=120, lag_ms=301_000)
    answer = consumption_lag(pinot.look())
    assert (answer.passed, answer.severity, answer.found) == (False, Severity.WARN, 301)


def test_an_old_pinot_tells_no_age() -> None:
    pinot = FakeRealtime("0.11.0")
    pinot.segment(0, 0, "IN_PROGRESS", start=0, end=120)
    answer = consumption_lag(pinot.look())
    assert (answer.passed, answer.numbers["lag_messages"], answer.numbers["lag_s_max"]) == (True, 80, 1)


def silent(pinot: FakeRealtime, consumed_ms: int | None) -> RealtimeState:
    state = pinot.look()
    return replace(state, consumption=tuple(replace(c, consumed_ms=consumed_ms) for c in state.consumption))


@pytest.mark.parametrize("lag_ms", [10, None])
def test_a_consumer_that_stands_still_is_the_later_the_longer_it_does(lag_ms: int | None) -> None:
    """Pinot says of it for ever how old its newest row was when it came."""
    pinot = consumed(offset=120, lag_ms=lag_ms)
    stands = silent(pinot, pinot.now_ms - 301_000)
    answer = consumption_lag(stands)
    assert (answer.passed, answer.severity, answer.found) == (False, Severity.WARN, 301)
    assert numbers(stands)["lag_s"] == 301
    pinot.stream = {0: (0, 120)}
    idle = silent(pinot, pinot.now_ms - 301_000)
    assert consumption_lag(idle).passed, "nobody writes to the stream, so nothing is late"
    assert numbers(idle).get("lag_s") == (None if lag_ms is None else 0.01)


def test_a_row_that_came_late_is_not_late_for_ever() -> None:
    """After an outage the last rows are old; then the producers rest over the weekend."""
    pinot = consumed(offset=150, lag_ms=600_000)
    just_now = silent(pinot, pinot.now_ms - 1000)
    assert not consumption_lag(just_now).passed, "what is written is old already"
    long_ago = silent(pinot, pinot.now_ms - 301_000)
    assert consumption_lag(long_ago).passed
    assert "lag_s" not in numbers(long_ago)
    assert not consumption_lag(silent(pinot, None)).passed, "of one that does not say, no more is known"
    pinot.stream = {0: (0, 200)}
    assert not consumption_lag(silent(pinot, pinot.now_ms - 301_000)).passed, "50 messages wait"


def test_a_consumer_that_has_got_nothing_is_late_since_its_segment_was_made() -> None:
    pinot = consumed(offset=100)
    state = silent(pinot, 0)
    newest = max(state.segments, key=lambda segment: segment.sequence)
    assert numbers(state)["lag_s"] == (state.read_ms - newest.created_ms) / 1000
    came_back = {
        name: replace(server, since_ms=state.read_ms - 2000) for name, server in state.servers.items()
    }
    assert numbers(replace(state, servers=came_back))["lag_s"] == 2, "or since its server came back"
    assert numbers(silent(pinot, None))["lag_s"] == 0.01, "of one that does not say, no more is known"


def test_the_lag_is_that_of_the_slowest_replica() -> None:
    pinot = consumed()
    (name,) = pinot.consuming
    pinot.consuming[name] = {S1: ("CONSUMING", 150, 10), S2: ("CONSUMING", 120, 7000)}
    assert numbers(pinot.look())["lag_s"] == 7
    assert consumption_lag(pinot.look()).found == 0.01, "the other one has them"


def test_messages_that_left_the_stream_unread() -> None:
    pinot = consumed(offset=120)
    pinot.stream = {0: (130, 150)}
    answer = consumption_lag(pinot.look())
    assert answer.severity is Severity.ERROR
    assert "dropped messages that were never consumed" in answer.message
