"""Who commits a segment: the controller's state machine, without clock, network or ZooKeeper.

One election lives in the lead controller's memory for each segment that completes. It is clocked by the
servers, who ask every three seconds. What has to be written meanwhile is the caller's: `start` and `end`
say "go on" with None, the caller writes, then reports `started`, `finished` or `abort`.

Source: `BlockingSegmentCompletionFSM` and `PauselessSegmentCompletionFSM` of release-1.5.1;
docs/design/realtime.md#s3.
"""

from __future__ import annotations

from enum import StrEnum

from pinot_assets.sizing.load import NOTIFY_WINNER_MS
from simulator.protocol import (
    COMMIT_CONTINUE,
    COMMIT_SUCCESS,
    DISCARD,
    FAILED,
    HOLD,
    KEEP,
    LONGEST_COMMIT_MS,
    PICK_WINNER_MS,
    PROCESSED,
    CompletionStatus,
    Reason,
    Reply,
)


class Phase(StrEnum):
    """States of the election; the last two are its end."""

    PARTIAL_CONSUMING = "PARTIAL_CONSUMING"
    HOLDING = "HOLDING"
    DECIDED = "COMMITTER_DECIDED"
    NOTIFIED = "COMMITTER_NOTIFIED"
    UPLOADING = "COMMITTER_UPLOADING"
    COMMITTING = "COMMITTING"
    COMMITTED = "COMMITTED"
    ABORTED = "ABORTED"


class Election:
    """The blocking election: the segment's metadata are written when the commit ends.

    :param replicas: how many servers are expected to report.
    :param now: when the first message came.
    :param commit_ms: the table's commit time, 120 s as a rule.
    :param longest_ms: longest commit of the table that this controller has seen, 0 before the first.
    :param committed_at: end offset where the segment is DONE already. COMMITTING counts as not committed:
        after a fail-over in the middle of a pauseless commit, its messages fail until validation repairs.
    """

    def __init__(
        self,
        replicas: int,
        now: float,
        *,
        commit_ms: int = 120_000,
        longest_ms: float = 0,
        committed_at: int | None = None,
    ) -> None:
        self.replicas = replicas
        self.began = now
        self.budget_ms = min(max(NOTIFY_WINNER_MS + commit_ms, longest_ms), LONGEST_COMMIT_MS)
        self.deadline = now + self.budget_ms
        self.phase = Phase.HOLDING if committed_at is None else Phase.COMMITTED
        self.winner: str | None = None
        self.winning = -1 if committed_at is None else committed_at
        self.reports: dict[str, int] = {}
        self.stopped_servers: set[str] = set()

    @property
    def over(self) -> bool:
        """Whether the controller forgets it after this answer; the next message begins a new one."""
        return self.phase in (Phase.COMMITTED, Phase.ABORTED)

    @property
    def built(self) -> bool:
        """Whether some replica is known to have built the segment (`isImmutableSegmentCreated`)."""
        return self.phase in (Phase.UPLOADING, Phase.COMMITTING, Phase.COMMITTED)

    # --- messages ----------------------------------------------------------------------------------

    def consumed(self, server: str, offset: int, reason: Reason | None, now: float) -> Reply:
        """A server has reached its end criterion, or asks again."""
        self.stopped_servers.discard(server)
        self.reports[server] = offset
        match self.phase:
            case Phase.PARTIAL_CONSUMING | Phase.HOLDING:
                self.phase = Phase.HOLDING
                return self._while_holding(server, offset, reason, now)
            case Phase.DECIDED:
                return self._while_decided(server, offset, now)
            case Phase.NOTIFIED:
                return self._while_notified(server, offset, now)
            case Phase.UPLOADING | Phase.COMMITTING:
                return self._while_uploading(server, offset, now)
            case Phase.COMMITTED:
                return KEEP if offset == self.winning else DISCARD
            case Phase.ABORTED:
                return HOLD

    def start(self, server: str, offset: int, now: float) -> Reply | None:
        """segmentCommitStart: None when the commit may begin; then comes `started`, or `abort`."""
        if server in self.stopped_servers:
            return FAILED
        if self.phase is Phase.COMMITTED:
            return KEEP if offset == self.winning else DISCARD
        if self.phase is Phase.ABORTED:
            return HOLD
        if now > self.deadline:
            return self._abort_and_hold()
        if self.phase is not Phase.NOTIFIED:
            return HOLD
        if server == self.winner and offset != self.winning:
            return self._abort_and_hold()
        return None

    def started(self) -> Reply:
        """The commit has begun."""
        self.phase = Phase.UPLOADING
        return COMMIT_CONTINUE

    def end(self, server: str, offset: int) -> Reply | None:
        """segmentCommitEndWithMetadata: None when the metadata may be written; then `finished` or `abort`."""
        welcome = self.phase is Phase.UPLOADING and server == self.winner and offset == self.winning
        if server in self.stopped_servers or not welcome:
            return self.abort()
        self.phase = Phase.COMMITTING
        return None

    def finished(self) -> Reply:
        """The segment is DONE."""
        self.phase = Phase.COMMITTED
        return COMMIT_SUCCESS

    def abort(self) -> Reply:
        """Give up; the servers start over."""
        self.phase = Phase.ABORTED
        return FAILED

    def stopped(self, server: str) -> None:
        """segmentStoppedConsuming: this server is not waited for."""
        self.stopped_servers.add(server)

    def first_is_stop(self) -> None:
        """The first message of all was segmentStoppedConsuming."""
        if self.phase is Phase.HOLDING:
            self.phase = Phase.PARTIAL_CONSUMING

    def extend(self, extra_ms: int, now: float) -> Reply:
        """extendBuildTime: more time for the build; FAILED where no build is expected."""
        if self.phase is not self._builds_in:
            return FAILED
        if now > self.deadline:
            return self._abort_and_hold()
        if now + extra_ms > self.began + LONGEST_COMMIT_MS:
            return self.abort()
        self.deadline = now + extra_ms
        return PROCESSED

    # --- one method for each phase -----------------------------------------------------------------

    _builds_in = Phase.NOTIFIED

    def _while_holding(self, server: str, offset: int, reason: Reason | None, now: float) -> Reply:
        first_is_enough = reason in (Reason.ROW_LIMIT, Reason.END_OF_PARTITION) and len(self.reports) == 1
        everybody = len(self.reports) == self.replicas - len(self.stopped_servers)
        if not (first_is_enough or everybody or now > self.began + PICK_WINNER_MS):
            return HOLD
        self.winning = max(self.reports.values())
        furthest = (name for name, reported in self.reports.items() if reported == self.winning)
        self.winner = server if offset == self.winning else next(furthest)
        if self.winner == server:
            return self._commit()
        self.phase = Phase.DECIDED
        # Even when it is there already: the server then calls the answer invalid, and holds.
        return self._catch_up()

    def _while_decided(self, server: str, offset: int, now: float) -> Reply:
        if offset > self.winning or (server == self.winner and offset != self.winning):
            return self._abort_and_hold()
        reply = self._commit() if server == self.winner else self._loser(offset)
        return self._abort_and_hold() if now > self.began + NOTIFY_WINNER_MS else reply

    def _while_notified(self, server: str, offset: int, now: float) -> Reply:
        if now > self.deadline:
            return self._abort_and_hold()
        if server != self.winner:
            return self._loser(offset)
        if offset == self.winning:
            # It never heard that it has won.
            return self._commit()
        self.phase = Phase.ABORTED
        return DISCARD

    def _while_uploading(self, server: str, offset: int, now: float) -> Reply:
        if now > self.deadline or server == self.winner:
            # The winner ought to be committing.
            return self._abort_and_hold()
        return self._loser_while_uploading(offset)

    def _loser(self, offset: int) -> Reply:
        return self._catch_up() if offset < self.winning else HOLD

    def _loser_while_uploading(self, offset: int) -> Reply:
        return self._loser(offset)

    def _commit(self) -> Reply:
        self.phase = Phase.NOTIFIED
        return Reply(CompletionStatus.COMMIT, self.winning, int(self.deadline - self.began) // 1000 * 1000)

    def _catch_up(self) -> Reply:
        return Reply(CompletionStatus.CATCH_UP, self.winning)

    def _abort_and_hold(self) -> Reply:
        self.phase = Phase.ABORTED
        return HOLD


class PauselessElection(Election):
    """The pauseless election: the end offset is written at commitStart, so replicas may build at once."""

    _builds_in = Phase.UPLOADING

    def _loser_while_uploading(self, offset: int) -> Reply:
        return KEEP if offset == self.winning else self._loser(offset)
