"""What a trigger leaves of a gate that was open, from values alone."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pinot_assets.session import begin_and_build
from pinot_assets.session.begin_and_build import go_on
from pinot_assets.session.decide.retries import Next, Opened
from pinot_assets.session.values.plan import Plan
from pinot_assets.session.values.state import AuditReceipt, Mode, ObjectRef, Session, State
from pinot_assets.table_spec.blocks.audit import Assertion, Audit

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
    audit=AuditReceipt(1, SWITCH.sha256, passed=True, at_ms=0, summary="", policy=Audit().digest),
)
ASSERTION = Assertion(sql="SELECT COUNT(*) FROM t", expect="> 0")
OTHER = Assertion(sql="SELECT COUNT(*) FROM t", expect="> 1")
WARNING = Assertion(sql="SELECT COUNT(*) FROM t", expect="> 0", severity="warn")
NOTHING_ASKED = Audit()


def gone_on(
    monkeypatch: pytest.MonkeyPatch, asked: Audit = NOTHING_ASKED, passed: Audit = NOTHING_ASKED
) -> Session:
    """The session after a trigger.

    :param asked: by the table spec as it is now.
    :param passed: what the audit asked for that opened the gate.
    """
    assert AUDITED.audit is not None
    audited = replace(AUDITED, audit=replace(AUDITED.audit, policy=passed.digest))
    assert audited.gate_open
    monkeypatch.setattr(begin_and_build, "_spent", lambda *_: frozenset())
    monkeypatch.setattr(begin_and_build, "refuse_too_many", lambda *_: None)
    run: Any = SimpleNamespace(
        spec=SimpleNamespace(audit=asked),
        table="t",
        asked_by="ann@host",
        staging=SimpleNamespace(put_plan=lambda _: ObjectRef("q", "q")),
        clients=SimpleNamespace(now_ms=int),
        write_session=lambda session: session,
        note=lambda _: None,
    )
    plan = Plan(AUDITED.id, 0, Mode.SYNC, (), (), {}, "d")
    opened = Opened(plan, {}, (), 0, Next.CONTINUE, 0)
    session, _ = go_on(run, audited, opened, replace(plan, attempt=1), {}, None)
    return session


@pytest.mark.parametrize("asked", [NOTHING_ASKED, Audit((ASSERTION,)), Audit(replicas="one")])
def test_a_gate_that_was_open_stays_open_where_the_same_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, asked: Audit
) -> None:
    assert gone_on(monkeypatch, asked, passed=asked).gate_open


@pytest.mark.parametrize(
    ("passed", "asked"),
    [
        (NOTHING_ASKED, Audit((ASSERTION,))),
        (Audit((ASSERTION,)), Audit((OTHER,))),
        (Audit(replicas="one"), NOTHING_ASKED),
        (Audit((WARNING,)), Audit((ASSERTION,))),
    ],
)
def test_a_gate_that_something_else_opened_is_shut(
    monkeypatch: pytest.MonkeyPatch, passed: Audit, asked: Audit
) -> None:
    """What is asked for now may be stricter: that all replicas are there, say."""
    assert not gone_on(monkeypatch, asked, passed).gate_open


def test_a_receipt_that_says_not_what_it_was_for_opens_nothing() -> None:
    assert AUDITED.audit is not None
    older = replace(AUDITED, audit=replace(AUDITED.audit, policy=""))
    assert older.gate_open
    assert not older.gate_open_by(NOTHING_ASKED.digest)
