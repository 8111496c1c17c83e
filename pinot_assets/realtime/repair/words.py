"""What is to be said of each kind of step: when it may be done, what it does, how one sees that it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pinot_assets.realtime.repair.model import Means, Step, StepKind


@dataclass(frozen=True, slots=True)
class Manual:
    """The four things that a step promises.

    :ivar verified_by: what is read back; Pinot's answer to the call proves nothing.
    """

    precondition: str
    effect: str
    verified_by: str
    if_it_fails: str


_STORED: Final = "the segment's node says DONE and names a download URL"

_MANUALS: Final = {
    StepKind.UPLOAD: Manual(
        "a live server has it loaded, its commit is over (of a pauseless table: its node is older than 300 "
        "s), retention keeps it for another hour",
        "that server tars it and copies it into the deep store; the node gets the download URL. Queries of "
        "that server may be slower meanwhile",
        _STORED,
        "see whether the deep store takes writes from that server (pinot.server.instance.segment.store.uri), "
        "and the controller's log for `Failed to upload segment`",
    ),
    StepKind.FINISH: Manual(
        "COMMITTING for more than 300 s, and a live server has it loaded",
        "that server uploads it and answers with its metadata; the node becomes DONE",
        _STORED,
        "see whether the deep store takes writes, and the server's log for `uploadCommittedSegment`",
    ),
    StepKind.RESET: Manual(
        "this replica is in ERROR, its server is up, no message about it waits, what it loads from is there",
        "this replica alone goes to OFFLINE and back: loaded anew, or consumed from its start offset. Others "
        "are not touched",
        "the external view has the replica in the state that the ideal state wants",
        "the server's log says why it cannot load it; a missing disk or a schema that does not fit are usual",
    ),
    StepKind.REINGEST: Manual(
        "COMMITTING for more than 300 s, no live server has it or is building it, the stream still holds all "
        "its offsets, the table allows rows to be read again",
        "one server reads the range from the stream again, builds the segment and stores it; the node "
        "becomes DONE, and the replicas are reset",
        _STORED,
        "see that server's log for `re-ingestion`; GET /reingestSegment/jobs there lists what it still reads",
    ),
    StepKind.VALIDATE: Manual(
        "the table is not paused; the last segment is older than 300 s where a commit might still go on; no "
        "segment that only servers have would be reset along with it",
        "Pinot makes the next segment of each partition that nobody consumes",
        "every one of these partitions has a segment that is IN_PROGRESS and CONSUMING in the ideal state",
        "see the controller's log for RealtimeSegmentValidationManager, and whether it reaches the stream",
    ),
    StepKind.UNLIST: Manual(
        "these names are not COMMITTING, and have not been for 300 s",
        "the list is written anew from the segments' real statuses",
        "the list no longer has them",
        "the list only serves `pauselessDebugInfo`: nothing depends on it",
    ),
    StepKind.SWEEP: Manual(
        "each is older than an hour, its segment is stored elsewhere, and no node names it as download URL",
        "the files are deleted from the deep store",
        "a listing no longer has them",
        "delete them by hand; they only take room",
    ),
    StepKind.RESTART: Manual(
        "all other servers of the table serve, and nothing has its only copy on this one",
        "on its start it looks at its disk first, and Helix sends it everything that it should have",
        "the external view has its replicas in the state that the ideal state wants",
        "look into its log; a start may take until every segment is loaded. What it has not got, another one "
        "may have on its disk: the next plan names that one",
    ),
}

_CALLS: Final = {
    Means.CONTROLLER: "POST /segments/{table}/uploadFromServerToDeepstore?segmentNames=",
    Means.FORCED: "POST /segments/{table}/uploadFromServerToDeepstore?forceMode=true&segmentNames=",
    Means.CONTROLLER_RESET: "POST /segments/{table}/{segment}/reset?targetInstance=",
    Means.VALIDATION: "periodictask/run, RealtimeSegmentValidationManager",
    Means.SEGMENT_VALIDATION: "POST /periodictask/run with runSegmentLevelValidation=true",
    Means.RESUME: "POST /tables/{table}/resumeConsumption",
    Means.STORE: "a delete in the deep store",
    Means.PERSON: "a restart by hand",
}


def manual(step: Step) -> Manual:
    """What is to be said of that step."""
    return _MANUALS[step.kind]


def call(step: Step) -> str:
    """The call it comes to, as one would look for it in a log."""
    if step.means is Means.SERVER:
        return (
            "POST <server>/reingestSegment/{segment}"
            if step.kind is StepKind.REINGEST
            else "POST <server>/segments/{table}/{segment}/upload, then the node, at the version read"
        )
    return _CALLS[step.means]
