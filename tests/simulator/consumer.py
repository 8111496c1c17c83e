"""A consuming segment on one server: it reads, asks the controller, builds, commits or keeps.

Source: `RealtimeSegmentDataManager` with `SplitSegmentCommitter` and `PauselessSegmentCommitter` of
release-1.5.1; docs/design/realtime.md#s3 to #s6.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pinot_assets.sizing.load import HOLD_MS, LEASE_EXTENSION_S, LEASE_PERIOD_MS
from simulator.faults import Message, Point
from simulator.protocol import (
    CATCH_UP_MS,
    LEASE_RETRY_MS,
    LEASE_TRIES,
    STOPPED_RETRY_MS,
    CompletionStatus,
    MessageKind,
    Reason,
    Reply,
)
from simulator.store import download, or_none
from simulator.stream import NEVER, Built, Reader, count
from simulator.zookeeper import Node, Steps

if TYPE_CHECKING:
    from simulator.server import Server


PEER: Final = "peer:///"
"""Scheme of a location that says: only servers have it."""


class BuildFailed(Exception):
    """The rows could not be made into a segment."""


def build_for_commit(consumer: Consumer, build_ms: int) -> Steps[None]:
    """Build, asking for more time meanwhile; a tar that was built before is taken again.

    :param build_ms: how long the controller gives it at first.
    """
    if consumer.built is not None and consumer.built.end == consumer.reader.offset:
        return
    lease = consumer.server.spawn(_extend(consumer, build_ms))
    try:
        consumer.world.faults.reached(Point.DURING_BUILD, consumer.server)
        consumer.built = yield from consumer.build()
    finally:
        if lease.is_alive:
            lease.interrupt()


def _extend(consumer: Consumer, build_ms: int) -> Steps[None]:
    yield consumer.env.timeout(build_ms * 9 // 10)
    while True:
        for _ in range(LEASE_TRIES):
            message = replace(consumer.message(MessageKind.EXTEND), extra_ms=LEASE_EXTENSION_S * 1000)
            reply = yield from consumer.world.network.ask(message)
            if reply.answer is CompletionStatus.PROCESSED:
                break
            yield consumer.env.timeout(LEASE_RETRY_MS)
        yield consumer.env.timeout(LEASE_PERIOD_MS)


def upload(consumer: Consumer, tar: Built) -> Steps[str | None]:
    """Bring a tar to the deep store: by the server itself, or through the controller.

    :returns: where it lies; `peer:///…` where the store did not take it in time and the table has a peer
        scheme; None where it has none: then the commit fails.
    """
    table, server = consumer.world.table, consumer.server
    if table.server_uploads:
        location = yield from to_store(server, tar, table.cluster.upload_timeout_ms)
        return location or (f"{PEER}{tar.name}" if table.settings.bypasses else None)
    reply = yield from consumer.world.network.ask(
        replace(consumer.message(MessageKind.UPLOAD), tar=tar, timeout_ms=table.cluster.upload_timeout_ms)
    )
    return reply.location if reply.answer is CompletionStatus.UPLOAD_SUCCESS else None


def to_store(server: Server, tar: Built, timeout_ms: int) -> Steps[str | None]:
    """Upload by the server itself. What is too late is not called back, and may appear as an orphan.

    :returns: its temporary location, None where the store refused or took too long.
    """
    uploading = server.spawn(or_none(server.world.store.upload(tar)))
    yield uploading | server.env.timeout(timeout_ms)
    return uploading.value if uploading.processed else None


EMPTY_EXTENSION_MS: Final = 3_600_000
SHORTEST_MS: Final = 600_000


class State(StrEnum):
    """States of the consumer; from RETAINED on it never asks again."""

    INITIAL = "INITIAL_CONSUMING"
    CATCHING_UP = "CATCHING_UP"
    HOLDING = "HOLDING"
    ONLINE_SOON = "CONSUMING_TO_ONLINE"
    COMMITTING = "COMMITTING"
    RETAINING = "RETAINING"
    RETAINED = "RETAINED"
    DISCARDED = "DISCARDED"
    COMMITTED = "COMMITTED"
    ERROR = "ERROR"


FINAL: Final = (State.RETAINED, State.DISCARDED, State.COMMITTED, State.ERROR)


class ConsumerFailed(Exception):
    """An exception in the consumer's thread: it stops, and says so."""


class Consumer:
    """One server's work on one segment.

    :param node: the segment's metadata when the consumer was made.
    """

    def __init__(self, server: Server, node: Node) -> None:
        self.server, self.world, self.env = server, server.world, server.env
        self.name, self.node = str(node.name), node
        table = self.world.table
        self.reader = Reader(
            self.env,
            self.world.streams[node.name.partition],
            table.hardware.read_rows_per_s,
            node.start,
            late_ms=table.stream.late_ms.get(server.name, 0),
        )
        self.state = State.INITIAL
        self.reason: Reason | None = None
        self.forced = self.env.event()
        self.failing = self.env.event()
        self.lock = server.lock(self.name)
        self.built: Built | None = None
        self._target = 0
        longest = table.flush.time_ms
        self._ends = max(node.name.created_ms + longest, self.env.now + min(longest, SHORTEST_MS))
        self._turn = server.turns(node.name.partition).request()
        self.process = server.spawn(self._work())

    def message(self, kind: MessageKind) -> Message:
        """A message about this segment."""
        return Message(kind, self.name, self.server.name, self.reader.position(), self.reason, self.indexed())

    # --- the consumer's thread ---------------------------------------------------------------------

    def _work(self) -> Steps[None]:
        try:
            yield self._turn
            while self.state not in FINAL:
                if self.state in (State.INITIAL, State.CATCHING_UP):
                    yield from self._read()
                self.state = State.HOLDING
                reply = yield from self.world.network.ask(self.message(MessageKind.CONSUMED))
                yield from self._obey(reply)
        except ConsumerFailed:
            self.state = State.ERROR
            yield from self._say_stopped()

    def _obey(self, reply: Reply) -> Steps[None]:
        match reply.answer:
            case CompletionStatus.CATCH_UP if reply.offset is not None and reply.offset > self.reader.offset:
                self.state, self._target = State.CATCHING_UP, reply.offset
            case CompletionStatus.DISCARD:
                self.state = State.DISCARDED
            case CompletionStatus.KEEP:
                yield from self._keep()
            case CompletionStatus.COMMIT:
                yield from self._commit(reply)
                yield self.env.timeout(self.world.race_ms)
            case _:
                yield self.env.timeout(HOLD_MS)

    def _read(self) -> Steps[None]:
        """Read up to the end criterion."""
        if self.state is State.CATCHING_UP:
            self.reason = None
            yield from self.reader.until(self._target, NEVER, self.failing)
            if self.failing.processed or self.reader.offset != self._target:
                raise ConsumerFailed("the stream failed, or has forgotten the offset to catch up to")
            return
        while True:
            wake = self.forced | self.failing
            target = self.reader.offset + self.node.limit - self.indexed()
            yield from self.reader.until(target, self._ends, wake)
            if self.failing.processed:
                raise ConsumerFailed("the stream failed")
            if self.indexed() >= self.node.limit:
                self.reason = Reason.ROW_LIMIT
            elif self.forced.processed:
                self.reason = Reason.FORCE_COMMIT
            elif self.env.now >= self._ends and self.indexed():
                self.reason = Reason.TIME_LIMIT
            else:
                self._ends += EMPTY_EXTENSION_MS if self.env.now >= self._ends else 0
                continue
            return

    def indexed(self) -> int:
        """Rows that it has taken in."""
        return count(self.reader.rows)

    def _say_stopped(self) -> Steps[None]:
        while True:
            reply = yield from self.world.network.ask(self.message(MessageKind.STOPPED))
            if reply.answer is CompletionStatus.PROCESSED:
                return
            yield self.env.timeout(STOPPED_RETRY_MS)

    # --- commit and keep ---------------------------------------------------------------------------

    def _keep(self) -> Steps[None]:
        if self._must_download(self.world.zookeeper.nodes[self.name]):
            self.state = State.DISCARDED
            return
        self.state = State.RETAINING
        with self.lock.request() as turn:
            yield turn
            try:
                self._replace((yield from self.build()))
                self.state = State.RETAINED
            except BuildFailed:
                self.state = State.ERROR

    def _commit(self, reply: Reply) -> Steps[None]:
        self.state = State.COMMITTING
        with self.lock.request() as turn:
            yield turn
            if self.world.table.settings.pauseless and not (yield from self._start()):
                # Where two threads race (apache/pinot#17885), Helix's finds the consumer COMMITTING still.
                if not self.world.race_ms:
                    self.state = State.HOLDING
                yield self.env.timeout(HOLD_MS)
                return
            try:
                yield from build_for_commit(self, reply.build_ms or 0)
            except BuildFailed:
                self.state = State.ERROR
                if self.world.table.precheck_retry:
                    yield from self.world.network.ask(self.message(MessageKind.CANNOT_BUILD))
                return
            if (yield from self._publish()):
                self.state = State.COMMITTED
                return
        self.state = State.HOLDING
        yield self.env.timeout(HOLD_MS)

    def _start(self) -> Steps[bool]:
        self.world.faults.reached(Point.BEFORE_START, self.server)
        reply = yield from self.world.network.ask(self.message(MessageKind.START))
        return reply.answer is CompletionStatus.COMMIT_CONTINUE

    def _publish(self) -> Steps[bool]:
        """Upload and end the commit; a commit that is not pauseless also begins here."""
        tar = self.built
        if tar is None:
            raise AssertionError("nothing is published before it is built")
        if not self.world.table.settings.pauseless and not (yield from self._start()):
            return False
        self.world.faults.reached(Point.DURING_UPLOAD, self.server)
        location = yield from upload(self, tar)
        if location is None:
            return False
        self.world.faults.reached(Point.BEFORE_END, self.server)
        reply = yield from self.world.network.ask(
            replace(
                self.message(MessageKind.END),
                tar=tar,
                location=location,
                timeout_ms=self.world.table.cluster.upload_timeout_ms,
            )
        )
        if reply.answer is not CompletionStatus.COMMIT_SUCCESS:
            return False
        self._replace(tar)
        self.world.faults.reached(Point.AFTER_END, self.server)
        return True

    def build(self) -> Steps[Built]:
        """Build the segment, which then lies on the server's disk; the partition's next one may be consumed
        meanwhile, where that is allowed.

        :raises BuildFailed: when there are more rows than can be built.
        """
        if self.world.releases_at_build:
            self.release()
        table, reader = self.world.table, self.reader
        with self.server.build_slots.request() as slot:
            yield slot
            built = Built(
                self.name, self.node.start, reader.offset, reader.rows, table.hardware.bytes_per_row
            )
            yield self.env.timeout(50 + built.docs * 1000 // table.hardware.build_rows_per_s)
            if table.buildable_rows is not None and built.docs > table.buildable_rows:
                raise BuildFailed(f"{built.docs} rows are too many")
            self.server.disk[self.name] = built
            return built

    def _replace(self, built: Built) -> None:
        """The built segment takes the place of the consuming one."""
        self.release()
        self.server.load(built)

    def release(self) -> None:
        """Let the partition's next segment be consumed."""
        turns = self.server.turns(self.node.name.partition)
        if self._turn.triggered and self._turn in turns.users:
            turns.release(self._turn)
        elif self._turn in turns.put_queue:
            self._turn.cancel()

    # --- Helix's thread ----------------------------------------------------------------------------

    def stop(self) -> Steps[None]:
        """End the consumer's thread and wait for its end."""
        if self.process.is_alive:
            self.process.interrupt()
            yield self.process

    def go_online(self) -> Steps[None]:
        """CONSUMING → ONLINE, under the segment's lock.

        :raises DownloadFailed: then the replica goes to ERROR.
        """
        node = self.world.zookeeper.nodes[self.name]
        if node.end is None:
            raise AssertionError("a segment that goes ONLINE has an end")
        self.built = None
        yield from self.stop()
        match self.state:
            case State.COMMITTED | State.RETAINED:
                return
            case State.INITIAL | State.CATCHING_UP | State.HOLDING if not self._must_download(node):
                if (yield from self._finish_alone(node.end)):
                    return
        if self.world.releases_at_download:
            self.release()
        self._replace((yield from download(self.server, self.name)))

    def _must_download(self, node: Node) -> bool:
        settings = self.world.table.settings
        return settings.completion_mode == "DOWNLOAD" and (bool(node.url) or settings.bypasses)

    def _finish_alone(self, end: int) -> Steps[bool]:
        """Build the segment from its own rows, when it has them all or gets them in 31 s."""
        if self.reader.offset < end and self._turn.triggered:
            self.state = State.ONLINE_SOON
            yield from self.reader.until(end, self.env.now + CATCH_UP_MS)
        if self.reader.offset != end:
            return False
        try:
            self._replace((yield from self.build()))
        except BuildFailed:
            return False
        self.state = State.RETAINED
        return True
