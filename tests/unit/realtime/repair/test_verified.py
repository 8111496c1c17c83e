"""A step's effect is read back, never believed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.realtime.hurt_tables import consuming, hurt_tables, replicas, segment, table
from hypothesis import given, settings

from pinot_assets.realtime.model.state import LlcSegment, RealtimeState, SegmentStatus, TmpUpload
from pinot_assets.realtime.repair.apply import Verification, verified
from pinot_assets.realtime.repair.model import Means, RepairLimits, Step, StepKind
from pinot_assets.realtime.repair.plan import plan

BOTH = replicas(a="ONLINE", b="ONLINE")
DONE = segment(SegmentStatus.DONE, BOTH, "s3://d/t/0")
NAME = DONE.name


def step(kind: StepKind, **differs: object) -> Step:
    made = Step(kind, Means.CONTROLLER, "", (NAME,))
    return replace(made, **differs)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [StepKind.UPLOAD, StepKind.FINISH, StepKind.REINGEST])
@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        (DONE, Verification.DONE),
        (replace(DONE, url=""), Verification.NOT_YET),
        (replace(DONE, status=SegmentStatus.COMMITTING, url=None), Verification.NOT_YET),
        (replace(DONE, stored=False), Verification.GONE),
    ],
)
def test_stored(kind: StepKind, after: LlcSegment, verdict: Verification) -> None:
    assert verified(step(kind), table(after, consuming())) is verdict


@pytest.mark.parametrize(
    ("at", "verdict"),
    [
        ("ONLINE", Verification.DONE),
        ("ONLINE>ERROR", Verification.NOT_YET),
        ("ONLINE>OFFLINE", Verification.NOT_YET),
        ("OFFLINE", Verification.GONE),
    ],
)
@pytest.mark.parametrize("kind", [StepKind.RESET, StepKind.RESTART])
def test_loaded(kind: StepKind, at: str, verdict: Verification) -> None:
    state = table(replace(DONE, replicas=replicas(a="ONLINE", b=at)), consuming())
    assert verified(step(kind, server="b"), state) is verdict
    assert verified(step(kind, server="c"), state) is Verification.GONE


def test_consumed() -> None:
    validate = step(StepKind.VALIDATE, segments=(), partitions=(0,))
    assert verified(validate, table(DONE, consuming())) is Verification.DONE
    assert verified(validate, table(DONE)) is Verification.NOT_YET
    assert verified(validate, table(DONE, consuming(a="OFFLINE", b="OFFLINE"))) is Verification.NOT_YET


def test_cleared() -> None:
    left = table(DONE, committing_listed=frozenset({NAME}), tmp_uploads=(TmpUpload("x.tmp.1", 1, 1),))
    unlist = step(StepKind.UNLIST, segments=(), names=(NAME,))
    sweep = step(StepKind.SWEEP, segments=(), names=("x.tmp.1",))
    assert verified(unlist, left) is verified(sweep, left) is Verification.NOT_YET
    assert verified(unlist, table(DONE)) is verified(sweep, table(DONE)) is Verification.DONE


def test_what_was_not_read_proves_nothing() -> None:
    blind = table(unread={"segments": "no answer", "tmp_uploads": "no answer"})
    assert verified(step(StepKind.UPLOAD), blind) is Verification.UNKNOWN
    assert verified(step(StepKind.SWEEP, names=("x",)), blind) is Verification.UNKNOWN
    unseen = table(DONE, unread={"external": "no answer"})
    assert verified(step(StepKind.RESET, server="a"), unseen) is Verification.UNKNOWN


@settings(max_examples=120, deadline=None)
@given(hurt_tables())
def test_nothing_is_planned_that_is_already_so(state: RealtimeState) -> None:
    for one in (found := plan(state, RepairLimits())).steps + found.advice:
        assert verified(one, state) is Verification.NOT_YET
