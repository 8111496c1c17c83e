"""Who commits a segment, and what a commit writes.

The election is the controller's state machine, without clock, network or ZooKeeper. One lives in the lead
controller's memory for each segment that completes. It is clocked by the servers, who ask every three
seconds. What has to be written meanwhile is the caller's: `start` and `end` say "go on" with None, the caller
writes, then reports `started`, `finished` or `abort`. That is the segment's node, the next segment's node,
the ideal state; in this order. A controller that dies between two of them leaves what validation has to mend.

Source: `BlockingSegmentCompletionFSM`, `PauselessSegmentCompletionFSM`, `PinotLLCRealtimeSegmentManager` of
release-1.5.1; docs/design/realtime.md#s3 to #s5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from pinot_assets.realtime.model.settings import COMPLETION_WINDOW_MS
from pinot_assets.realtime.model.state import SegmentStatus
from pinot_assets.sizing.load import NOTIFY_WINNER_MS, Flushed
from simulator.consumer import PEER
from simulator.faults import Message, Point
from simulator.protocol import (
    COMMIT_CONTINUE,
    COMMIT_SUCCESS,
    DISCARD,
    FAILED,
    HOLD,
    KEEP,
    LONGEST_COMMIT_MS,
    PICK_WINNER_MS,
    PROCESSED,
    CompletionStatus,
    Reason,
    Reply,
)
from simulator.zookeeper import CONSUMING, ONLINE, Node, Placement, Refused, SegmentName, Steps

if TYPE_CHECKING:
    from simulator.controller import Controller


class Phase(StrEnum):
    """States of the election; the last two are its end."""

    PARTIAL_CONSUMING = "PARTIAL_CONSUMING"
    HOLDING = "HOLDING"
    DECIDED = "COMMITTER_DECIDED"
    NOTIFIED = "COMMITTER_NOTIFIED"
    UPLOADING = "COMMITTER_UPLOADING"
    COMMITTING = "COMMITTING"
    COMMITTED = "COMMITTED"
    ABORTED = "ABORTED"


class Election:
    """The blocking election: the segment's metadata are written when the commit ends.

    :param replicas: how many servers are expected to report.
    :param now: when the first message came.
    :param commit_ms: the table's commit time, 120 s as a rule.
    :param longest_ms: longest commit of the table that this controller has seen, 0 before the first.
    :param committed_at: end offset where the segment is DONE already. COMMITTING counts as not committed:
        after a fail-over in the middle of a pauseless commit, its messages fail until validation repairs.
    """

    def __init__(
        self,
        replicas: int,
        now: float,
        *,
        commit_ms: int = 120_000,
        longest_ms: float = 0,
        committed_at: int | None = None,
    ) -> None:
        self.replicas = replicas
        self.began = now
        self.budget_ms = min(max(NOTIFY_WINNER_MS + commit_ms, longest_ms), LONGEST_COMMIT_MS)
        self.deadline = now + self.budget_ms
        self.phase = Phase.HOLDING if committed_at is None else Phase.COMMITTED
        self.winner: str | None = None
        self.winning = -1 if committed_at is None else committed_at
        self.reports: dict[str, int] = {}
        self.stopped_servers: set[str] = set()

    @property
    def over(self) -> bool:
        """Whether the controller forgets it after this answer; the next message begins a new one."""
        return self.phase in (Phase.COMMITTED, Phase.ABORTED)

    @property
    def built(self) -> bool:
        """Whether some replica is known to have built the segment (`isImmutableSegmentCreated`)."""
        return self.phase in (Phase.UPLOADING, Phase.COMMITTING, Phase.COMMITTED)

    # --- messages ----------------------------------------------------------------------------------

    def consumed(self, server: str, offset: int, reason: Reason | None, now: float) -> Reply:
        """A server has reached its end criterion, or asks again."""
        self.stopped_servers.discard(server)
        self.reports[server] = offset
        match self.phase:
            case Phase.PARTIAL_CONSUMING | Phase.HOLDING:
                self.phase = Phase.HOLDING
                return self._while_holding(server, offset, reason, now)
            case Phase.DECIDED:
                return self._while_decided(server, offset, now)
            case Phase.NOTIFIED:
                return self._while_notified(server, offset, now)
            case Phase.UPLOADING | Phase.COMMITTING:
                return self._while_uploading(server, offset, now)
            case Phase.COMMITTED:
                return KEEP if offset == self.winning else DISCARD
            case Phase.ABORTED:
                return HOLD

    def start(self, server: str, offset: int, now: float) -> Reply | None:
        """segmentCommitStart: None when the commit may begin; then comes `started`, or `abort`."""
        if server in self.stopped_servers:
            return FAILED
        if self.phase is Phase.COMMITTED:
            return KEEP if offset == self.winning else DISCARD
        if self.phase is Phase.ABORTED:
            return HOLD
        if now > self.deadline:
            return self._abort_and_hold()
        if self.phase is not Phase.NOTIFIED:
            return HOLD
        return self._abort_and_hold() if server == self.winner and offset != self.winning else None

    def started(self) -> Reply:
        """The commit has begun."""
        self.phase = Phase.UPLOADING
        return COMMIT_CONTINUE

    def end(self, server: str, offset: int) -> Reply | None:
        """segmentCommitEndWithMetadata: None when the metadata may be written; then `finished` or `abort`."""
        welcome = self.phase is Phase.UPLOADING and server == self.winner and offset == self.winning
        if server in self.stopped_servers or not welcome:
            return self.abort()
        self.phase = Phase.COMMITTING
        return None

    def finished(self) -> Reply:
        """The segment is DONE."""
        self.phase = Phase.COMMITTED
        return COMMIT_SUCCESS

    def abort(self) -> Reply:
        """Give up; the servers start over."""
        self.phase = Phase.ABORTED
        return FAILED

    def stopped(self, server: str) -> None:
        """segmentStoppedConsuming: this server is not waited for."""
        self.stopped_servers.add(server)

    def first_is_stop(self) -> None:
        """The first message of all was segmentStoppedConsuming."""
        if self.phase is Phase.HOLDING:
            self.phase = Phase.PARTIAL_CONSUMING

    def extend(self, extra_ms: int, now: float) -> Reply:
        """extendBuildTime: more time for the build; FAILED where no build is expected."""
        if self.phase is not self._builds_in:
            return FAILED
        if now > self.deadline:
            return self._abort_and_hold()
        if now + extra_ms > self.began + LONGEST_COMMIT_MS:
            return self.abort()
        self.deadline = now + extra_ms
        return PROCESSED

    # --- one method for each phase -----------------------------------------------------------------

    _builds_in = Phase.NOTIFIED

    def _while_holding(self, server: str, offset: int, reason: Reason | None, now: float) -> Reply:
        first_is_enough = reason in (Reason.ROW_LIMIT, Reason.END_OF_PARTITION) and len(self.reports) == 1
        everybody = len(self.reports) == self.replicas - len(self.stopped_servers)
        if not (first_is_enough or everybody or now > self.began + PICK_WINNER_MS):
            return HOLD
        self.winning = max(self.reports.values())
        furthest = (name for name, reported in self.reports.items() if reported == self.winning)
        self.winner = server if offset == self.winning else next(furthest)
        if self.winner == server:
            return self._commit()
        self.phase = Phase.DECIDED
        # Even when it is there already: the server then calls the answer invalid, and holds.
        return self._catch_up()

    def _while_decided(self, server: str, offset: int, now: float) -> Reply:
        if offset > self.winning or (server == self.winner and offset != self.winning):
            return self._abort_and_hold()
        reply = self._commit() if server == self.winner else self._loser(offset)
        return self._abort_and_hold() if now > self.began + NOTIFY_WINNER_MS else reply

    def _while_notified(self, server: str, offset: int, now: float) -> Reply:
        if now > self.deadline:
            return self._abort_and_hold()
        if server != self.winner:
            return self._loser(offset)
        if offset == self.winning:
            # It never heard that it has won.
            return self._commit()
        self.phase = Phase.ABORTED
        return DISCARD

    def _while_uploading(self, server: str, offset: int, now: float) -> Reply:
        if now > self.deadline or server == self.winner:
            # The winner ought to be committing.
            return self._abort_and_hold()
        return self._loser_while_uploading(offset)

    def _loser(self, offset: int) -> Reply:
        return self._catch_up() if offset < self.winning else HOLD

    def _loser_while_uploading(self, offset: int) -> Reply:
        return self._loser(offset)

    def _commit(self) -> Reply:
        self.phase = Phase.NOTIFIED
        return Reply(CompletionStatus.COMMIT, self.winning, int(self.deadline - self.began) // 1000 * 1000)

    def _catch_up(self) -> Reply:
        return Reply(CompletionStatus.CATCH_UP, self.winning)

    def _abort_and_hold(self) -> Reply:
        self.phase = Phase.ABORTED
        return HOLD


class PauselessElection(Election):
    """The pauseless election: the end offset is written at commitStart, so replicas may build at once."""

    _builds_in = Phase.UPLOADING

    def _loser_while_uploading(self, offset: int) -> Reply:
        return KEEP if offset == self.winning else self._loser(offset)


def take_place(controller: Controller, message: Message) -> Steps[str]:
    """Move the uploaded tar to its final place, and remove the segment's other uploads.

    :returns: the download URL: empty where only servers have it.
    :raises StoreFailed: when the store refuses.
    """
    location = message.location
    if location is None:
        raise Refused("a commit's end names a location")
    if location.startswith(PEER):
        return ""
    url = yield from controller.world.store.move(location, message.segment)
    controller.world.store.remove_strays(message.segment)
    return url


def commit_done(controller: Controller, message: Message, url: str) -> Steps[None]:
    """A blocking commit: IN_PROGRESS to DONE, and the next segment begins.

    :raises Refused: wrong status, another writer, or a step that came too late.
    """
    node = _node(controller, message.segment)
    if node.status is not SegmentStatus.IN_PROGRESS:
        raise Refused(f"{message.segment} is {node.status}, not IN_PROGRESS")
    yield from _three_steps(controller, _done(node, message, url), node.version, message)


def commit_start(controller: Controller, message: Message) -> Steps[None]:
    """A pauseless commitStart: IN_PROGRESS to COMMITTING, and the next segment begins.

    :raises Refused: wrong status or another writer.
    """
    yield from controller.world.zookeeper.list_committing(lambda names: names | {message.segment})
    node = _node(controller, message.segment)
    if node.status is not SegmentStatus.IN_PROGRESS:
        raise Refused(f"{message.segment} is {node.status}, not IN_PROGRESS")
    committing = replace(node, status=SegmentStatus.COMMITTING, end=message.offset)
    yield from _three_steps(controller, committing, node.version, message)


def finish_pauseless(controller: Controller, message: Message, url: str) -> Steps[None]:
    """A pauseless commitEnd: COMMITTING to DONE.

    :raises Refused: after 300 s, wrong status, or another writer.
    """
    if controller.world.zookeeper.age_ms(message.segment) > COMPLETION_WINDOW_MS:
        raise Refused("the commit took longer than 300 s")
    node = _node(controller, message.segment)
    if node.status is not SegmentStatus.COMMITTING:
        raise Refused(f"{message.segment} is {node.status}, not COMMITTING")
    done = _done(node, message, url)
    yield from controller.world.zookeeper.write(done, node.version)
    yield from controller.world.zookeeper.list_committing(lambda names: names - {message.segment})
    controller.row_limit.learn(_flushed(controller, done, message))


def _three_steps(controller: Controller, node: Node, version: int, message: Message) -> Steps[None]:
    zookeeper, faults = controller.world.zookeeper, controller.world.faults
    yield from zookeeper.write(node, version)
    faults.reached(Point.AFTER_STEP_1, controller)
    following: Node | None = None
    if not zookeeper.pause.whole:
        following = next_node(controller, node, message.offset, _flushed(controller, node, message))
        yield from zookeeper.create(following)
    faults.reached(Point.AFTER_STEP_2, controller)
    try:
        yield from zookeeper.update_ideal(_completion(controller, str(node.name), following))
    except Refused:
        if following is not None:
            yield from zookeeper.remove(str(following.name))
        raise
    faults.reached(Point.AFTER_STEP_3, controller)
    if following is not None and str(following.name) not in zookeeper.ideal:
        yield from zookeeper.remove(str(following.name))


def _completion(controller: Controller, name: str, following: Node | None) -> Callable[[Placement], None]:
    def change(ideal: Placement) -> None:
        # The limit of 300 s is checked under the ideal state's lock.
        if controller.world.zookeeper.age_ms(name) > COMPLETION_WINDOW_MS:
            raise Refused("the ideal state would be changed later than 300 s after the segment's node")
        begin_next(controller, ideal, name, None if controller.world.zookeeper.pause.whole else following)

    return change


def begin_next(controller: Controller, ideal: Placement, name: str | None, following: Node | None) -> None:
    """In the ideal state: the committed segment goes ONLINE, the next one CONSUMING.

    :raises Refused: when the committed one is not CONSUMING, or another segment has that number already.
    """
    if name is not None:
        states = ideal.get(name, {})
        if CONSUMING not in states.values():
            raise Refused(f"no replica of {name} is CONSUMING in the ideal state")
        ideal[name] = dict.fromkeys(states, ONLINE)
    if following is not None:
        number = following.name.number
        if any(name.startswith(number) for name in ideal):
            raise Refused(f"{following.name} is a duplicate")
        servers = controller.world.assigned(following.name.partition)
        ideal[str(following.name)] = dict.fromkeys(servers, CONSUMING)


def next_node(controller: Controller, node: Node, start: int, flushed: Flushed | None) -> Node:
    """Metadata of the segment that follows; its row limit takes in what is known of the former."""
    if flushed is not None:
        controller.row_limit.learn(flushed)
    name = replace(node.name, sequence=node.name.sequence + 1, created_ms=int(controller.env.now))
    return Node(name, start, controller.row_limit.next())


def first_node(controller: Controller, partition: int, start: int) -> Node:
    """Metadata of a partition's first segment."""
    name = SegmentName(controller.world.table.name, partition, 0, int(controller.env.now))
    return Node(name, start, controller.row_limit.next())


def _done(node: Node, message: Message, url: str) -> Node:
    tar = message.tar
    if tar is None:
        raise Refused("a commit's end carries the segment's metadata")
    return replace(
        node,
        status=SegmentStatus.DONE,
        end=message.offset,
        url=url,
        crc=tar.crc,
        size_bytes=tar.size_bytes,
        docs=tar.docs,
    )


def _flushed(controller: Controller, node: Node, message: Message) -> Flushed:
    return Flushed(
        node.limit,
        controller.env.now - node.name.created_ms,
        node.docs,
        node.size_bytes,
        forced=message.reason is Reason.FORCE_COMMIT,
    )


def _node(controller: Controller, name: str) -> Node:
    node = controller.world.zookeeper.nodes.get(name)
    if node is None:
        raise Refused(f"{name} has no metadata")
    return node
