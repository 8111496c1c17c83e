"""Rules for consumption (replicas in ERROR, partitions that no server consumes) and for servers.

Some troubles only a person or time ends: a server that is starting, a replica that Helix has forgotten, a
segment on the disk of a server that does not look there. The repair advises to restart one server at a time,
and none that has the only copy of anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pinot_assets.realtime.model.settings import COMPLETION_WINDOW_MS
from pinot_assets.realtime.model.state import Copy, LlcSegment, RealtimeState, Replica, SegmentStatus
from pinot_assets.realtime.repair import facts
from pinot_assets.realtime.repair.model import (
    Means,
    Memory,
    RepairItem,
    Step,
    StepKind,
    Unrepairable,
    Waiting,
)

SAME_MOMENT_MS = 30_000
"""Nodes and ideal state are read one after the other, so an odd state may be a commit in between."""


def in_progress(state: RealtimeState, segment: LlcSegment) -> Iterator[RepairItem]:
    """Yield what a consuming segment with replicas in ERROR needs.

    Pinot resets them only once all replicas are in ERROR. We reset a single one, if the stream still has what
    it has to read again: otherwise it would have fewer rows than the others, without any error.
    """
    broken = facts.in_error(state, segment)
    all_broken = all(r.external == "ERROR" for r in segment.replicas if r.ideal is not None)
    for replica in broken:
        if replica.pending:
            yield Waiting(
                segment.name,
                f"{replica.server} has a message about it, and resets nothing before it has handled that",
            )
        elif not all_broken and (wait := facts.young(state, segment)) is not None:
            yield wait
        elif (gone := facts.lost_from_stream(state, segment, segment.start_offset)) is not None:
            yield Unrepairable(
                segment.name,
                f"its consumer on {replica.server} is in ERROR, and would consume fewer rows when "
                f"started again: {gone}",
                "while another replica consumes, force a commit: the next segment starts on all replicas"
                if not all_broken
                else "find out what the stream still has, then resume with `consumeFrom=smallest`",
            )
        else:
            yield Step(
                StepKind.RESET,
                Means.CONTROLLER_RESET,
                f"its consumer on {replica.server} is in ERROR",
                (segment.name,),
                replica.server,
            )
    some_consume = any(r.ideal == "CONSUMING" for r in segment.replicas)
    for replica in segment.replicas:
        if some_consume and replica.ideal == "OFFLINE" and facts.is_up(state, replica.server):
            yield Unrepairable(
                segment.name,
                f"{replica.server} stopped consuming it (OFFLINE in the ideal state), the other "
                "servers continue",
                "it consumes again from the next segment on; `forceCommit` starts that at once",
            )


@dataclass(frozen=True, slots=True)
class _Idle:
    """A partition whose consumption a validation starts again.

    :ivar changes: the segment whose ideal state changes too; None where Pinot only adds the next one.
    """

    partition: int
    why: str
    means: Means = Means.VALIDATION
    changes: str | None = None


def unconsumed(state: RealtimeState) -> Iterator[RepairItem]:
    """Yield one validation for all partitions that are not consumed (docs/design/realtime.md#v2)."""
    if state.pause.whole:
        return
    idle: list[_Idle] = []
    latest = state.latest()
    for partition, segment in sorted(latest.items()):
        if state.pause.has_stream_of(partition):
            continue
        item = _stopped(state, segment)
        if isinstance(item, _Idle):
            idle.append(item)
            yield from _rows_gone(state, segment)
        elif item is not None:
            yield item
    new = sorted(p for p in set(state.stream) - set(latest) if not state.pause.has_stream_of(p))
    idle += [_Idle(partition, "the stream has it, the table does not") for partition in new]
    if idle:
        # Resuming runs the same validation, and also creates missing consuming segments again.
        yield Step(
            StepKind.VALIDATE,
            Means.RESUME if Means.RESUME in {one.means for one in idle} else Means.VALIDATION,
            "; ".join(f"partition {one.partition}: {one.why}" for one in idle[:5]),
            tuple(one.changes for one in idle if one.changes is not None),
            partitions=tuple(one.partition for one in idle),
        )


def _stopped(state: RealtimeState, segment: LlcSegment) -> _Idle | Unrepairable | Waiting | None:
    """Return why the partition of this latest segment is not consumed; None while it is, or soon will be."""
    ideal = {r.ideal for r in segment.replicas if r.ideal is not None}
    name, partition = segment.name, segment.partition
    expected = SegmentStatus.COMMITTING if state.settings.pauseless else SegmentStatus.DONE
    if not segment.stored:
        return Unrepairable(name, "its node in the property store is gone", "delete the segment, then resume")
    if segment.status is None or (not ideal and segment.status is not SegmentStatus.IN_PROGRESS):
        return None  # `plan` refuses the segment itself
    if not ideal:
        wait = facts.young(state, segment)
        return wait or _Idle(partition, "the next segment is not in the ideal state", changes=name)
    if "CONSUMING" in ideal:
        if segment.status is SegmentStatus.IN_PROGRESS:
            return None
        if segment.status is expected:
            wait = facts.young(state, segment)
            return wait or _Idle(partition, f"{segment.status}, without a next segment", changes=name)
        return facts.young(state, segment) or Unrepairable(
            name,
            f"it is {segment.status} without a next segment; Pinot repairs that only for "
            f"{expected} ones while pauseless is {'on' if state.settings.pauseless else 'off'}",
            "turn pauseless back, repair, then change it with `pinot-assets realtime pauseless`",
        )
    if ideal == {"OFFLINE"}:
        return _settled(state, segment) or _Idle(partition, "all replicas stopped")
    if ideal == {"ONLINE"} and segment.status is not SegmentStatus.IN_PROGRESS:
        wait = _settled(state, segment)
        return wait or _Idle(partition, "no segment after its last one", facts.recreate_means(state))
    return Unrepairable(
        name,
        f"no server consumes its partition: it is {segment.status}, and "
        f"{', '.join(sorted(ideal))} in the ideal state; Pinot only reports that",
        "delete the segment if the stream still has its rows, then resume",
    )


def _settled(state: RealtimeState, segment: LlcSegment) -> Waiting | None:
    """Return a wait if a commit may have passed while the state was read; else Pinot repairs this at once."""
    age = state.age_ms(segment)
    if age is not None and age < SAME_MOMENT_MS:
        return Waiting(
            segment.name, "it was written while the table was being read", state.read_ms + SAME_MOMENT_MS
        )
    return None


def _rows_gone(state: RealtimeState, segment: LlcSegment) -> Iterator[Unrepairable]:
    """Report the rows that are lost already: to continue loses no more, but a person should know how many."""
    if segment.partition not in state.stream:
        return
    again = all(r.ideal == "OFFLINE" for r in segment.replicas)
    offset = segment.start_offset if again or segment.end_offset is None else segment.end_offset
    if (gone := facts.lost_from_stream(state, segment, offset)) is not None:
        yield Unrepairable(
            f"partition {segment.partition}",
            f"consumption continues later than it stopped: {gone}",
            "copy those rows from elsewhere; raise the stream's retention above the worst repair time",
        )


RESTART_S = 900.0


def starting(state: RealtimeState) -> Iterator[Waiting]:
    """Yield live servers that are not ready: they serve no table until each segment is loaded or given up."""
    longest = max(state.cluster.startup_timeout_s, state.settings.download_timeout_s)
    for server in state.servers.values():
        if server.alive and server.ready is False:
            until = None if server.since_ms is None else server.since_ms + longest * 1000
            yield Waiting(
                server.name,
                "it is starting, and serves no table until it has loaded all segments or "
                f"{longest} s have passed",
                until,
            )


def restarts(state: RealtimeState, memory: Memory) -> Iterator[Step | Waiting]:
    """Yield the restart of the one server that would repair most.

    :param memory: tells which resets had no effect.
    """
    candidates = _most(_forgotten(state)), _most(_on_a_disk(state, memory))
    whys = (
        "it should have {} segments that it has not loaded, and no message about them waits",
        "{} segments are in ERROR everywhere and a reset did not help: the server that built "
        "them has them on its disk, and with completionMode DOWNLOAD looks there only when it "
        "starts",
    )
    for one, why in zip(candidates, whys, strict=True):
        if one is None:
            continue
        server, names = one
        step = Step(
            StepKind.RESTART, Means.PERSON, why.format(len(names)), names, server, deadline_s=RESTART_S
        )
        if (hindrance := _hindrance(state, server)) is None:
            yield step
            return
        yield Waiting(server, f"{step.why}; it is not restarted {hindrance}")


def _most(pairs: Iterable[tuple[str, str]]) -> tuple[str, tuple[str, ...]] | None:
    """Return the server with the most segments among pairs of server and segment, and its segments."""
    by_server: dict[str, list[str]] = {}
    for server, name in pairs:
        by_server.setdefault(server, []).append(name)
    if not by_server:
        return None
    server = max(by_server, key=lambda name: (len(by_server[name]), name))
    return server, tuple(by_server[server])


def _hindrance(state: RealtimeState, server: str) -> str | None:
    if away := [other.name for other in state.servers.values() if other.name != server and not other.serves]:
        return f"while {', '.join(away)} does not serve"
    # A restart could lose a copy that no other server has, and what the server builds in memory.
    alone = [
        segment.name
        for segment in state.segments
        if (facts.only_copy(state, segment) and state.live_copies(segment) == (server,))
        or (
            segment.status is SegmentStatus.COMMITTING
            and not state.live_copies(segment)
            and any(r.server == server and r.external == "CONSUMING" for r in segment.replicas)
        )
    ]
    if alone:
        more = f" and {len(alone) - 1} more" if len(alone) > 1 else ""
        return f"before others, or the deep store, have what only it has: {alone[0]}{more}"
    return None


# --- replicas that Helix has forgotten ---------------------------------------------------------------


def _forgotten(state: RealtimeState) -> Iterator[tuple[str, str]]:
    """Yield replicas that are wanted, not loaded and without a message: a reset or rebalance skips them.

    On a real 1.5.1 the restart of one server helped.
    """
    for segment in state.segments:
        if (
            not segment.stored
            or segment.status is SegmentStatus.COMMITTING
            or facts.young(state, segment) is not None
        ):
            continue
        for replica in facts.held(segment):
            unseen = replica.external in (None, "OFFLINE") and not replica.pending
            if unseen and _long_up(state, replica.server):
                yield replica.server, segment.name


def _long_up(state: RealtimeState, server: str) -> bool:
    if not facts.is_up(state, server) or not state.servers[server].serves:
        return False
    since = state.servers[server].since_ms
    return since is None or state.read_ms - since >= COMPLETION_WINDOW_MS


# --- segments that only a disk has -------------------------------------------------------------------


def _on_a_disk(state: RealtimeState, memory: Memory) -> Iterator[tuple[str, str]]:
    """Yield segments that a server committed past the deep store without learning so: the controller died.
    Found by the simulation (docs/simulate.md).

    With completionMode DOWNLOAD and a peer scheme, every replica then loads from the others, which do not
    have it; each reset repeats that. Pinot builds nothing more from the rows in memory
    (`goOnlineFromConsuming`), so a restart loses none. A server that started since has looked at its disk.
    """
    if state.settings.completion_mode != "DOWNLOAD" or not state.settings.bypasses:
        return
    for segment in state.segments:
        broken = facts.in_error(state, segment)
        done = segment.completed and segment.copy is Copy.PEERS_ONLY
        nowhere = broken and broken == facts.held(segment) and not state.live_copies(segment)
        if done and nowhere and all(_reset_in_vain(state, memory, segment, one) for one in broken):
            for replica in broken:
                since_ms, written_ms = state.servers[replica.server].since_ms, segment.modified_ms
                if since_ms is None or written_ms is None or since_ms <= written_ms:
                    yield replica.server, segment.name


def _reset_in_vain(state: RealtimeState, memory: Memory, segment: LlcSegment, replica: Replica) -> bool:
    reset = Step(StepKind.RESET, Means.CONTROLLER_RESET, "", (segment.name,), replica.server)
    tried = memory.tried.get(reset.key)
    return not replica.pending and tried is not None and tried.until_ms <= state.read_ms
