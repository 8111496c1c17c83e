"""The rebalance guard counts live copies, and the rebalance is followed to its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from fakes.realtime.hurt_pinot import Clock
from fakes.realtime.hurt_tables import (
    NOW,
    PAUSELESS,
    consuming,
    hurt_tables,
    replicas,
    segment,
    server,
    table,
)
from fakes.zookeeper.memory import FakeZooKeeper
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.errors import PinotNotFound, PreflightRefused, SwitchStateUnknown
from pinot_assets.realtime.lease import OperationsStore
from pinot_assets.realtime.model.state import RealtimeState, Replica, SegmentStatus, StreamPartition
from pinot_assets.realtime.operations.rebalance import End, Rebalance, RebalanceReport, preview_rebalance
from pinot_assets.realtime.operations.rebalance_plan import (
    Preview,
    RebalancePlan,
    Request,
    judge,
    moves_of,
)
from pinot_assets.realtime.repair.facts import without_tar
from pinot_assets.session.values.state import Owner

AB = replicas(a="ONLINE", b="ONLINE")
STORED = segment(SegmentStatus.DONE, AB, "s3://d/t/0")
PEERS_ONLY = segment(SegmentStatus.DONE, AB, "")
PASSED = {"isMinimizeDataMovement": ("PASS", "")}
THREE = (server("a"), server("b"), server("c"))


def moving(state: RealtimeState, *after: str) -> Preview:
    """All its segments go to those servers; Pinot's pre-checks pass."""
    return Preview("DONE", "", {s.name: frozenset(after) for s in state.segments}, PASSED)


def objections(found: RebalancePlan) -> dict[str, bool]:
    return {one.name: one.blocks for one in found.objections}


def asked(state: RealtimeState, *after: str, **options: str) -> dict[str, bool]:
    return objections(judge(Request.of(**options), state, moving(state, *after)))


def test_an_ordinary_rebalance_is_let_through() -> None:
    state = table(STORED, PEERS_ONLY, consuming(), servers=THREE)
    found = judge(Request.of(), state, moving(state, "b", "c"))
    assert found.objections == ()
    assert not found.refused
    assert len(found.moves) == 3
    assert found.upload_first == (PEERS_ONLY.name,)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"downtime": "true"}, "downtime"),
        ({"allowPeerDownloadDataLoss": "true"}, "allowPeerDownloadDataLoss"),
        ({"minAvailableReplicas": "0"}, "minAvailableReplicas"),
        ({"minAvailableReplicas": "-2"}, "minAvailableReplicas"),
    ],
)
def test_what_is_refused_by_its_options(options: dict[str, str], name: str) -> None:
    state = table(STORED, servers=THREE)
    assert asked(state, "b", "c", **options)[name]


@pytest.mark.parametrize("least", ["0", "-2", "-3"])
def test_no_replica_kept_is_refused_whatever_moves(least: str) -> None:
    state = table(STORED, servers=THREE)
    assert asked(state, "a", "b", minAvailableReplicas=least) == {"minAvailableReplicas": True}
    fewer = table(STORED, settings=replace(PAUSELESS, replication=3), servers=THREE)
    assert asked(fewer, "b", minAvailableReplicas="-3")["minAvailableReplicas"]


def test_one_replica_needs_that_none_is_kept() -> None:
    one = replace(PAUSELESS, replication=1, peer_scheme=None)
    at = replicas(a="ONLINE")
    stored = table(replace(STORED, replicas=at), settings=one, servers=THREE)
    alone = table(replace(PEERS_ONLY, replicas=at), settings=one, servers=THREE)
    for least in ("0", "-1", "-2"):
        assert asked(stored, "b", minAvailableReplicas=least) == {"answers": False}
        assert asked(alone, "b", minAvailableReplicas=least) == {"only copies": True}


def test_the_segment_with_the_fewest_replicas_counts_for_all() -> None:
    # Pinot takes one number for all that moves: where one shall have one replica, -1 keeps none of any.
    other = replace(STORED, name="t__1__0__20260101T0000Z", partition=1)
    state = table(PEERS_ONLY, other, servers=(*THREE, server("d")))
    target = {PEERS_ONLY.name: frozenset("cd"), other.name: frozenset("c")}
    found = judge(Request.of(), state, Preview("DONE", "", target, PASSED))
    assert objections(found) == {"only copies": True, "answers": False}


def test_the_segment_that_has_the_fewest_replicas_now_counts_for_all_too() -> None:
    at = replicas(a="ONLINE", b="ONLINE", c="ONLINE")
    servers = (server("a", alive=False), *(server(name) for name in "bcdef"))
    state = table(replace(PEERS_ONLY, replicas=at), servers=servers)
    assert asked(state, "d", "e", "f", minAvailableReplicas="2") == {}
    single = replace(STORED, name="t__1__0__20260101T0000Z", partition=1, replicas=replicas(b="ONLINE"))
    both = replace(state, segments=(*state.segments, single))
    assert asked(both, "d", "e", "f", minAvailableReplicas="2") == {"only copies": True}


def test_what_is_only_warned_of() -> None:
    state = table(STORED, servers=THREE)
    assert asked(state, "b", "c", includeConsuming="false") == {"includeConsuming": False}
    assert asked(state, "b", "c", bestEfforts="true") == {"bestEfforts": False}
    peers = table(PEERS_ONLY, servers=THREE)
    assert asked(peers, "b", "c", bestEfforts="true") == {"bestEfforts": True}


def test_dead_replicas_do_not_count() -> None:
    # One of two servers is dead; Pinot keeps one replica, and it may be the dead one.
    state = table(PEERS_ONLY, servers=(server("a", alive=False), server("b"), server("c"), server("d")))
    assert asked(state, "c", "d") == {"only copies": True}
    assert asked(state, "b", "c") == {}
    stored = replace(state, segments=(STORED,))
    assert asked(stored, "c", "d") == {"answers": False}


def test_one_replica_moves_only_from_the_deep_store() -> None:
    one = table(replace(PEERS_ONLY, replicas=replicas(a="ONLINE")), servers=THREE)
    found = judge(Request.of(), one, moving(one, "b"))
    assert objections(found) == {"only copies": True}
    assert "one replica" in found.objections[0].message
    assert "--upload-first" in found.objections[0].next_step
    stored = replace(one, segments=(replace(STORED, replicas=replicas(a="ONLINE")),))
    assert asked(stored, "b") == {"answers": False}


def test_what_no_live_server_has_stays_where_it_may_be() -> None:
    dead = table(PEERS_ONLY, servers=(server("a", alive=False), server("b", alive=False), server("c")))
    assert asked(dead, "b", "c") == {"no live copy": True}


def test_a_commit_that_is_being_built_is_a_copy() -> None:
    building = segment(SegmentStatus.COMMITTING, replicas(a="ONLINE>CONSUMING", b="ONLINE>CONSUMING"))
    state = table(building, servers=THREE)
    assert asked(state, "b", "c") == {}


def test_what_is_consumed_moves_while_the_stream_has_it() -> None:
    state = table(consuming(), servers=(*THREE, server("d")), stream={0: StreamPartition(0, 150, 900)})
    assert asked(state, "b", "c") == {}
    assert asked(state, "c", "d") == {}
    alone = table(consuming(a="CONSUMING"), servers=THREE, stream={0: StreamPartition(0, 150, 900)})
    assert asked(alone, "b") == {"stream": True}
    held = replace(alone, stream={0: StreamPartition(0, 100, 900)})
    assert asked(held, "b") == {}


def test_pinots_own_pre_checks_count() -> None:
    state = table(STORED, servers=THREE)
    told = Preview.from_json(
        {
            "status": "DONE",
            "description": "Dry-run mode",
            "segmentAssignment": {STORED.name: {"b": "ONLINE", "c": "ONLINE"}},
            "preChecksResult": {
                "diskUtilizationDuringRebalance": {"preCheckStatus": "ERROR", "message": "UNSAFE"},
                "needsReloadStatus": {"preCheckStatus": "ERROR", "message": "Could not determine"},
                "isMinimizeDataMovement": {"preCheckStatus": "WARN", "message": "off"},
                "replicaGroupsInfo": {"preCheckStatus": "PASS", "message": ""},
            },
        }
    )
    assert objections(judge(Request.of(), state, told)) == {
        "diskUtilizationDuringRebalance": True,
        "needsReloadStatus": False,
        "isMinimizeDataMovement": False,
    }
    failed = Preview("FAILED", "no servers", {})
    assert objections(judge(Request.of(), state, failed)) == {"dry run": True}


@pytest.mark.parametrize("told", [{}, {"preChecksResult": None}, {"preChecksResult": {}}])
def test_pre_checks_that_pinot_could_not_run_are_not_known(told: JsonObject) -> None:
    target = {STORED.name: {"b": "ONLINE", "c": "ONLINE"}}
    state = table(STORED, servers=THREE)
    without = Preview.from_json({"status": "DONE", "segmentAssignment": target, **told})
    found = judge(Request.of(), state, without)
    assert objections(found) == {"pre-checks": True}
    assert "not known" in found.objections[0].message
    old = replace(state, cluster=replace(state.cluster, version="1.3.0"))
    assert objections(judge(Request.of(), old, without)) == {}
    nothing = Preview.from_json({"status": "NO_OP", "segmentAssignment": {}, **told})
    assert objections(judge(Request.of(), state, nothing)) == {}


def test_nothing_is_judged_from_half_a_state() -> None:
    blind = table(STORED, unread={"external": "no answer"})
    assert judge(Request.of(), blind, moving(blind, "b")).refused


def test_the_number_must_be_one() -> None:
    with pytest.raises(ValueError, match="many"):
        Request.of(minAvailableReplicas="many")


@settings(max_examples=300, deadline=None)
@given(hurt_tables(), st.integers(-2, 3), st.data())
def test_whatever_pinot_drops_first_a_live_copy_is_left(
    state: RealtimeState, least: int, data: st.DataObject
) -> None:
    some = st.frozensets(st.sampled_from("abcd"), min_size=1, max_size=3)
    told = Preview("DONE", "", {s.name: data.draw(some) for s in state.segments}, PASSED)
    request = Request.of(minAvailableReplicas=str(least))
    if judge(request, state, told).refused:
        return
    moves = moves_of(state, told)
    # `TableRebalancer.doRebalance`: one number for all that moves.
    most = min((len(move.after) for move in moves), default=0)
    available = min([least if least >= 0 else max(most + least, 0), *(len(move.before) for move in moves)])
    for move in moves:
        live = set(state.live_copies(move.segment))
        if move.segment.status is SegmentStatus.COMMITTING:
            building = [r for r in move.segment.in_state("CONSUMING") if r.ideal in ("CONSUMING", "ONLINE")]
            known = [(r.server, state.servers.get(r.server)) for r in building]  # a server can be gone
            live |= {name for name, server in known if server is not None and server.alive}
        if not (live & move.before) or not without_tar(move.segment):
            continue
        common = move.before & move.after
        others = sorted(move.before - common)
        kept = max(available - len(common), 0)
        chosen = data.draw(st.permutations(others))[:kept] if others else []
        assert live & (common | set(chosen))


# --- on a real one -----------------------------------------------------------------------------------------


class RebalancingPinot:
    """Moves segments one poll after the other."""

    def __init__(self, state: RealtimeState, *after: str) -> None:
        self.state, self.after = state, after
        self.started = False
        self.statuses = ["IN_PROGRESS", "IN_PROGRESS", "DONE"]
        self.answer: JsonMapping | Exception = {"jobId": "j1", "status": "IN_PROGRESS"}
        self.polls = 0

    def preview_rebalance(self, name: str, options: Mapping[str, str]) -> JsonMapping:
        assert options["includeConsuming"] == "true"
        target = {s.name: dict.fromkeys(self.after, "ONLINE") for s in self.state.segments}
        same = all({r.server for r in s.replicas} == set(self.after) for s in self.state.segments)
        checks = {"isMinimizeDataMovement": {"preCheckStatus": "PASS", "message": ""}}
        status = "NO_OP" if same else "DONE"
        return {"status": status, "segmentAssignment": target, "preChecksResult": checks}

    def rebalance(self, name: str, options: Mapping[str, str]) -> JsonMapping:
        self.started = True
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def rebalance_status(self, job: str) -> JsonMapping:
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        if status == "GONE":
            raise PinotNotFound("no such job")
        return {"tableRebalanceProgressStats": {"status": status, "completionStatusMsg": "said"}}

    def read(self) -> RealtimeState:
        if not self.started:
            return self.state
        self.polls += 1
        external = "ONLINE" if self.polls > 2 else "OFFLINE"
        at = tuple(Replica(name, "ONLINE", external) for name in self.after)
        moved = [replace(s, replicas=at) if self.polls > 1 else s for s in self.state.segments]
        return replace(self.state, segments=tuple(moved))


def run(pinot: RebalancingPinot, patience_s: float = 600, **options: str) -> RebalanceReport:
    clock = Clock(NOW)
    zookeeper = FakeZooKeeper()
    zookeeper.client().ensure_path("/pinot/PROPERTYSTORE")
    store = OperationsStore(zookeeper.client(), "pinot", "t_REALTIME")  # type: ignore[arg-type]
    with store.take(Owner("test", "host", 1, NOW)) as lease:
        made = Rebalance(pinot, pinot.read, lease, patience_s=patience_s, clock=clock)
        return made.run(Request.of(**options))


def test_it_is_followed_to_its_end() -> None:
    pinot = RebalancingPinot(table(STORED, servers=THREE), "b", "c")
    assert run(pinot) == RebalanceReport(End.DONE, "said")
    assert pinot.polls == 3


def test_without_a_job_the_table_itself_tells() -> None:
    old = RebalancingPinot(table(STORED, servers=THREE), "b", "c")
    old.answer = {"status": "IN_PROGRESS"}
    assert run(old).end is End.DONE
    lost = RebalancingPinot(table(STORED, servers=THREE), "b", "c")
    lost.answer = SwitchStateUnknown("no answer came")
    assert run(lost).end is End.DONE
    gone = RebalancingPinot(table(STORED, servers=THREE), "b", "c")
    gone.statuses = ["GONE"]
    assert run(gone).end is End.DONE


def test_what_could_not_be_read_is_not_done() -> None:
    pinot = RebalancingPinot(table(STORED, servers=THREE), "b", "c")
    pinot.answer = SwitchStateUnknown("no answer came")
    read = pinot.read

    def blind() -> RealtimeState:
        state = read()
        nothing = replace(state, segments=(), unread={"segments": "no answer"})
        return nothing if pinot.polls == 1 else state

    pinot.read = blind  # type: ignore[method-assign]
    assert run(pinot).end is End.DONE
    assert pinot.polls == 3


def test_how_it_may_end_otherwise() -> None:
    still = RebalancingPinot(table(STORED, servers=THREE), "a", "b")
    assert run(still).end is End.NOTHING
    failed = RebalancingPinot(table(STORED, servers=THREE), "b", "c")
    failed.statuses = ["FAILED"]
    assert run(failed).end is End.FAILED
    refused = RebalancingPinot(table(STORED, servers=THREE), "b", "c")
    refused.answer = {"status": "FAILED", "description": "no"}
    assert run(refused) == RebalanceReport(End.FAILED, "no")
    slow = RebalancingPinot(table(STORED, servers=THREE), "b", "c")
    slow.statuses = ["IN_PROGRESS"]
    assert run(slow).end is End.UNFINISHED


def test_a_refused_one_is_not_begun() -> None:
    pinot = RebalancingPinot(table(STORED, servers=THREE), "b", "c")
    with pytest.raises(PreflightRefused, match="downtime"):
        run(pinot, downtime="true")
    assert not pinot.started


def test_a_preview_changes_nothing() -> None:
    pinot = RebalancingPinot(table(STORED, servers=THREE), "b", "c")
    told, judgement = preview_rebalance(pinot, pinot.read, "t_REALTIME", Request.of())
    assert told.status == "DONE"
    assert len(judgement.moves) == 1
    assert not pinot.started
