"""The rebalance guard: what a rebalance of a REALTIME table must not do to rows that only servers have; and
the options with which Pinot's rebalance is called.

At each step Pinot keeps every server that a segment has before and after, and as many others as
`minAvailableReplicas` needs. It does not check whether they are alive (`getNextSingleSegmentAssignment`).
With one of two servers dead, it may drop the live one first. Pinot's pre-checks warn of some of this, and its
assessor refuses some (docs/design/realtime.md#s9). The guard counts the live copies. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from packaging.version import Version

from pinot_assets.core.check_result import CheckResult, failed, some, warned
from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.text import plural, plural_are
from pinot_assets.pinot.versions import release
from pinot_assets.realtime.model.state import LlcSegment, RealtimeState, SegmentStatus
from pinot_assets.realtime.repair.facts import is_up, lost_from_stream, not_known, without_tar
from pinot_assets.table_spec.yaml.document import did_you_mean

USUAL: Final[Mapping[str, str]] = {
    "reassignInstances": "true",
    "includeConsuming": "true",
    "downtime": "false",
    "bestEfforts": "false",
    "minAvailableReplicas": "-1",
}
"""Options that a rebalance has unless it says otherwise: the defaults of 1.5.1. Before 1.4 they differed."""

OPTIONS: Final = frozenset(
    (
        *USUAL,
        *("allowPeerDownloadDataLoss", "batchSizePerServer", "bootstrap", "disableSummary"),
        *(
            "diskUtilizationThreshold",
            "externalViewCheckIntervalInMs",
            "externalViewStabilizationTimeoutInMs",
        ),
        *("forceCommit", "forceCommitBatchSize", "forceCommitBatchStatusCheckIntervalMs"),
        *("forceCommitBatchStatusCheckTimeoutMs", "heartbeatIntervalInMs", "heartbeatTimeoutInMs"),
        *("lowDiskMode", "maxAttempts", "minimizeDataMovement", "retryInitialDelayInMs", "updateTargetTier"),
    )
)
"""Options of Pinot 1.5.1, without those that only this guard sets. Pinot ignores an unknown name, so a
typing error would start a rebalance with other guarantees.
Source: PinotTableRestletResource.rebalance."""


@dataclass(frozen=True, slots=True)
class Request:
    """The options of a call of Pinot's rebalance.

    :ivar options: Pinot's query parameters except `dryRun`, `preChecks` and `type`. Every option that matters
        is set, since the defaults differ by release.
    """

    options: Mapping[str, str]

    @classmethod
    def of(cls, **differs: str) -> Self:
        """Return the usual request with some options changed.

        :raises ValueError: Pinot has no such option, or `minAvailableReplicas` is not a number.
        """
        for name in sorted(differs.keys() - OPTIONS):
            known = did_you_mean(name, OPTIONS) or f"its options are {', '.join(sorted(OPTIONS))}"
            raise ValueError(f"Pinot's rebalance has no option {name}; {known}")
        made = cls({**USUAL, **differs})
        _ = made.min_available
        return made

    def says(self, name: str) -> bool:
        """Return whether this boolean option is on."""
        return self.options.get(name, "false").lower() == "true"

    @property
    def min_available(self) -> int:
        """The option as given; a negative number is how many replicas may be away."""
        return int(self.options["minAvailableReplicas"])

    def kept(self, replicas: int) -> int:
        """Return how many replicas Pinot keeps available if segments are to have `replicas`."""
        return self.min_available if self.min_available >= 0 else max(replicas + self.min_available, 0)


SHOWN: Final = 5
"""Maximum of segments that a message names."""

_LESS_GRAVE: Final = frozenset({"needsReloadStatus"})
"""Pinot's pre-checks whose ERROR only means that a server did not answer."""

_PRE_CHECKS: Final = Version("1.4")
"""First release with pre-checks. If one of them throws, Pinot logs it and answers without any (seen on a real
1.5.1 whose server gave an unexpected answer to `needsReload`)."""


@dataclass(frozen=True, slots=True)
class Move:
    """A segment whose servers change.

    :ivar before: servers that have it in the ideal state now.
    :ivar after: servers that are to have it.
    """

    segment: LlcSegment
    before: frozenset[str]
    after: frozenset[str]


@dataclass(frozen=True, slots=True)
class Preview:
    """Pinot's answer to a dry run with pre-checks.

    :ivar status: DONE, NO_OP or FAILED, in Pinot's words.
    :ivar target: segment → servers.
    :ivar checks: name of a pre-check → (PASS, WARN or ERROR, its message); empty before 1.4, and where Pinot
        could not run them.
    """

    status: str
    description: str
    target: Mapping[str, frozenset[str]]
    checks: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def from_json(cls, answer: JsonMapping) -> Self:
        """Read what `POST /tables/{table}/rebalance` answers."""
        checks = answer.get("preChecksResult") or {}
        return cls(
            status=str(answer.get("status")),
            description=str(answer.get("description") or ""),
            target={name: frozenset(at) for name, at in (answer.get("segmentAssignment") or {}).items()},
            checks={
                name: (str(one.get("preCheckStatus")), str(one.get("message") or ""))
                for name, one in checks.items()
            },
        )


@dataclass(frozen=True, slots=True)
class RebalancePlan:
    """The guard's judgement of a rebalance.

    :ivar moves: all segments whose servers change.
    :ivar upload_first: those of them to upload to the deep store before; a repair does that.
    """

    moves: tuple[Move, ...]
    objections: tuple[CheckResult, ...]
    upload_first: tuple[str, ...]

    @property
    def refused(self) -> bool:
        """Return whether the rebalance must not be done with this request."""
        return any(objection.blocks for objection in self.objections)


def moves_of(state: RealtimeState, preview: Preview) -> tuple[Move, ...]:
    """Return the segments whose servers the preview changes."""
    moves = []
    for segment in state.segments:
        before = frozenset(r.server for r in segment.replicas if r.ideal is not None)
        after = preview.target.get(segment.name, before)
        if before and after != before:
            moves.append(Move(segment, before, after))
    return tuple(moves)


def judge(request: Request, state: RealtimeState, preview: Preview) -> RebalancePlan:
    """Judge the rebalance from a state that was read after the preview."""
    if (unknown := not_known(state)) is not None:
        objection = failed("state", f"the table could not be read completely: {unknown}", "try again")
        return RebalancePlan((), (objection,), ())
    moves = moves_of(state, preview)
    objections = (
        *_of_request(request, state, moves),
        *_of_pinot(preview, state, moves),
        *_of_copies(request, state, moves),
        *_of_stream(request, state, moves),
    )
    return RebalancePlan(moves, objections, tuple(m.segment.name for m in moves if without_tar(m.segment)))


def kept_of_each(request: Request, moves: tuple[Move, ...]) -> int:
    """Return how many replicas of a moving segment Pinot keeps: the one with fewest sets it for all."""
    fewest_after = min((len(move.after) for move in moves), default=0)
    fewest_before = min((len(move.before) for move in moves), default=0)
    return min(request.kept(fewest_after), fewest_before)


def live_kept(kept_of_each: int, state: RealtimeState, move: Move) -> int:
    """Return how many live copies remain whatever Pinot drops first: those on servers that keep the segment,
    and the kept others, if Pinot keeps every dead one before a live one.

    :param kept_of_each: result of the function of that name.
    """
    having = _holders(state, move.segment)
    common = move.before & move.after
    kept = kept_of_each - len(common)
    dead = len(move.before - common - having)
    return len(having & common) + max(kept - dead, 0)


def _holders(state: RealtimeState, segment: LlcSegment) -> frozenset[str]:
    """Return the live servers that have its rows: loaded, or in memory while they consume or build.

    A server that still consumes what others have committed does not count, as it may have to load that from
    them. Neither does one that is to be OFFLINE, as it drops its rows.
    """
    consuming = () if segment.completed else segment.in_state("CONSUMING")
    building = [r.server for r in consuming if r.ideal in ("CONSUMING", "ONLINE") and is_up(state, r.server)]
    return frozenset([*state.live_copies(segment), *building])


def _of_request(request: Request, state: RealtimeState, moves: tuple[Move, ...]) -> Iterator[CheckResult]:
    if request.says("downtime"):
        yield failed(
            "downtime",
            "all replicas of a segment may be removed before a new one is loaded",
            "leave downtime out; with one replica, add one first",
        )
    if request.says("allowPeerDownloadDataLoss"):
        yield failed("allowPeerDownloadDataLoss", "it allows Pinot to lose rows", "leave it out")
    # With one replica Pinot makes it 0 whatever is asked, as it must be below that: there copies count.
    replicas = max([state.settings.replication, *(len(move.after) for move in moves)])
    if replicas > 1 and request.kept(replicas) == 0:
        yield failed(
            "minAvailableReplicas",
            f"minAvailableReplicas={request.min_available} keeps no replica of {replicas}",
            "set it to 1 or more, or to -1",
        )
    if not request.says("includeConsuming"):
        yield warned(
            "includeConsuming",
            "segments that are being consumed stay where they are",
            "leave it out, or set it to true",
        )
    if request.says("bestEfforts"):
        alone = _names(move for move in moves if without_tar(move.segment))
        says = failed if alone else warned
        yield says(
            "bestEfforts",
            "servers are removed although new ones have not loaded a segment"
            + (f", and only servers have {alone}" if alone else ""),
            "leave bestEfforts out",
        )


def _of_pinot(preview: Preview, state: RealtimeState, moves: tuple[Move, ...]) -> Iterator[CheckResult]:
    if preview.status not in ("DONE", "NO_OP"):
        yield failed("dry run", f"Pinot says {preview.status}: {preview.description}", "see its log")
    elif moves and not preview.checks and release(state.cluster.version) >= _PRE_CHECKS:
        yield failed(
            "pre-checks",
            "the result of Pinot's own pre-checks is not known: its answer has none",
            "see the controller's log for `rebalance pre-checks`, and try again",
        )
    for name, (status, message) in preview.checks.items():
        if status != "PASS":
            says = failed if status == "ERROR" and name not in _LESS_GRAVE else warned
            yield says(name, f"Pinot's pre-check: {message}", "as the pre-check says")


def _of_copies(request: Request, state: RealtimeState, moves: tuple[Move, ...]) -> Iterator[CheckResult]:
    """Yield objections to moves of segments of which no live copy is sure to be kept."""
    kept = kept_of_each(request, moves)
    bare = [m for m in moves if live_kept(kept, state, m) == 0 and _holders(state, m.segment)]
    if risked := [move for move in bare if without_tar(move.segment)]:
        single = " with one replica" if all(len(move.before) == 1 for move in risked) else ""
        yield failed(
            "only copies",
            f"{plural(len(risked), 'segment')}{single} not in the deep store, with live copies "
            f"that may be dropped first: {_names(risked)}",
            "upload them first: `pinot-assets realtime rebalance --upload-first`",
        )
    if nowhere := [m for m in moves if without_tar(m.segment) and not _holders(state, m.segment)]:
        yield failed(
            "no live copy",
            f"{plural_are(len(nowhere), 'segment')} not in the deep store, nor on a live server: "
            f"{_names(nowhere)}; dead servers would drop their copies when they start again",
            "start the servers that have them; `pinot-assets realtime repair` shows what else helps",
        )
    stored = [
        m for m in bare if not without_tar(m.segment) and m.segment.status is not SegmentStatus.IN_PROGRESS
    ]
    if stored:
        yield warned(
            "answers",
            f"{plural(len(stored), 'segment')} may be on no live server for a while: {_names(stored)}",
            "expect incomplete answers until they are loaded from the deep store",
        )


def _of_stream(request: Request, state: RealtimeState, moves: tuple[Move, ...]) -> Iterator[CheckResult]:
    """Yield objections where new servers must read a consuming segment from a start that the stream lacks."""
    kept = kept_of_each(request, moves)
    for move in moves:
        if move.segment.status is not SegmentStatus.IN_PROGRESS or live_kept(kept, state, move):
            continue
        if (gone := lost_from_stream(state, move.segment, move.segment.start_offset)) is not None:
            yield failed(
                "stream",
                f"only new servers would consume {move.segment.name} again, from its start: {gone}",
                "force a commit first",
            )


def _names(moves: Iterator[Move] | list[Move]) -> str:
    return some([move.segment.name for move in moves], SHOWN)
