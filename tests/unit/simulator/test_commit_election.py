"""The election against the tables of docs/design/realtime.md#s3."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from simulator.commit import Election, PauselessElection, Phase
from simulator.protocol import LONGEST_COMMIT_MS, CompletionStatus, Reason

from pinot_assets.sizing.load import HOLD_MS

EXAMPLES = 60 * int(os.environ.get("PROOF_EXAMPLES", "1"))


def notified(kind: type[Election] = Election) -> Election:
    election = kind(2, 0)
    assert election.consumed("a", 100, Reason.ROW_LIMIT, 0).answer is CompletionStatus.COMMIT
    return election


def uploading(kind: type[Election] = Election) -> Election:
    election = notified(kind)
    assert election.start("a", 100, 1_000) is None
    assert election.started().answer is CompletionStatus.COMMIT_CONTINUE
    return election


def decided() -> Election:
    """The furthest one, b, has won, and does not know it yet."""
    election = Election(3, 0)
    assert election.consumed("b", 100, Reason.TIME_LIMIT, 0).answer is CompletionStatus.HOLD
    assert election.consumed("a", 90, Reason.TIME_LIMIT, 3_400).answer is CompletionStatus.CATCH_UP
    assert (election.winner, election.winning, election.phase) == ("b", 100, Phase.DECIDED)
    return election


def test_first_at_the_row_limit_wins_at_once() -> None:
    reply = Election(3, 0).consumed("a", 100, Reason.ROW_LIMIT, 0)
    assert (reply.answer, reply.offset, reply.build_ms) == (CompletionStatus.COMMIT, 100, 126_000)


@pytest.mark.parametrize("reason", [Reason.TIME_LIMIT, Reason.FORCE_COMMIT, None])
def test_others_are_waited_for(reason: Reason | None) -> None:
    election = Election(2, 0)
    assert election.consumed("a", 90, reason, 0).answer is CompletionStatus.HOLD
    reply = election.consumed("b", 100, reason, 10)
    assert reply.answer is CompletionStatus.COMMIT
    assert election.consumed("a", 90, None, 3_000).offset == 100


def test_the_caller_wins_a_draw() -> None:
    election = Election(2, 0)
    election.consumed("a", 100, Reason.TIME_LIMIT, 0)
    assert election.consumed("b", 100, Reason.TIME_LIMIT, 10).answer is CompletionStatus.COMMIT
    assert election.winner == "b"


def test_a_replica_that_stopped_is_not_waited_for() -> None:
    election = Election(2, 0)
    election.first_is_stop()
    election.stopped("b")
    assert election.phase is Phase.PARTIAL_CONSUMING
    assert election.consumed("a", 100, Reason.TIME_LIMIT, 0).answer is CompletionStatus.COMMIT


def test_after_the_hold_time_whoever_has_reported_is_enough() -> None:
    election = Election(3, 0)
    assert election.consumed("a", 100, Reason.TIME_LIMIT, 0).answer is CompletionStatus.HOLD
    assert election.consumed("a", 100, Reason.TIME_LIMIT, 3_300).answer is CompletionStatus.HOLD
    assert election.consumed("a", 100, Reason.TIME_LIMIT, 3_301).answer is CompletionStatus.COMMIT


@pytest.mark.parametrize(
    ("server", "offset", "now", "answer", "phase"),
    [
        ("b", 100, 4_000, CompletionStatus.COMMIT, Phase.NOTIFIED),
        ("b", 90, 4_000, CompletionStatus.HOLD, Phase.ABORTED),
        ("c", 100, 4_000, CompletionStatus.HOLD, Phase.DECIDED),
        ("c", 90, 4_000, CompletionStatus.CATCH_UP, Phase.DECIDED),
        ("c", 110, 4_000, CompletionStatus.HOLD, Phase.ABORTED),
        ("c", 90, 6_601, CompletionStatus.HOLD, Phase.ABORTED),
        ("b", 100, 6_601, CompletionStatus.HOLD, Phase.ABORTED),
    ],
)
def test_while_decided(server: str, offset: int, now: int, answer: CompletionStatus, phase: Phase) -> None:
    election = decided()
    assert election.consumed(server, offset, None, now).answer is answer
    assert election.phase is phase


@pytest.mark.parametrize(
    ("server", "offset", "now", "answer", "phase"),
    [
        ("a", 100, 9_000, CompletionStatus.COMMIT, Phase.NOTIFIED),
        ("a", 99, 9_000, CompletionStatus.DISCARD, Phase.ABORTED),
        ("b", 100, 9_000, CompletionStatus.HOLD, Phase.NOTIFIED),
        ("b", 99, 9_000, CompletionStatus.CATCH_UP, Phase.NOTIFIED),
        ("b", 101, 9_000, CompletionStatus.HOLD, Phase.NOTIFIED),
        ("b", 100, 126_601, CompletionStatus.HOLD, Phase.ABORTED),
    ],
)
def test_while_notified(server: str, offset: int, now: int, answer: CompletionStatus, phase: Phase) -> None:
    election = notified()
    assert election.consumed(server, offset, None, now).answer is answer
    assert election.phase is phase


@pytest.mark.parametrize(
    ("kind", "server", "offset", "answer", "phase"),
    [
        (Election, "a", 100, CompletionStatus.HOLD, Phase.ABORTED),
        (Election, "b", 100, CompletionStatus.HOLD, Phase.UPLOADING),
        (PauselessElection, "b", 100, CompletionStatus.KEEP, Phase.UPLOADING),
        (PauselessElection, "b", 99, CompletionStatus.CATCH_UP, Phase.UPLOADING),
        (PauselessElection, "b", 101, CompletionStatus.HOLD, Phase.UPLOADING),
        (PauselessElection, "a", 100, CompletionStatus.HOLD, Phase.ABORTED),
    ],
)
def test_while_uploading(
    kind: type[Election], server: str, offset: int, answer: CompletionStatus, phase: Phase
) -> None:
    election = uploading(kind)
    assert election.consumed(server, offset, None, 9_000).answer is answer
    assert election.phase is phase


def test_committed_keeps_equal_offsets_and_discards_others() -> None:
    election = Election(2, 0, committed_at=100)
    assert election.over
    assert election.consumed("b", 100, None, 0).answer is CompletionStatus.KEEP
    assert election.consumed("b", 99, None, 0).answer is CompletionStatus.DISCARD
    start = election.start("b", 100, 0)
    assert start is not None
    assert start.answer is CompletionStatus.KEEP


def test_commit_start_of_a_loser_is_let_through_and_its_end_is_not() -> None:
    election = notified()
    assert election.start("b", 100, 1_000) is None
    election.started()
    end = election.end("b", 100)
    assert end is not None
    assert end.answer is CompletionStatus.FAILED
    assert election.phase is Phase.ABORTED


def test_commit_end_at_another_offset_than_the_winning_one_fails() -> None:
    election = uploading()
    end = election.end("a", 99)
    assert end is not None
    assert end.answer is CompletionStatus.FAILED
    assert election.phase is Phase.ABORTED


def test_commit_start_of_one_that_stopped_fails_without_ending_the_election() -> None:
    election = notified()
    election.stopped("a")
    start = election.start("a", 100, 1_000)
    assert start is not None
    assert start.answer is CompletionStatus.FAILED
    assert election.phase is Phase.NOTIFIED


def test_leases_are_given_where_the_build_is() -> None:
    blocking, pauseless = notified(), uploading(PauselessElection)
    assert blocking.extend(120_000, 100_000).answer is CompletionStatus.PROCESSED
    assert blocking.deadline == 220_000
    assert pauseless.extend(120_000, 100_000).answer is CompletionStatus.PROCESSED
    assert uploading().extend(120_000, 100_000).answer is CompletionStatus.FAILED
    assert notified(PauselessElection).extend(120_000, 100_000).answer is CompletionStatus.FAILED


def test_no_lease_goes_beyond_half_an_hour() -> None:
    election = notified()
    for now in range(100_000, 1_680_000, 100_000):
        assert election.extend(120_000, now).answer is CompletionStatus.PROCESSED
    assert election.extend(120_000, LONGEST_COMMIT_MS - 119_999).answer is CompletionStatus.FAILED
    assert election.phase is Phase.ABORTED


def test_a_table_that_took_long_before_gets_more_time() -> None:
    assert Election(2, 0, longest_ms=300_000).budget_ms == 300_000
    assert Election(2, 0, commit_ms=7_200_000).budget_ms == LONGEST_COMMIT_MS


SERVERS = st.sampled_from("abc")


class AnyMessages(RuleBasedStateMachine):
    """Whatever servers say in whatever order: one winner, one commit."""

    kind: type[Election] = Election

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.election = self.kind(3, 0)
        self.commits: set[tuple[str, int]] = set()

    @rule(server=SERVERS, offset=st.integers(98, 102), reason=st.sampled_from([*Reason, None]))
    def consumed(self, server: str, offset: int, reason: Reason | None) -> None:
        reply = self.election.consumed(server, offset, reason, self.now)
        if reply.answer is CompletionStatus.COMMIT:
            assert (server, offset) == (self.election.winner, self.election.winning)
        if reply.answer is CompletionStatus.CATCH_UP:
            assert offset <= self.election.winning
        if reply.answer is CompletionStatus.KEEP:
            assert offset == self.election.winning

    @rule(server=SERVERS, offset=st.integers(98, 102))
    def start(self, server: str, offset: int) -> None:
        if self.election.start(server, offset, self.now) is None:
            self.election.started()

    @rule(server=SERVERS, offset=st.integers(98, 102))
    def end(self, server: str, offset: int) -> None:
        if self.election.end(server, offset) is None:
            assert (server, offset) == (self.election.winner, self.election.winning)
            self.commits.add((server, offset))
            self.election.finished()

    @rule(server=SERVERS)
    def stopped(self, server: str) -> None:
        self.election.stopped(server)

    @rule(extra=st.sampled_from([1_000, 120_000]))
    def extend(self, extra: int) -> None:
        self.election.extend(extra, self.now)

    @rule(after=st.sampled_from([1, HOLD_MS, 10_000, 200_000]))
    def time_passes(self, after: int) -> None:
        self.now += after

    @invariant()
    def one_commit(self) -> None:
        assert len(self.commits) <= 1
        assert self.election.deadline <= LONGEST_COMMIT_MS


class AnyPauselessMessages(AnyMessages):
    kind = PauselessElection


TestAnyMessages = AnyMessages.TestCase
TestAnyPauselessMessages = AnyPauselessMessages.TestCase
TestAnyMessages.settings = settings(max_examples=EXAMPLES, deadline=None)
TestAnyPauselessMessages.settings = settings(max_examples=EXAMPLES, deadline=None)
