"""What the rules of the preflight judge, as values, which `gather` reads from a Pinot and its stream; what
a rule is, and how it answers.
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
"""What a server gives itself to read a segment again (docs/design/realtime.md#s7)."""
PERSON_S: Final = 72 * 3600
"""What Pinot does not mend by itself waits for a person: a long weekend."""


class Aim(StrEnum):
    """What is to be switched on, or kept on."""

    BYPASS = "bypass"
    """A commit passes a deep store that is down."""
    PAUSELESS = "pauseless"
    """Consumption goes on while a segment is built and uploaded."""


@dataclass(frozen=True, slots=True)
class CommitStart:
    """How long the controller's answer to `segmentCommitStart` takes on a pauseless table.

    :ivar how: where the number comes from, to be said with it.
    """

    seconds: float
    how: str


@dataclass(frozen=True, slots=True)
class CommitTimes:
    """How long it takes to build and upload a segment.

    :ivar seconds: of the slowest; None where no commit shows it.
    :ivar late: segments that were written again later than Pinot waits: finished by a repair, or changed
        since (uploaded after an outage, moved to another tier).
    :ivar largest_bytes: the largest segment's tar.
    """

    seconds: float | None
    late: int
    largest_bytes: int


@dataclass(frozen=True, slots=True)
class OfflineHalf:
    """The OFFLINE table of the same name.

    :ivar refresh: whether segments are replaced where they are.
    """

    peer_scheme: str | None
    refresh: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """One table before a change of its config.

    What could not be read is None or empty, and `unread` says why, by the name of the field (or of a field of
    `ClusterSettings`): a rule that needs it answers "not known".

    :ivar table: with `_REALTIME`.
    :ivar aims: what the change is for, or what the table has on already.
    :ivar target: the settings after the change.
    :ivar held: as Pinot has them now, None before the table is made.
    :ivar admin_ports: server → why its admin port was not reached from here, None where it was.
    :ivar committing: segments that are COMMITTING now.
    :ivar peers_only: completed segments that the deep store has no copy of.
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
        """Why a rule that needs these cannot judge; None where it can."""
        why = {**self.cluster.unread, **self.unread}
        return next((why[name] for name in needs if name in why), None)

    @property
    def pauseless(self) -> bool:
        """Whether this is about pauseless consumption."""
        return Aim.PAUSELESS in self.aims

    @property
    def flush_ms(self) -> int:
        """Age at which a segment is committed: so old are its first rows when something happens to it."""
        stream = self.target.streams[0] if self.target.streams else {}
        text = stream.get("realtime.segment.flush.threshold.time", "")
        number = whole_number(text)
        return number if number is not None else period_ms(text) or DEFAULT_FLUSH_MS

    @property
    def worst_repair_s(self) -> int:
        """How long a segment that no server has may wait until it is read from the stream again.

        All replicas give up their download first; the validation manager then tries one server a run, which
        may be a dead one. Without automatic re-ingestion a person does it.
        """
        if not reingests(self.target, self.cluster):
            return PERSON_S
        return self.target.download_timeout_s + 2 * self.cluster.validation_period_s + REINGEST_S


passed: Final = partial(check_result.passed, "")
"""All is well; why. `Rule.answer` puts the rule's name in, here and below."""
warn: Final = partial(check_result.warned, "")
"""The change may be made, and somebody should know this first; why, and what to do."""
refuse: Final = partial(check_result.failed, "")
"""The change is not made; why, and what to do."""

Judge = Callable[[Facts], CheckResult]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    :ivar aims: what it matters to; empty for every change.
    :ivar needs: facts without which it cannot judge.
    """

    name: str
    aims: frozenset[Aim]
    needs: tuple[str, ...]
    judge: Judge

    def answer(self, facts: Facts) -> CheckResult:
        """Its answer; "not known" is a warning."""
        if (why := facts.not_known(self.needs)) is not None:
            fix = "make it readable and look again, or see to it that it is as docs/guides/realtime.md says"
            return unknown(self.name, why, fix)
        return replace(self.judge(facts), name=self.name)


def rule(*aims: Aim, needs: tuple[str, ...] = ()) -> Callable[[Judge], Rule]:
    """Make a function a rule of its own name.

    :param aims: what it matters to; none for every change.
    """
    return lambda judge: Rule(judge.__name__, frozenset(aims), needs, judge)
