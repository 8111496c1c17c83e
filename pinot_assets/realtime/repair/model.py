"""What the repair planner says (steps, advice, refusals, what waits) and what it goes by (limits, memory)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from pinot_assets.core.deadline import doubled
from pinot_assets.core.stored_format import Open


class StepKind(StrEnum):
    """What a step brings about; `words.manual` has all that is to say of each."""

    UPLOAD = "upload"
    """A completed segment that only servers have gets into the deep store."""
    FINISH = "finish"
    """A stuck COMMITTING segment becomes DONE, from a replica that has it."""
    RESET = "reset"
    """One replica in ERROR is loaded, or consumes, again."""
    REINGEST = "re-ingest"
    """A COMMITTING segment that no server has is read from the stream again."""
    VALIDATE = "validate"
    """Partitions that nobody consumes get their next segment."""
    UNLIST = "unlist"
    """Names leave Pinot's list of committing segments."""
    SWEEP = "sweep"
    """Left-overs of uploads leave the deep store."""
    RESTART = "restart"
    """A server is remembered by Helix, or looks at its own disk. Advice: nothing here restarts a server."""


class Means(StrEnum):
    """Who is asked, and how."""

    CONTROLLER = "controller"
    """`POST /segments/{table}/uploadFromServerToDeepstore` with names (1.5 and newer)."""
    FORCED = "controller, forced"
    """The same with `forceMode`: what Pinot itself would pass over."""
    SERVER = "server"
    """The server's own admin endpoint; an upload is followed by a versioned write of the segment's node."""
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
"""Means by which Pinot goes over the whole table, errors in other segments included."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do.

    :ivar why: what is wrong, in one sentence.
    :ivar segments: which it mends; one as a rule.
    :ivar server: whose replica, or which server is asked.
    :ivar partitions: of a validation.
    :ivar names: listed names, or left-overs.
    :ivar size_bytes: what is uploaded, as far as is known.
    :ivar deadline_s: how long its effect is waited for.
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
        """What a later plan knows it by: a re-ingestion on another server is another try of the same step."""
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
    """What no step mends.

    :ivar subject: segment, partition or server.
    :ivar why: the true reason.
    :ivar remedy: what a person can do.
    """

    subject: str
    why: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is left alone for now.

    :ivar until_ms: when it is looked at again; None where something else has to happen first.
    """

    subject: str
    why: str
    until_ms: int | None = None


RepairItem = Step | Unrepairable | Waiting
"""What a repair says of one segment or partition."""


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """What to do now, in this order; no two of its steps touch the same segment.

    :ivar advice: steps that only a person can do.
    """

    steps: tuple[Step, ...] = ()
    advice: tuple[Step, ...] = ()
    refusals: tuple[Unrepairable, ...] = ()
    waiting: tuple[Waiting, ...] = ()

    @property
    def all_well(self) -> bool:
        """Whether there is nothing to mend, now or later."""
        return not (self.steps or self.advice or self.refusals or self.waiting)


@dataclass(frozen=True, slots=True)
class RepairLimits:
    """How much is done at once.

    :ivar steps: at most so many in one plan.
    :ivar upload_bytes: at most so much is uploaded at once; one segment always may be.
    :ivar backoff_ms: a step that had no effect is tried again after that, then after twice that, and so on.
    :ivar longest_backoff_ms: the longest of these pauses.
    :ivar tries: after so many without effect a person is told; it is still tried.
    """

    steps: int = 8
    upload_bytes: int = 20 * 1024**3
    backoff_ms: int = 600_000
    longest_backoff_ms: int = 6 * 3_600_000
    tries: int = 3


USUAL_LIMITS = RepairLimits()


@dataclass(frozen=True, slots=True)
class Try(Open):
    """A step that was begun and whose effect nobody has seen yet.

    :ivar at_ms: when it was last begun.
    :ivar until_ms: till when it may be under way.
    :ivar times: how often it was begun.
    :ivar segments: which it mends.
    """

    kind: StepKind
    means: Means
    at_ms: int
    until_ms: int
    times: int
    segments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Memory:
    """What was tried so far, by the key of the step. Kept in ZooKeeper, so that a restarted repair knows."""

    tried: Mapping[str, Try] = field(default_factory=dict)

    def begun(self, step: Step, now_ms: int) -> Memory:
        """The memory once that step has been begun."""
        times = self.tried[step.key].times if step.key in self.tried else 0
        until_ms = now_ms + int(step.deadline_s * 1000)
        attempt = Try(step.kind, step.means, now_ms, until_ms, times + 1, step.segments)
        return replace(self, tried={**self.tried, step.key: attempt})

    def stopped(self, step: Step, now_ms: int) -> Memory:
        """The memory once that step is known not to be under way: Pinot refused it."""
        return replace(self, tried={**self.tried, step.key: replace(self.tried[step.key], until_ms=now_ms)})

    def ended(self, step: Step) -> Memory:
        """The memory once that step's effect has been seen."""
        return replace(self, tried={key: tried for key, tried in self.tried.items() if key != step.key})

    def since(self, oldest_ms: int) -> Memory:
        """Without what nobody tried since then: it is mended, or gone."""
        return replace(
            self, tried={key: tried for key, tried in self.tried.items() if tried.at_ms >= oldest_ms}
        )

    def times(self, step: Step) -> int:
        """How often it was begun without effect."""
        return self.tried[step.key].times if step.key in self.tried else 0

    def under_way(self, now_ms: int) -> tuple[Try, ...]:
        """What may still be at work."""
        return tuple(tried for tried in self.tried.values() if tried.until_ms > now_ms)

    def in_vain(self, step: Step, now_ms: int) -> bool:
        """Whether it was begun and had no effect in its time."""
        tried = self.tried.get(step.key)
        return tried is not None and tried.until_ms <= now_ms

    def again_at_ms(self, step: Step, limits: RepairLimits) -> int | None:
        """When a step that had no effect is tried again; None for one that was not tried."""
        tried = self.tried.get(step.key)
        if tried is None:
            return None
        pause = doubled(limits.backoff_ms, tried.times, limits.longest_backoff_ms)
        return max(tried.at_ms + pause, tried.until_ms)


NOTHING_TRIED = Memory()
