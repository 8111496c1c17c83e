"""One step's calls. What Pinot answers is not believed: `verified` looks for the effect."""

from __future__ import annotations

from typing import Final

from pinot_assets.errors import PinotError
from pinot_assets.pinot.realtime import SEGMENT_LEVEL, RealtimePinot
from pinot_assets.realtime.model.state import RealtimeState, SegmentStatus
from pinot_assets.realtime.read.api import Sweeper
from pinot_assets.realtime.repair.facts import admin_url
from pinot_assets.realtime.repair.model import Means, Step, StepKind

URL: Final = "segment.download.url"
CRC: Final = "segment.crc"
STATUS: Final = "segment.realtime.status"
END_OFFSET: Final = "segment.realtime.endOffset"


def begin(step: Step, state: RealtimeState, pinot: RealtimePinot, sweep: Sweeper | None) -> None:
    """Send what the step comes to. Uploads by a server are waited for, everything else goes on by itself.

    :param sweep: None where the deep store cannot be reached from here.
    :raises PinotError: Pinot refused it; `SwitchStateUnknown`: it may be going on all the same.
    """
    table = state.table
    match step.means:
        case Means.CONTROLLER:
            pinot.upload_to_deep_store(table, step.segments)
        case Means.FORCED:
            pinot.force_upload_to_deep_store(table, step.segments)
        case Means.CONTROLLER_RESET:
            pinot.reset_replica(table, step.segments[0], _server(step))
        case Means.VALIDATION:
            pinot.run_validation(table)
        case Means.SEGMENT_VALIDATION:
            pinot.run_validation_with(table, SEGMENT_LEVEL)
        case Means.RESUME:
            pinot.resume(table)
        case Means.STORE:
            _sweep(step, sweep)
        case Means.SERVER:
            _by_server(step, state, pinot)
        case Means.PERSON:
            raise ValueError(f"{step} is a person's")


def _by_server(step: Step, state: RealtimeState, pinot: RealtimePinot) -> None:
    address = admin_url(state, _server(step))
    if address is None:
        raise PinotError(f"{step} cannot be done", why="the server is no longer up, or has no admin address")
    if step.kind is StepKind.REINGEST:
        pinot.reingest(address, step.segments[0])
    elif step.kind is StepKind.FINISH:
        _finish(step, state.table, pinot, address)
    else:
        _upload(step, state.table, pinot, address)


def _upload(step: Step, table: str, pinot: RealtimePinot, address: str) -> None:
    """The node is written only where it still has no URL: Pinot's own upload may have been quicker.

    With the CRC of what was uploaded: servers whose copy has another CRC than the node load it again at every
    start, and the committer's is not every replica's.
    """
    segment = step.segments[0]
    url = pinot.server_uploads(address, table, segment, step.deadline_s)
    if not url:
        raise PinotError(f"{step.server} uploaded {segment} and did not say where to")
    crc = pinot.server_crc(address, table, segment)
    node = pinot.segment_node(table, segment)
    if not node.simple.get(URL):
        pinot.write_segment(table, node.with_fields(**{URL: url, CRC: crc}))


def _finish(step: Step, table: str, pinot: RealtimePinot, address: str) -> None:
    """All fields are the server's, which built the segment; but only for the same rows."""
    segment = step.segments[0]
    fields = pinot.server_uploads_committed(address, table, segment, step.deadline_s)
    node = pinot.segment_node(table, segment)
    if node.simple.get(STATUS) != SegmentStatus.COMMITTING:
        return
    if fields.get(STATUS) != SegmentStatus.DONE or not fields.get(URL):
        raise PinotError(f"{step.server} did not finish {segment}", why=f"it says {fields.get(STATUS)}")
    if fields.get(END_OFFSET) != node.simple.get(END_OFFSET):
        raise PinotError(
            f"{step.server} has other rows of {segment} than were committed",
            why=f"its end offset is {fields.get(END_OFFSET)}, the node says {node.simple.get(END_OFFSET)}",
        )
    pinot.write_segment(table, node.with_fields(**fields))


def _sweep(step: Step, sweep: Sweeper | None) -> None:
    if sweep is None:
        raise PinotError(
            f"{step} cannot be done",
            why="the deep store is not reached from here",
            hint="delete them by hand",
        )
    for name in step.names:
        sweep(name)


def _server(step: Step) -> str:
    assert step.server is not None
    return step.server
