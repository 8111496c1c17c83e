"""A controller: it answers the protocol's messages for the tables that it leads.

Source: `SegmentCompletionManager` and `LLCSegmentCompletionHandlers` of release-1.5.1;
docs/design/realtime.md#s1 and #s3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import simpy

from pinot_assets.realtime.model.state import SegmentStatus
from pinot_assets.sizing.load import RowLimit
from simulator.commit import (
    Election,
    PauselessElection,
    commit_done,
    commit_start,
    finish_pauseless,
    take_place,
)
from simulator.faults import Actor, Message, Point
from simulator.protocol import DISCARD, FAILED, NOT_LEADER, PROCESSED, CompletionStatus, MessageKind, Reply
from simulator.store import StoreFailed
from simulator.validation import validate_for_ever
from simulator.zookeeper import CONSUMING, OFFLINE, Placement, Refused, Steps

if TYPE_CHECKING:
    from simulator.world import SimulatedWorld


@dataclass
class Seat:
    """An election and its lock: messages about one segment are handled one after the other."""

    election: Election
    lock: simpy.Resource


class Controller(Actor):
    """One controller. All of this is memory: another controller begins with none of it.

    :ivar longest_ms: the longest commit that it has seen.
    :ivar segment_level_at: when it ran the segment-level validation last; its very first run has it.
    """

    def __init__(self, world: SimulatedWorld, name: str) -> None:
        super().__init__(world.env, name)
        self.world = world
        self._begin_anew()

    def _begin_anew(self) -> None:
        table = self.world.table
        self.seats: dict[str, Seat] = {}
        self.longest_ms = 0.0
        self.row_limit = RowLimit(table.flush, self.world.partitions_per_server)
        self.uploading: set[str] = set()
        self.upload_slot = simpy.Resource(self.env)
        self.segment_level_at = float("-inf")
        self.spawn(validate_for_ever(self))

    @property
    def leads(self) -> bool:
        """Whether it leads the table."""
        return self.world.lead is self

    def kill(self) -> None:
        """Die as by kill -9; another one leads when ZooKeeper has noticed."""
        super().kill()
        self.world.elect()

    def start(self) -> None:
        """Start again, with an empty memory."""
        self.alive = True
        self.since = int(self.env.now)
        self._begin_anew()
        self.world.elect()

    # --- messages ----------------------------------------------------------------------------------

    def handle(self, message: Message) -> Steps[Reply]:
        """Answer one message."""
        if message.kind is MessageKind.UPLOAD:
            return (yield from self._take_upload(message))
        if message.kind is MessageKind.CANNOT_BUILD:
            return (yield from self._reduce(message))
        if not self.leads:
            return NOT_LEADER
        node = self.world.zookeeper.nodes.get(message.segment)
        if node is None:
            return FAILED
        seat = self._seat(message, node.end if node.status.completed else None)
        with seat.lock.request() as turn:
            yield turn
            reply = yield from self._answer(seat.election, message)
        if seat.election.over and self.seats.get(message.segment) is seat:
            del self.seats[message.segment]
        return reply

    def _seat(self, message: Message, committed_at: int | None) -> Seat:
        seat = self.seats.get(message.segment)
        if seat is None:
            settings = self.world.table.settings
            kind = PauselessElection if settings.pauseless else Election
            election = kind(
                settings.replication,
                self.env.now,
                commit_ms=settings.commit_timeout_s * 1000,
                longest_ms=self.longest_ms,
                committed_at=committed_at,
            )
            if message.kind is MessageKind.STOPPED:
                election.first_is_stop()
            seat = self.seats[message.segment] = Seat(election, simpy.Resource(self.env))
        return seat

    def _answer(self, election: Election, message: Message) -> Steps[Reply]:
        server, offset, now = message.server, message.offset, self.env.now
        match message.kind:
            case MessageKind.CONSUMED:
                return election.consumed(server, offset, message.reason, now)
            case MessageKind.EXTEND:
                return election.extend(message.extra_ms, now)
            case MessageKind.STOPPED:
                election.stopped(server)
                return (yield from self._set_offline(message))
            case MessageKind.START:
                return election.start(server, offset, now) or (yield from self._start(election, message))
            case _:
                return election.end(server, offset) or (yield from self._end(election, message))

    def _start(self, election: Election, message: Message) -> Steps[Reply]:
        if self.world.table.settings.pauseless:
            try:
                yield from commit_start(self, message)
            except Refused as error:
                self.world.trace(self.name, f"{message.segment}: {error}")
                return election.abort()
        took = self.env.now - election.began
        if took > election.budget_ms:
            self.longest_ms = max(self.longest_ms, took)
        self.world.faults.reached(Point.AFTER_START, self)
        return election.started()

    def _end(self, election: Election, message: Message) -> Steps[Reply]:
        try:
            url = yield from take_place(self, message)
            self.world.faults.reached(Point.AFTER_MOVE, self)
            if self.world.table.settings.pauseless:
                yield from finish_pauseless(self, message, url)
            else:
                yield from commit_done(self, message, url)
        except (Refused, StoreFailed) as error:
            self.world.trace(self.name, f"{message.segment}: {error}")
            return election.abort()
        return election.finished()

    def _set_offline(self, message: Message) -> Steps[Reply]:
        def change(ideal: Placement) -> None:
            states = ideal.get(message.segment, {})
            if states.get(message.server) == CONSUMING:
                ideal[message.segment] = {**states, message.server: OFFLINE}

        yield from self.world.zookeeper.update_ideal(change)
        self.world.helix.reset_errors(message.segment, [message.server])
        return PROCESSED

    def _take_upload(self, message: Message) -> Steps[Reply]:
        """segmentUpload: the tar goes through this controller into the store; no election is asked."""
        if message.tar is None:
            return FAILED
        self.world.controller_bytes += message.tar.size_bytes
        try:
            location = yield from self.world.store.upload(message.tar)
        except StoreFailed:
            return FAILED
        return Reply(CompletionStatus.UPLOAD_SUCCESS, location=location)

    def _reduce(self, message: Message) -> Steps[Reply]:
        """A server cannot build the segment: half as many rows, and again. Any controller does it."""
        seat = self.seats.get(message.segment)
        if seat is not None and seat.election.built:
            return DISCARD
        node = self.world.zookeeper.nodes.get(message.segment)
        if node is None or node.status is not SegmentStatus.IN_PROGRESS:
            return FAILED
        limit = min(message.rows // 2, node.limit // 2)
        try:
            yield from self.world.zookeeper.write(replace(node, limit=limit), node.version)
        except Refused:
            return FAILED
        self.world.helix.reset(message.segment, self.world.zookeeper.ideal.get(message.segment, {}))
        self.seats.pop(message.segment, None)
        return PROCESSED
