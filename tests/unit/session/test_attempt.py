"""What a trigger leaves of a gate that was open, from values alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pinot_assets.session import attempt
from pinot_assets.session.attempt import Opened, go_on
from pinot_assets.session.model import AuditReceipt, Mode, ObjectRef, Session, State
from pinot_assets.session.plan import Changes, Next, Plan
from pinot_assets.spec.audit_block import Assertion, Audit

SWITCH = ObjectRef("switch-1", "abc")
AUDITED = Session(
    id="cp1-000000",
    seq=1,
    mode=Mode.SYNC,
    config_fingerprint="f",
    created_ms=0,
    plan=ObjectRef("plan", "p"),
    state=State.SWITCH,
    switch=1,
    switch_object=SWITCH,
    audit=AuditReceipt(1, SWITCH.sha256, passed=True, at_ms=0, summary=""),
)
NOTHING = Changes((), (), (), {}, {}, "d")
ASSERTION = Assertion(sql="SELECT COUNT(*) FROM t", expect="> 0")


def gone_on(monkeypatch: pytest.MonkeyPatch, *assertions: Assertion) -> Session:
    monkeypatch.setattr(attempt, "_spent", lambda *_: frozenset())
    monkeypatch.setattr(attempt, "refuse_too_many", lambda *_: None)
    run: Any = SimpleNamespace(
        spec=SimpleNamespace(audit=Audit(assertions), name="t"),
        edges=SimpleNamespace(staging=SimpleNamespace(put_plan=lambda _: ObjectRef("q", "q")), now_ms=int),
        lease=SimpleNamespace(write=lambda session: None),
        note=lambda _: None,
    )
    plan = Plan(AUDITED.id, 0, Mode.SYNC, (), (), {}, "d")
    begun = go_on(run, Opened(AUDITED, plan, {}, (), 0, Next.CONTINUE), NOTHING, None)
    assert begun is not None
    return begun[0]


def test_a_gate_that_was_open_stays_open_where_nothing_is_asserted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert AUDITED.gate_open
    assert gone_on(monkeypatch).gate_open


def test_assertions_are_asked_after_each_trigger(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may be others than those that the gate was opened by, or be asked for the first time."""
    assert not gone_on(monkeypatch, ASSERTION).gate_open
