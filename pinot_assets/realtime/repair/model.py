"""What the repair planner returns (steps, advice, refusals, waits) and what it uses (limits, memory).

Also the manual of each kind of step: precondition, effect, how it is verified, what to do if it fails.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from pinot_assets.core.stored_format import Open, plain, structured
from pinot_assets.core.untrusted import fields_of_json, reading
from pinot_assets.core.waiting import doubled
from pinot_assets.errors import SessionError

SUBJECT: Final = "repair"
"""The subject of the repair's memory in ZooKeeper (`realtime.lease`)."""
WHAT: Final = "what a repair remembers"


class StepKind(StrEnum):
    """What a step does; `manual` describes each kind."""

    UPLOAD = "upload"
    """Puts a completed segment that only servers have into the deep store."""
    FINISH = "finish"
    """Makes a stuck COMMITTING segment DONE, from a replica that has it."""
    RESET = "reset"
    """Loads, or consumes, one replica in ERROR again."""
    REINGEST = "re-ingest"
    """Reads a COMMITTING segment that no server has from the stream again."""
    VALIDATE = "validate"
    """Gives partitions that no server consumes their next segment."""
    UNLIST = "unlist"
    """Removes names from Pinot's list of committing segments."""
    SWEEP = "sweep"
    """Deletes left-overs of uploads from the deep store."""
    RESTART = "restart"
    """Makes Helix remember a server, or a server look at its disk. Only advice: nothing here restarts one."""


class Means(StrEnum):
    """Whom a step asks, and how."""

    CONTROLLER = "controller"
    """`POST /segments/{table}/uploadFromServerToDeepstore` with names (1.5 and newer)."""
    FORCED = "controller, forced"
    """The same with `forceMode`, for segments that Pinot itself would skip."""
    SERVER = "server"
    """The server's own admin endpoint; after an upload we write the segment's node at the version read."""
    CONTROLLER_RESET = "controller's reset of one replica"
    """`POST /segments/{table}/{segment}/reset?targetInstance=`."""
    VALIDATION = "validation"
    """RealtimeSegmentValidationManager, for this table."""
    SEGMENT_VALIDATION = "segment-level validation"
    """The same with `runSegmentLevelValidation` (1.4 and newer)."""
    RESUME = "resume"
    """`resumeConsumption`: the only way before 1.3 to get a lost consuming segment back."""
    STORE = "deep store"
    PERSON = "a person"


VALIDATIONS = frozenset({Means.VALIDATION, Means.SEGMENT_VALIDATION, Means.RESUME})
"""Means by which Pinot repairs the whole table, errors in other segments included."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a repair does.

    :ivar why: what is wrong, in one sentence.
    :ivar segments: segments that it repairs; usually one.
    :ivar server: server of the replica, or the server that is asked.
    :ivar partitions: of a validation.
    :ivar names: listed names, or left-overs.
    :ivar size_bytes: bytes to upload, as far as is known.
    :ivar deadline_s: how long the repair waits for its effect.
    """

    kind: StepKind
    means: Means
    why: str
    segments: tuple[str, ...] = ()
    server: str | None = None
    partitions: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    size_bytes: int = 0
    deadline_s: float = 120.0

    @property
    def key(self) -> str:
        """Return the key for a later plan; a re-ingestion on another server is a retry of the same step."""
        if self.kind is StepKind.RESET:
            return f"{self.kind} {self.segments[0]} on {self.server}"
        if self.kind is StepKind.RESTART:
            return f"{self.kind} {self.server}"
        if self.kind in (StepKind.UPLOAD, StepKind.FINISH, StepKind.REINGEST) and len(self.segments) == 1:
            return f"{self.kind} {self.segments[0]}"
        return str(self.kind)

    def __str__(self) -> str:
        where = f" on {self.server}" if self.server is not None else ""
        what = ", ".join(self.segments or self.names or map(str, self.partitions))
        return f"{self.kind} {what}{where}".replace("  ", " ")


@dataclass(frozen=True, slots=True)
class Unrepairable:
    """A trouble that no step repairs.

    :ivar subject: segment, partition or server.
    :ivar why: the true reason.
    :ivar remedy: what a person can do.
    """

    subject: str
    why: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something that the repair leaves alone for now.

    :ivar until_ms: when to look again; None where something else has to happen first.
    """

    subject: str
    why: str
    until_ms: int | None = None


RepairItem = Step | Unrepairable | Waiting
"""What the rules return for a segment, a partition or a server."""


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """What to do now, in this order; no two of the steps touch the same segment.

    :ivar advice: steps that only a person can do.
    """

    steps: tuple[Step, ...] = ()
    advice: tuple[Step, ...] = ()
    refusals: tuple[Unrepairable, ...] = ()
    waiting: tuple[Waiting, ...] = ()

    @property
    def all_well(self) -> bool:
        """Return whether there is nothing to repair, now or later."""
        return not (self.steps or self.advice or self.refusals or self.waiting)


@dataclass(frozen=True, slots=True)
class RepairLimits:
    """How much a repair does at once, and when it tries again.

    :ivar steps: maximum of steps in one plan.
    :ivar upload_bytes: maximum of bytes uploaded at once; a single segment may be larger.
    :ivar backoff_ms: pause before a step without effect is tried again; doubled each time.
    :ivar longest_backoff_ms: the longest of these pauses.
    :ivar tries: after so many tries without effect the plan also reports it to a person; tries continue.
    """

    steps: int = 8
    upload_bytes: int = 20 * 1024**3
    backoff_ms: int = 600_000
    longest_backoff_ms: int = 6 * 3_600_000
    tries: int = 3


USUAL_LIMITS = RepairLimits()


@dataclass(frozen=True, slots=True)
class Try(Open):
    """A step that was begun and whose effect was not seen yet.

    :ivar at_ms: when it was last begun.
    :ivar until_ms: until when it may be under way.
    :ivar times: how often it was begun.
    :ivar segments: segments that it repairs.
    """

    kind: StepKind
    means: Means
    at_ms: int
    until_ms: int
    times: int
    segments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Memory:
    """Tries by the key of their step. Kept in ZooKeeper, so that a restarted repair knows them."""

    tried: Mapping[str, Try] = field(default_factory=dict)

    def to_text(self) -> str:
        """Return it as JSON; empty where nothing was tried."""
        return json.dumps(plain(self.tried)) if self.tried else ""

    @classmethod
    def from_text(cls, text: str) -> Memory:
        """Return the memory that `to_text` wrote.

        :raises ValueError: the text is something else.
        """
        try:
            fields = fields_of_json(text) if text else {}
            return cls({key: structured(Try, values, WHAT) for key, values in fields.items()})
        except ValueError as error:
            raise ValueError(f"not {WHAT}: {error}") from error

    def begun(self, step: Step, now_ms: int) -> Memory:
        """Return the memory after that step was begun."""
        until_ms = now_ms + int(step.deadline_s * 1000)
        attempt = Try(step.kind, step.means, now_ms, until_ms, self.times(step) + 1, step.segments)
        return replace(self, tried={**self.tried, step.key: attempt})

    def stopped(self, step: Step, now_ms: int) -> Memory:
        """Return the memory after Pinot refused that step, so it is not under way."""
        return replace(self, tried={**self.tried, step.key: replace(self.tried[step.key], until_ms=now_ms)})

    def ended(self, step: Step) -> Memory:
        """Return the memory after that step's effect was seen."""
        return replace(self, tried={key: tried for key, tried in self.tried.items() if key != step.key})

    def since(self, oldest_ms: int) -> Memory:
        """Return it without tries older than that: what they were for is repaired, or gone."""
        return Memory({key: tried for key, tried in self.tried.items() if tried.at_ms >= oldest_ms})

    def times(self, step: Step) -> int:
        """Return how often the step was begun without effect."""
        return self.tried[step.key].times if step.key in self.tried else 0

    def again_at_ms(self, step: Step, limits: RepairLimits) -> int | None:
        """Return when a step without effect may be tried again; None for one that was not tried."""
        if (tried := self.tried.get(step.key)) is None:
            return None
        pause = doubled(limits.backoff_ms, tried.times, limits.longest_backoff_ms)
        return max(tried.at_ms + pause, tried.until_ms)


NOTHING_TRIED = Memory()


def recalled_repair(text: str, table: str, now_ms: int, limits: RepairLimits) -> Memory:
    """Return the memory of that text without old tries: what they were for is repaired, or gone.

    :param table: whose memory it is.
    :raises SessionError: the text cannot be read.
    """
    with reading(f"what the repair of {table} remembers", SessionError):
        return Memory.from_text(text).since(now_ms - 2 * limits.longest_backoff_ms)


@dataclass(frozen=True, slots=True)
class Manual:
    """What a step promises: when it may be done, its effect, how that is verified, and what to do otherwise.

    :ivar verified_by: what is read back, since Pinot's answer to the call proves nothing.
    """

    precondition: str
    effect: str
    verified_by: str
    if_it_fails: str


_STORED: Final = "the segment's node has status DONE and names a download URL"

_MANUALS: Final = {
    StepKind.UPLOAD: Manual(
        "a live server has loaded it, its commit has ended (of a pauseless table: its node is "
        "older than 300 s), retention keeps it for another hour",
        "that server makes a tar of it and copies it into the deep store; the node gets the "
        "download URL. Queries of that server may be slower meanwhile",
        _STORED,
        "check whether that server can write to the deep store "
        "(pinot.server.instance.segment.store.uri); search the controller's log for `Failed to "
        "upload segment`",
    ),
    StepKind.FINISH: Manual(
        "COMMITTING for more than 300 s, and a live server has loaded it",
        "that server uploads it and answers with its metadata; the node becomes DONE",
        _STORED,
        "check whether the deep store can be written to; search the server's log for "
        "`uploadCommittedSegment`",
    ),
    StepKind.RESET: Manual(
        "this replica is in ERROR, its server is up, no message about it waits, and what it "
        "loads from exists",
        "only this replica changes to OFFLINE and back: it is loaded again, or consumed from its "
        "start offset. Other replicas are not touched",
        "the replica's state in the external view is the one in the ideal state",
        "the server's log shows why it cannot load it; a missing disk or a schema that does not "
        "fit are usual",
    ),
    StepKind.REINGEST: Manual(
        "COMMITTING for more than 300 s, no live server has it or is building it, the stream "
        "still has all its offsets, and the table allows rows to be consumed again",
        "one server consumes the range from the stream again, builds the segment and stores it; "
        "the node becomes DONE, and the replicas are reset",
        _STORED,
        "search that server's log for `re-ingestion`; GET /reingestSegment/jobs there lists what "
        "it still consumes",
    ),
    StepKind.VALIDATE: Manual(
        "the table is not paused; the last segment is older than 300 s where a commit might "
        "still be in progress; no segment that only servers have would be reset, too",
        "Pinot makes the next segment of each partition that no server consumes",
        "every one of these partitions has a segment that is IN_PROGRESS and CONSUMING in the ideal state",
        "search the controller's log for RealtimeSegmentValidationManager, and check whether it "
        "can connect to the stream",
    ),
    StepKind.UNLIST: Manual(
        "these names are not COMMITTING, and have not been for 300 s",
        "the list is written again from the segments' real statuses",
        "the list no longer has them",
        "the list only serves `pauselessDebugInfo`: nothing depends on it",
    ),
    StepKind.SWEEP: Manual(
        "each is older than an hour, its segment is stored at another place, and no node names "
        "it as download URL",
        "the files are deleted from the deep store",
        "a listing no longer has them",
        "delete them by hand; they only use space",
    ),
    StepKind.RESTART: Manual(
        "all other servers of the table serve, and this server has the only copy of nothing",
        "when it starts, it looks at its disk first, and Helix sends it everything that it should have",
        "the states of its replicas in the external view are those in the ideal state",
        "read its log; a start may take until every segment is loaded. Another server may have "
        "on its disk what this one lacks: the next plan names that server",
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
    """Return the manual of that kind of step."""
    return _MANUALS[step.kind]


def pinot_call(step: Step) -> str:
    """Return the call that the step makes, as one would search for it in a log."""
    if step.means is Means.SERVER:
        return (
            "POST <server>/reingestSegment/{segment}"
            if step.kind is StepKind.REINGEST
            else "POST <server>/segments/{table}/{segment}/upload, then the node, at the version read"
        )
    return _CALLS[step.means]
