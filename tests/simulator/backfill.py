"""A missing deep-store copy is uploaded by a server that has the segment, when the controller asks it.

Source: `PinotLLCRealtimeSegmentManager.uploadToDeepStoreIfMissing` of release-1.5.1;
docs/design/realtime.md#s6-backfill.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from pinot_assets.realtime.model.settings import COMPLETION_WINDOW_MS
from pinot_assets.realtime.model.state import SegmentStatus
from simulator.building import to_store
from simulator.faults import Point
from simulator.helix import ONLINE
from simulator.store import StoreFailed
from simulator.zookeeper import Refused, Steps

if TYPE_CHECKING:
    from simulator.controller import Controller


def lacks_copy(controller: Controller, name: str) -> bool:
    """Whether Pinot uploads it unless it is forced to (`shouldSkipSegmentForDeepStoreUpload`)."""
    world = controller.world
    node, pauseless = world.zookeeper.nodes.get(name), world.table.settings.pauseless
    if node is None or (pauseless and world.zookeeper.age_ms(name) <= COMPLETION_WINDOW_MS):
        return False
    return (node.status is SegmentStatus.DONE and node.url == "") or (
        pauseless and node.status is SegmentStatus.COMMITTING
    )


def upload_missing(controller: Controller, names: Iterable[str]) -> None:
    """Queue uploads; one runs at a time, and a segment that is queued is not queued again."""
    for name in names:
        if name not in controller.uploading:
            controller.uploading.add(name)
            controller.spawn(_upload(controller, name))


def _upload(controller: Controller, name: str) -> Steps[None]:
    with controller.upload_slot.request() as turn:
        yield turn
        try:
            yield from _upload_one(controller, name)
        except (Refused, StoreFailed) as error:
            controller.world.trace(controller.name, f"upload of {name}: {error}")
        finally:
            controller.uploading.discard(name)


def _upload_one(controller: Controller, name: str) -> Steps[None]:
    world = controller.world
    node = world.zookeeper.nodes[name]
    online = sorted(s for s, state in world.helix.external.get(name, {}).items() if state == ONLINE)
    if not online:
        raise Refused("no replica is ONLINE")
    server = world.servers[world.chance.choice(online)]
    yield controller.env.timeout(world.table.hardware.network_ms)
    tar = server.loaded.get(name) if server.alive else None
    if tar is None:
        raise Refused(f"{server.name} does not have it")
    location = yield from to_store(server, tar, world.table.cluster.upload_timeout_ms)
    if location is None:
        raise Refused("the deep store did not take it")
    url = yield from world.store.move(location, name)
    world.faults.reached(Point.AFTER_MOVE, controller)
    if node.status is SegmentStatus.COMMITTING:
        # All simple fields are the server's, the status with them; the list of committing segments stays.
        node = replace(
            node,
            status=SegmentStatus.DONE,
            crc=tar.crc,
            size_bytes=tar.size_bytes,
            docs=tar.docs,
            end=tar.end,
        )
    # Whatever the node is by now: Pinot does not check its version here.
    yield from world.zookeeper.write(replace(node, url=url, crc=tar.crc), None)
