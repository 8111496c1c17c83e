"""Facts of a state that several rules of the planner need, and the means that a release of Pinot has.

The means were read in the sources of 0.11.0 to 1.5.1.
"""

from __future__ import annotations

from typing import Final

from packaging.version import Version

from pinot_assets.core.text import plural
from pinot_assets.core.untrusted import whole_number
from pinot_assets.pinot.versions import release
from pinot_assets.realtime.model.settings import COMPLETION_WINDOW_MS, resets_errors
from pinot_assets.realtime.model.state import Copy, LlcSegment, RealtimeState, Replica, SegmentStatus
from pinot_assets.realtime.repair.model import Means, Waiting

RETENTION_MARGIN_MS = 3_600_000
"""`MIN_TIME_BEFORE_SEGMENT_EXPIRATION_FOR_FIXING_DEEP_STORE_COPY_MILLIS`: Pinot uploads no older segment."""

SET_A_STORE = "set pinot.server.instance.segment.store.uri to the controller's data directory and restart it"
"""The remedy for a server without a segment store."""

_ESSENTIAL = ("segments", "external", "pending", "servers", "pause", "version")


def not_known(state: RealtimeState) -> str | None:
    """Return why nothing may be changed: which essential parts could not be read; None when all were.

    An unread external view would look as if no server had loaded anything.
    """
    return state.why_unread(*_ESSENTIAL) or None


def is_up(state: RealtimeState, server: str) -> bool:
    """Return whether the server is alive and enabled in Helix."""
    found = state.servers.get(server)
    return found is not None and found.alive and found.enabled


def admin_url(state: RealtimeState, server: str) -> str | None:
    """Return the server's admin endpoint; None where the server is not up or the endpoint is not known."""
    return state.servers[server].admin_url if is_up(state, server) else None


def by_readiness(state: RealtimeState, server: str) -> bool:
    """Sort key: servers that report ready come first. A starting one may have segments but not answer."""
    return state.servers[server].ready is not True


def has_store(state: RealtimeState, server: str) -> bool:
    """Return whether the server has a deep store to upload to; true as well where that is not known."""
    return state.cluster.segment_store.get(server, "") is not None


def young(state: RealtimeState, segment: LlcSegment) -> Waiting | None:
    """Return a wait if the segment's commit may still run: within 300 s of the last write of its node."""
    if (age := state.age_ms(segment)) is None:
        return Waiting(
            segment.name, "the age of its node is not known, so its commit may still be in progress"
        )
    if age < COMPLETION_WINDOW_MS:
        return Waiting(
            segment.name,
            f"its node was written {age / 1000:.0f} s ago: Pinot's own commit has 300 s",
            state.read_ms - age + COMPLETION_WINDOW_MS,
        )
    return None


def held(segment: LlcSegment) -> tuple[Replica, ...]:
    """Return the replicas that the ideal state wants loaded or consuming."""
    return tuple(replica for replica in segment.replicas if replica.ideal in ("ONLINE", "CONSUMING"))


def in_error(state: RealtimeState, segment: LlcSegment) -> tuple[Replica, ...]:
    """Return the wanted replicas in ERROR whose server is up."""
    return tuple(r for r in held(segment) if r.external == "ERROR" and is_up(state, r.server))


def on_dead_servers(state: RealtimeState, segment: LlcSegment) -> tuple[str, ...]:
    """Return the servers that should have the segment and are not up."""
    return tuple(sorted(r.server for r in held(segment) if not is_up(state, r.server)))


def without_tar(segment: LlcSegment) -> bool:
    """Return whether only servers have the rows: they are being committed, or bypassed the deep store."""
    return segment.copy is not Copy.DEEP_STORE and segment.status is not SegmentStatus.IN_PROGRESS


def only_copy(state: RealtimeState, segment: LlcSegment) -> bool:
    """Return whether exactly one live server has the rows, and the deep store does not."""
    return without_tar(segment) and len(state.live_copies(segment)) == 1


def lost_from_stream(state: RealtimeState, segment: LlcSegment, offset: str | None) -> str | None:
    """Return why the stream cannot be read from that offset; None when it can.

    Kafka's consumer does not fail there: it continues at the first offset that exists, and the segment lacks
    the rows in between without an error. So an unknown offset or stream is a reason too.
    """
    if (held_by_stream := state.stream.get(segment.partition)) is None:
        why = state.unread.get("stream")
        return "it is not known what the stream still has" + (f" ({why})" if why else "")
    number = None if offset is None else whole_number(offset)
    if number is None:
        return f"its offset ({offset or 'none'}) cannot be compared with those of the stream"
    if held_by_stream.earliest > number:
        return (
            f"the stream now begins at {held_by_stream.earliest}: "
            f"{plural(held_by_stream.earliest - number, 'message')} gone, from {offset} on"
        )
    if held_by_stream.latest < number:
        return (
            f"the stream ends at {held_by_stream.latest}, before {offset}: was the topic deleted and "
            "created again?"
        )
    return None


def expires_soon(state: RealtimeState, segment: LlcSegment) -> bool:
    """Return whether Pinot no longer uploads the segment, since retention deletes it within the hour."""
    retention = state.settings.retention_ms
    return (
        retention is not None
        and segment.end_time_ms is not None
        and state.read_ms - segment.end_time_ms > retention - RETENTION_MARGIN_MS
    )


_RECREATES: Final = Version("1.3")
_PAUSELESS: Final = Version("1.4")
_UPLOADS_ON_REQUEST: Final = Version("1.5")


def upload_means(state: RealtimeState) -> Means:
    """Return the means by which a completed segment gets into the deep store.

    The validation of 1.4 skips it unless the table is pauseless or the controller retries uploads.
    """
    version = release(state.cluster.version)
    if version >= _UPLOADS_ON_REQUEST:
        return Means.CONTROLLER
    retries = state.settings.pauseless or state.cluster.deep_store_upload_retry
    return Means.SEGMENT_VALIDATION if version >= _PAUSELESS and retries else Means.SERVER


def finish_means(state: RealtimeState) -> Means:
    """Return the means by which a COMMITTING segment is finished from a replica.

    Once a table is no longer pauseless, only a forced upload takes its COMMITTING segments; all else skips
    them (`shouldSkipForNonPauselessMode`). A release without forced uploads needs the server's own call.
    """
    version = release(state.cluster.version)
    if version >= _UPLOADS_ON_REQUEST:
        return Means.CONTROLLER if state.settings.pauseless else Means.FORCED
    return Means.SEGMENT_VALIDATION if state.settings.pauseless else Means.SERVER


def recreate_means(state: RealtimeState) -> Means:
    """Return the means that give a partition a consuming segment when all replicas of its last are ONLINE.

    Before 1.3 the validation does this only for `resumeConsumption` (`recreateDeletedConsumingSegment`).
    """
    return Means.VALIDATION if release(state.cluster.version) >= _RECREATES else Means.RESUME


def keeps_committing_list(state: RealtimeState) -> bool:
    """Return whether segment-level validation removes finished names from the list of committing segments."""
    return state.settings.pauseless and release(state.cluster.version) >= _PAUSELESS


def deletes_from_sequence(version: str) -> bool:
    """Return whether that release of Pinot has `deleteSegmentsFromSequenceNum`."""
    return release(version) >= _PAUSELESS


def validation_resets(state: RealtimeState) -> bool:
    """Return whether each validation resets all replicas of a segment with one in ERROR, healthy ones too
    (`repairSegmentsInErrorState`, docs/design/realtime.md#v4)."""
    return resets_errors(state.settings, state.cluster) and release(state.cluster.version) >= _PAUSELESS
