"""Deep-store bypass on a real Pinot with Kafka: an outage, a server that dies in it, the back-fill."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from fakes.realtime.kafka_table import Clicks

from demos.stack import kill, kill_committer, lose_disk
from pinot_assets.core.check_result import CheckResult
from pinot_assets.local.stack import Stack
from pinot_assets.realtime.health.all_checks import examine_state
from pinot_assets.realtime.health.copies import on_few_servers
from pinot_assets.realtime.model.state import Copy, LlcSegment, RealtimeState, SegmentStatus
from pinot_assets.realtime.repair.apply import StepResult
from pinot_assets.realtime.repair.model import Means, StepKind

pytestmark = pytest.mark.integration

SETTLED_S = 120
"""After that, health judges what is not as it should be."""
PAST_WINDOW_S = 400


def health(state: RealtimeState) -> dict[str, CheckResult]:
    return {answer.name: answer for answer in examine_state(state)}


def failed(state: RealtimeState) -> set[str]:
    return {answer.name for answer in examine_state(state) if not answer.passed}


def done(state: RealtimeState) -> set[str]:
    return {segment.name for segment in state.segments if segment.status is SegmentStatus.DONE}


def peers_only(state: RealtimeState) -> set[str]:
    return {segment.name for segment in state.segments if segment.copy is Copy.PEERS_ONLY}


def partitions(state: RealtimeState, names: set[str]) -> Counter[int]:
    return Counter(segment.partition for segment in state.segments if segment.name in names)


def settled(state: RealtimeState, rows: int) -> bool:
    """Every replica is as it should be, every broker finds every row."""
    return set(state.queryable.values()) == {rows} and all(
        replica.ideal == replica.external for segment in state.segments for replica in segment.replicas
    )


def loaded(state: RealtimeState) -> bool:
    """Every committed segment is; brokers find the rows of one that is still CONSUMING, too."""
    return all(state.live_copies(by_name(state, name)) for name in done(state))


def committed_found(state: RealtimeState) -> bool:
    """Each broker finds every row of what is committed.

    Of a segment that began less than five minutes ago, brokers from 1.0 on ask each replica in turn, a
    dead one as well, and do without it.
    """
    return all(answered.get(name) == 500 for answered in state.answered.values() for name in done(state))


def consumed_to(state: RealtimeState) -> set[int | None]:
    """The offsets that those who consume have come to."""
    return {one.offset for one in state.consumption}


def by_name(state: RealtimeState, name: str) -> LlcSegment:
    return next(segment for segment in state.segments if segment.name == name)


def test_an_outage_of_the_deep_store(clicks: Clicks, kafka_home: Path) -> None:
    stack = Stack(kafka_home)
    clicks.send(1200)
    before = clicks.until(lambda s: len(done(s)) == 2 and settled(s, 1200))
    assert not peers_only(before)
    assert failed(before) == set()

    # --- the store is away: rows arrive, segments are committed without it ---
    with clicks.store_away():
        clicks.send(2400)
        during = clicks.until(lambda s: len(done(s)) == 6 and settled(s, 3600))
        assert partitions(during, peers_only(during)) == {0: 2, 1: 2}
        assert peers_only(during) == done(during) - done(before)
        assert failed(during) == {"tmp_uploads"}  # the store cannot be listed
        later = health(clicks.look(PAST_WINDOW_S))["download_urls"]
        assert not later.passed
        assert dict(later.numbers) == {"deep_store": 2, "peers_only": 4, "never_set": 0}
        (vain, *_) = clicks.repair(haste=10)
        # A controller takes the order, and nothing comes of it; a server says that it cannot.
        result = StepResult.NO_EFFECT if clicks.dialect.uploads_on_request else StepResult.REFUSED
        assert (vain.step.kind, vain.result) == (StepKind.UPLOAD, result)

        # --- a server dies, the other one commits alone ---
        kill(stack, clicks.stack, "server-2")
        clicks.send(1200)
        alone = clicks.until(
            lambda s: len(done(s)) == 8 and loaded(s) and committed_found(s) and consumed_to(s) == {2400}
        )
        without_it = done(alone) - done(during)
        assert partitions(alone, without_it) == {0: 1, 1: 1}
        assert {len(copies) for copies in on_few_servers(alone).values()} == {1}
        assert set(on_few_servers(alone)) == peers_only(alone)
        assert {"servers", "tmp_uploads"} <= failed(alone)
        assert not health(clicks.look(SETTLED_S))["only_copies"].passed

        # --- it comes back: what it never consumed, it can only have from its peer ---
        stack.up()
        back = clicks.until(lambda s: settled(s, 4800), 120)
        assert {len(back.live_copies(by_name(back, name))) for name in without_it} == {2}
        assert peers_only(back) == peers_only(alone)
        assert failed(clicks.look(SETTLED_S)) == {"tmp_uploads"}


def test_the_back_fill(clicks: Clicks, kafka_home: Path) -> None:
    stack = Stack(kafka_home)
    with clicks.store_away():
        clicks.send(2200)
        missing = peers_only(clicks.until(lambda s: len(done(s)) == 4 and settled(s, 2200)))
    assert len(missing) == 4

    # Where the controller cannot be asked to, servers upload, and nodes are written at their version.
    means = Means.CONTROLLER if clicks.dialect.uploads_on_request else Means.SERVER
    outcomes = clicks.repair()
    assert {(o.step.kind, o.step.means, o.result) for o in outcomes} == {
        (StepKind.UPLOAD, means, StepResult.DONE)
    }
    state = clicks.look(PAST_WINDOW_S)
    assert {o.step.segments[0] for o in outcomes} == missing
    assert not peers_only(state)
    assert failed(state) == set()
    assert not clicks.repair()

    # --- and what they put there is whole: a new disk is filled from it, with no peer to ask ---
    for server in ("server-1", "server-2"):
        kill(stack, clicks.stack, server)
    lose_disk(clicks.stack, "server-1")
    lose_disk(clicks.stack, "server-2")
    stack.up()
    clicks.until(lambda s: settled(s, 2200), 120)


def test_the_committer_dies(clicks: Clicks, kafka_home: Path) -> None:
    stack = Stack(kafka_home)
    clicks.send(900)
    clicks.until(lambda s: settled(s, 900))
    with clicks.flowing():
        _, segment = kill_committer(stack, clicks.pinot, clicks.table, 60)
        state = clicks.look()
        assert by_name(state, segment).status is SegmentStatus.IN_PROGRESS
        assert "servers" in failed(state)
        (dead,) = (server for server in state.servers.values() if not server.alive)
        taken_over = clicks.until(lambda s: by_name(s, segment).status is SegmentStatus.DONE, 120)
        assert taken_over.servers[dead.name].alive is False
        assert dead.name not in taken_over.live_copies(by_name(taken_over, segment))
    stack.up()
    end = clicks.until(lambda s: settled(s, clicks.sent), 120)
    assert len(end.live_copies(by_name(end, segment))) == 2
    assert failed(clicks.look(SETTLED_S)) == set()
    assert not clicks.repair()
