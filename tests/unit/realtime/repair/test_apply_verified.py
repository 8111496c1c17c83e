"""A step's effect is read back, never believed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.realtime.hurt_tables import consuming, hurt_tables, replicas, segment, table
from hypothesis import given, settings

from pinot_assets.realtime.model.state import LlcSegment, RealtimeState, SegmentStatus, TmpUpload
from pinot_assets.realtime.repair.apply import StepResult, verified
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
        (DONE, StepResult.DONE),
        (replace(DONE, url=""), StepResult.NOT_YET),
        (replace(DONE, status=SegmentStatus.COMMITTING, url=None), StepResult.NOT_YET),
        (replace(DONE, stored=False), StepResult.GONE),
    ],
)
def test_stored(kind: StepKind, after: LlcSegment, verdict: StepResult) -> None:
    assert verified(step(kind), table(after, consuming())) is verdict


@pytest.mark.parametrize(
    ("at", "verdict"),
    [
        ("ONLINE", StepResult.DONE),
        ("ONLINE>ERROR", StepResult.NOT_YET),
        ("ONLINE>OFFLINE", StepResult.NOT_YET),
        ("OFFLINE", StepResult.GONE),
    ],
)
@pytest.mark.parametrize("kind", [StepKind.RESET, StepKind.RESTART])
def test_loaded(kind: StepKind, at: str, verdict: StepResult) -> None:
    state = table(replace(DONE, replicas=replicas(a="ONLINE", b=at)), consuming())
    assert verified(step(kind, server="b"), state) is verdict
    assert verified(step(kind, server="c"), state) is StepResult.GONE


def test_consumed() -> None:
    validate = step(StepKind.VALIDATE, segments=(), partitions=(0,))
    assert verified(validate, table(DONE, consuming())) is StepResult.DONE
    assert verified(validate, table(DONE)) is StepResult.NOT_YET
    assert verified(validate, table(DONE, consuming(a="OFFLINE", b="OFFLINE"))) is StepResult.NOT_YET


def test_cleared() -> None:
    left = table(DONE, committing_listed=frozenset({NAME}), tmp_uploads=(TmpUpload("x.tmp.1", 1, 1),))
    unlist = step(StepKind.UNLIST, segments=(), names=(NAME,))
    deletion = step(StepKind.SWEEP, segments=(), names=("x.tmp.1",))
    assert verified(unlist, left) is verified(deletion, left) is StepResult.NOT_YET
    assert verified(unlist, table(DONE)) is verified(deletion, table(DONE)) is StepResult.DONE


def test_what_was_not_read_proves_nothing() -> None:
    blind = table(unread={"segments": "no answer", "tmp_uploads": "no answer"})
    assert verified(step(StepKind.UPLOAD), blind) is StepResult.UNKNOWN
    assert verified(step(StepKind.SWEEP, names=("x",)), blind) is StepResult.UNKNOWN
    unseen = table(DONE, unread={"external": "no answer"})
    assert verified(step(StepKind.RESET, server="a"), unseen) is StepResult.UNKNOWN


@settings(max_examples=120, deadline=None)
@given(hurt_tables())
def test_nothing_is_planned_that_is_already_so(state: RealtimeState) -> None:
    for one in (found := plan(state, RepairLimits())).steps + found.advice:
        assert verified(one, state) is StepResult.NOT_YET
