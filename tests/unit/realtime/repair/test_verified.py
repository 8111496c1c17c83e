"""A step's effect is read back, never believed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.realtime.hurt_tables import consuming, hurt_tables, replicas, segment, table
from hypothesis import given, settings

from pinot_assets.realtime.model.state import RealtimeState, Segment, Status, TmpUpload
from pinot_assets.realtime.repair.model import Kind, Limits, Means, Step
from pinot_assets.realtime.repair.plan import plan
from pinot_assets.realtime.repair.verified import Verdict, verified

BOTH = replicas(a="ONLINE", b="ONLINE")
DONE = segment(Status.DONE, BOTH, "s3://d/t/0")
NAME = DONE.name


def step(kind: Kind, **differs: object) -> Step:
    made = Step(kind, Means.CONTROLLER, "", (NAME,))
    return replace(made, **differs)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Kind.UPLOAD, Kind.FINISH, Kind.REINGEST])
@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        (DONE, Verdict.DONE),
        (replace(DONE, url=""), Verdict.NOT_YET),
        (replace(DONE, status=Status.COMMITTING, url=None), Verdict.NOT_YET),
        (replace(DONE, stored=False), Verdict.GONE),
    ],
)
def test_stored(kind: Kind, after: Segment, verdict: Verdict) -> None:
    assert verified(step(kind), table(after, consuming())) is verdict


@pytest.mark.parametrize(
    ("at", "verdict"),
    [
        ("ONLINE", Verdict.DONE),
        ("ONLINE>ERROR", Verdict.NOT_YET),
        ("ONLINE>OFFLINE", Verdict.NOT_YET),
        ("OFFLINE", Verdict.GONE),
    ],
)
@pytest.mark.parametrize("kind", [Kind.RESET, Kind.RESTART])
def test_loaded(kind: Kind, at: str, verdict: Verdict) -> None:
    state = table(replace(DONE, replicas=replicas(a="ONLINE", b=at)), consuming())
    assert verified(step(kind, server="b"), state) is verdict
    assert verified(step(kind, server="c"), state) is Verdict.GONE


def test_consumed() -> None:
    validate = step(Kind.VALIDATE, segments=(), partitions=(0,))
    assert verified(validate, table(DONE, consuming())) is Verdict.DONE
    assert verified(validate, table(DONE)) is Verdict.NOT_YET
    assert verified(validate, table(DONE, consuming(a="OFFLINE", b="OFFLINE"))) is Verdict.NOT_YET


def test_cleared() -> None:
    left = table(DONE, committing_listed=frozenset({NAME}), tmp_uploads=(TmpUpload("x.tmp.1", 1, 1),))
    unlist = step(Kind.UNLIST, segments=(), names=(NAME,))
    sweep = step(Kind.SWEEP, segments=(), names=("x.tmp.1",))
    assert verified(unlist, left) is verified(sweep, left) is Verdict.NOT_YET
    assert verified(unlist, table(DONE)) is verified(sweep, table(DONE)) is Verdict.DONE


def test_what_was_not_read_proves_nothing() -> None:
    blind = table(unread={"segments": "no answer", "tmp_uploads": "no answer"})
    assert verified(step(Kind.UPLOAD), blind) is Verdict.UNKNOWN
    assert verified(step(Kind.SWEEP, names=("x",)), blind) is Verdict.UNKNOWN
    unseen = table(DONE, unread={"external": "no answer"})
    assert verified(step(Kind.RESET, server="a"), unseen) is Verdict.UNKNOWN


@settings(max_examples=120, deadline=None)
@given(hurt_tables())
def test_nothing_is_planned_that_is_already_so(state: RealtimeState) -> None:
    for one in (found := plan(state, Limits())).steps + found.advice:
        assert verified(one, state) is Verdict.NOT_YET
