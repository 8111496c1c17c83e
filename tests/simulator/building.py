"""What a committer does with its rows: build a segment, bring it to the deep store or past it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import simpy

from pinot_assets.sizing.load import LEASE_EXTENSION_S, LEASE_PERIOD_MS
from simulator.actor import STOP
from simulator.faults import Point
from simulator.protocol import LEASE_RETRY_MS, LEASE_TRIES, CompletionStatus, MessageKind
from simulator.rows import Built
from simulator.store import StoreFailed
from simulator.zookeeper import Steps

if TYPE_CHECKING:
    from simulator.consumer import Consumer
    from simulator.server import Server

PEER: Final = "peer:///"
"""Scheme of a location that says: only servers have it."""


class BuildFailed(Exception):
    """The rows could not be made into a segment."""


def build(consumer: Consumer) -> Steps[Built]:
    """Build the segment from what was read; it then lies on the server's disk.

    :raises BuildFailed: when there are more rows than can be built.
    """
    server, table = consumer.server, consumer.world.table
    with server.build_slots.request() as slot:
        yield slot
        built = Built(
            consumer.name,
            consumer.node.start,
            consumer.reader.offset,
            consumer.reader.rows,
            table.hardware.bytes_per_row,
        )
        yield server.env.timeout(50 + built.docs * 1000 // table.hardware.build_rows_per_s)
        if table.buildable_rows is not None and built.docs > table.buildable_rows:
            raise BuildFailed(f"{built.docs} rows are too many")
        server.disk[consumer.name] = built
        return built


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
            lease.interrupt(STOP)


def _extend(consumer: Consumer, build_ms: int) -> Steps[None]:
    try:
        yield consumer.env.timeout(build_ms * 9 // 10)
        while True:
            for _ in range(LEASE_TRIES):
                message = replace(consumer.message(MessageKind.EXTEND), extra_ms=LEASE_EXTENSION_S * 1000)
                reply = yield from consumer.world.network.ask(message)
                if reply.answer is CompletionStatus.PROCESSED:
                    break
                yield consumer.env.timeout(LEASE_RETRY_MS)
            yield consumer.env.timeout(LEASE_PERIOD_MS)
    except simpy.Interrupt as interrupt:
        if interrupt.cause is not STOP:
            raise


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
    uploading = server.spawn(_try_upload(server, tar))
    yield uploading | server.env.timeout(timeout_ms)
    return uploading.value if uploading.processed else None


def _try_upload(server: Server, tar: Built) -> Steps[str | None]:
    try:
        return (yield from server.world.store.upload(tar))
    except StoreFailed:
        return None
