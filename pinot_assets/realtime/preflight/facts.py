"""The facts that the rules of the preflight judge, which `gather` reads from Pinot and the stream; and what a
rule and its answer are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Final

from pinot_assets.core import check_result
from pinot_assets.core.check_result import CheckResult, unknown
from pinot_assets.core.untrusted import whole_number
from pinot_assets.pinot.table_config import period_ms
from pinot_assets.realtime.model.settings import ClusterSettings, RealtimeSettings, reingests
from pinot_assets.realtime.read.stream import StreamRetention

DEFAULT_FLUSH_MS: Final = 6 * 3_600_000
"""`StreamConfig.DEFAULT_FLUSH_THRESHOLD_TIME_MILLIS`."""
REINGEST_S: Final = 1800
"""Seconds that a server takes at most to read a segment again (docs/design/realtime.md#s7)."""
PERSON_S: Final = 72 * 3600
"""Time, in seconds, that a repair by a person may take: a long weekend."""


class Aim(StrEnum):
    """What the change is to switch on, or keep on."""

    BYPASS = "bypass"
    """A commit succeeds although the deep store is down."""
    PAUSELESS = "pauseless"
    """Consumption continues while a segment is built and uploaded."""


@dataclass(frozen=True, slots=True)
class CommitStart:
    """How long the controller takes to answer `segmentCommitStart` on a pauseless table.

    :ivar how: how the number was determined, to be shown with it.
    """

    seconds: float
    how: str


@dataclass(frozen=True, slots=True)
class CommitTimes:
    """How long it takes to build and upload a segment.

    :ivar seconds: of the slowest commit; None where no commit shows it.
    :ivar late: number of segments whose node was written again later than Pinot waits: a repair finished
        them, or they changed since (uploaded after an outage, moved to another tier).
    :ivar largest_bytes: size of the largest segment's tar.
    """

    seconds: float | None
    late: int
    largest_bytes: int


@dataclass(frozen=True, slots=True)
class OfflineHalf:
    """The OFFLINE table of the same name.

    :ivar refresh: whether segments are replaced in place, under their own name.
    """

    peer_scheme: str | None
    refresh: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """One table before a change of its config.

    What could not be read is None or empty, and `unread` gives the reason, by the name of the field (or of a
    field of `ClusterSettings`). A rule that needs it answers "not known".

    :ivar table: with `_REALTIME`.
    :ivar aims: what the change is to switch on, and what the table has on already.
    :ivar target: the settings after the change.
    :ivar held: the settings in Pinot now, None before the table is created.
    :ivar admin_ports: server → why its admin port was not reached from here, None where it was.
    :ivar committing: number of segments that are COMMITTING now.
    :ivar peers_only: number of completed segments without a copy in the deep store.
    """

    table: str
    aims: frozenset[Aim]
    target: RealtimeSettings
    cluster: ClusterSettings
    held: RealtimeSettings | None = None
    offline: OfflineHalf | None = None
    commit_start: CommitStart | None = None
    commit_times: CommitTimes | None = None
    admin_ports: Mapping[str, str | None] = field(default_factory=dict)
    committing: int = 0
    peers_only: int = 0
    retention: StreamRetention | None = None
    unread: Mapping[str, str] = field(default_factory=dict)

    def not_known(self, needs: tuple[str, ...]) -> str | None:
        """Return why a rule that needs these parts cannot judge; None where it can."""
        why = {**self.cluster.unread, **self.unread}
        return next((why[name] for name in needs if name in why), None)

    @property
    def pauseless(self) -> bool:
        """Whether the change is about pauseless consumption."""
        return Aim.PAUSELESS in self.aims

    @property
    def flush_ms(self) -> int:
        """Milliseconds until a segment is committed: the age of its first rows if it is lost then."""
        stream = self.target.streams[0] if self.target.streams else {}
        text = stream.get("realtime.segment.flush.threshold.time", "")
        number = whole_number(text)
        return number if number is not None else period_ms(text) or DEFAULT_FLUSH_MS

    @property
    def worst_repair_s(self) -> int:
        """Seconds until a segment that no server has is read from the stream again, in the worst case.

        All replicas first give up their download. Then each run of the validation manager tries one server,
        which may be dead. Without automatic re-ingestion a person has to do it.
        """
        if not reingests(self.target, self.cluster):
            return PERSON_S
        return self.target.download_timeout_s + 2 * self.cluster.validation_period_s + REINGEST_S


passed: Final = partial(check_result.passed, "")
"""Answer that all is well: why. `Rule.answer` adds the rule's name, here and below."""
warn: Final = partial(check_result.warned, "")
"""Answer that the change may be made, but a person should know this first: why, and what to do."""
refuse: Final = partial(check_result.failed, "")
"""Answer that the change must not be made: why, and what to do."""

Judge = Callable[[Facts], CheckResult]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the preflight.

    :ivar aims: aims for which it matters; empty for every change.
    :ivar needs: facts without which it cannot judge.
    """

    name: str
    aims: frozenset[Aim]
    needs: tuple[str, ...]
    judge: Judge

    def answer(self, facts: Facts) -> CheckResult:
        """Return the rule's answer; "not known" is a warning."""
        if (why := facts.not_known(self.needs)) is not None:
            fix = "make it readable and look again, or make sure that it is as docs/guides/realtime.md says"
            return unknown(self.name, why, fix)
        return replace(self.judge(facts), name=self.name)


def rule(*aims: Aim, needs: tuple[str, ...] = ()) -> Callable[[Judge], Rule]:
    """Return a decorator that makes a function a rule with the function's name.

    :param aims: aims for which it matters; none for every change.
    """
    return lambda judge: Rule(judge.__name__, frozenset(aims), needs, judge)
