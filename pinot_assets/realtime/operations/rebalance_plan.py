"""The rebalance guard: what a rebalance of a REALTIME table must not do to rows that only servers have; and
what is asked of Pinot's rebalance, in Pinot's own options.

Pinot keeps, at each step, every server that a segment has before and after, and so many others that
`minAvailableReplicas` is met; it asks of none of them whether it lives (`getNextSingleSegmentAssignment`).
With one of two servers dead, the live one may be dropped first. Its own pre-checks warn of some of this,
and its assessor refuses some (docs/design/realtime.md#s9); here the live copies are counted. Pure.
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
"""What is asked unless something else is: the defaults of 1.5.1. Those before 1.4 were others."""

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
"""What Pinot 1.5.1 knows, besides what is this guard's own business. Pinot ignores a name that it does not
know, so that a slip of the pen would be a rebalance with other guarantees.
Source: PinotTableRestletResource.rebalance."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of Pinot.

    :ivar options: Pinot's query parameters beside `dryRun`, `preChecks` and `type`; all that matter are
        there, since releases have different defaults.
    """

    options: Mapping[str, str]

    @classmethod
    def of(cls, **differs: str) -> Self:
        """The usual one with other options.

        :raises ValueError: Pinot knows no such option, or `minAvailableReplicas` is no number.
        """
        for name in sorted(differs.keys() - OPTIONS):
            known = did_you_mean(name, OPTIONS) or f"it has {', '.join(sorted(OPTIONS))}"
            raise ValueError(f"Pinot's rebalance has no option {name}; {known}")
        made = cls({**USUAL, **differs})
        _ = made.min_available
        return made

    def says(self, name: str) -> bool:
        """A switch among the options."""
        return self.options.get(name, "false").lower() == "true"

    @property
    def min_available(self) -> int:
        """As it stands: negative for so many that may be away."""
        return int(self.options["minAvailableReplicas"])

    def kept(self, replicas: int) -> int:
        """Replicas that Pinot keeps where segments shall have so many."""
        return self.min_available if self.min_available >= 0 else max(replicas + self.min_available, 0)


SHOWN: Final = 5
"""Segments that a message names."""

_LESS_GRAVE: Final = frozenset({"needsReloadStatus"})
"""Pre-checks of Pinot's whose ERROR only says that a server did not answer."""

_PRE_CHECKS: Final = Version("1.4")
"""From then on; where one of them throws, Pinot logs it and answers without any (seen on a real 1.5.1 whose
server answered `needsReload` otherwise than it expected)."""


@dataclass(frozen=True, slots=True)
class Move:
    """A segment whose servers change.

    :ivar before: servers that have it by the ideal state.
    :ivar after: servers that shall have it.
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
    """What the guard says.

    :ivar moves: all segments whose servers change.
    :ivar upload_first: those of them that should be in the deep store before; a repair does that.
    """

    moves: tuple[Move, ...]
    objections: tuple[CheckResult, ...]
    upload_first: tuple[str, ...]

    @property
    def refused(self) -> bool:
        """Whether it must not be done so."""
        return any(objection.blocks for objection in self.objections)


def moves_of(state: RealtimeState, preview: Preview) -> tuple[Move, ...]:
    """Segments whose servers the preview changes."""
    moves = []
    for segment in state.segments:
        before = frozenset(r.server for r in segment.replicas if r.ideal is not None)
        after = preview.target.get(segment.name, before)
        if before and after != before:
            moves.append(Move(segment, before, after))
    return tuple(moves)


def judge(request: Request, state: RealtimeState, preview: Preview) -> RebalancePlan:
    """Whether the rebalance may be done; from a state read after the preview."""
    if (unknown := not_known(state)) is not None:
        objection = failed("state", f"the table could not be read as a whole: {unknown}", "try again")
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
    """Replicas that Pinot keeps of every moving segment: one number for all, of the fewest."""
    fewest_after = min((len(move.after) for move in moves), default=0)
    fewest_before = min((len(move.before) for move in moves), default=0)
    return min(request.kept(fewest_after), fewest_before)


def live_kept(kept_of_each: int, state: RealtimeState, move: Move) -> int:
    """Live copies that are left whatever Pinot drops first: those that stay anyhow, and what is kept beside
    them once every dead one was kept before a live one.

    :param kept_of_each: as the function of that name says.
    """
    having = _holders(state, move.segment)
    common = move.before & move.after
    kept = kept_of_each - len(common)
    dead = len(move.before - common - having)
    return len(having & common) + max(kept - dead, 0)


def _holders(state: RealtimeState, segment: LlcSegment) -> frozenset[str]:
    """Live servers that have its rows: loaded, or in memory while they are being consumed or built.

    One that still consumes what others have committed may have to load it from them, and one that shall be
    OFFLINE drops its rows.
    """
    consuming = () if segment.completed else segment.in_state("CONSUMING")
    building = [r.server for r in consuming if r.ideal in ("CONSUMING", "ONLINE") and is_up(state, r.server)]
    return frozenset([*state.live_copies(segment), *building])


def _of_request(request: Request, state: RealtimeState, moves: tuple[Move, ...]) -> Iterator[CheckResult]:
    if request.says("downtime"):
        yield failed(
            "downtime",
            "all replicas of a segment may be taken away before a new one is loaded",
            "leave downtime out; with one replica, add one first",
        )
    if request.says("allowPeerDownloadDataLoss"):
        yield failed("allowPeerDownloadDataLoss", "it allows rows to be lost", "leave it out")
    # With one replica it is 0 whatever is asked, as Pinot wants it below the replicas: copies count there.
    replicas = max([state.settings.replication, *(len(move.after) for move in moves)])
    if replicas > 1 and request.kept(replicas) == 0:
        yield failed(
            "minAvailableReplicas",
            f"minAvailableReplicas={request.min_available} keeps no replica of {replicas}",
            "set it to 1 or more, or to -1",
        )
    if not request.says("includeConsuming"):
        yield warned(
            "includeConsuming", "what is being consumed stays where it is", "leave it out, or set it to true"
        )
    if request.says("bestEfforts"):
        alone = _names(move for move in moves if without_tar(move.segment))
        says = failed if alone else warned
        yield says(
            "bestEfforts",
            "servers are dropped although new ones have not loaded a segment"
            + (f", and only servers have {alone}" if alone else ""),
            "leave bestEfforts out",
        )


def _of_pinot(preview: Preview, state: RealtimeState, moves: tuple[Move, ...]) -> Iterator[CheckResult]:
    if preview.status not in ("DONE", "NO_OP"):
        yield failed("dry run", f"Pinot says {preview.status}: {preview.description}", "see its log")
    elif moves and not preview.checks and release(state.cluster.version) >= _PRE_CHECKS:
        yield failed(
            "pre-checks",
            "what Pinot's own pre-checks say is not known: its answer has none",
            "see the controller's log for `rebalance pre-checks`, and try again",
        )
    for name, (status, message) in preview.checks.items():
        if status != "PASS":
            says = failed if status == "ERROR" and name not in _LESS_GRAVE else warned
            yield says(name, f"Pinot's pre-check: {message}", "as the pre-check says")


def _of_copies(request: Request, state: RealtimeState, moves: tuple[Move, ...]) -> Iterator[CheckResult]:
    """Segments of which no live copy is sure to be kept."""
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
            f"{_names(nowhere)}; dead ones would have to drop their copies when they come back",
            "start the servers that have them; `pinot-assets realtime repair` says what else helps",
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
    """What is consumed moves by being read again, from its start."""
    kept = kept_of_each(request, moves)
    for move in moves:
        if move.segment.status is not SegmentStatus.IN_PROGRESS or live_kept(kept, state, move):
            continue
        if (gone := lost_from_stream(state, move.segment, move.segment.start_offset)) is not None:
            yield failed(
                "stream",
                f"{move.segment.name} would be read again from its start by new servers alone: {gone}",
                "force a commit first",
            )


def _names(moves: Iterator[Move] | list[Move]) -> str:
    return some([move.segment.name for move in moves], SHOWN)
