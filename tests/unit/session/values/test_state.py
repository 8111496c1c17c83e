from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.core.stored_format import NEWEST
from pinot_assets.ingest.contract.build_spec import segment_name
from pinot_assets.session.values.state import (
    AuditReceipt,
    Checked,
    HoldEnd,
    Mode,
    ObjectRef,
    Outcome,
    Owner,
    Pointer,
    Session,
    State,
    ended,
    is_ours,
    new_session_id,
    pointer_from_bytes,
    pointer_to_bytes,
    published_audit,
    seq_of,
    session_from_bytes,
    session_to_bytes,
)
from pinot_assets.snapshot.manifest import SnapshotRef

TEXTS = st.text(max_size=30)
COUNTS = st.integers(0, 2**60)
REFS = st.builds(ObjectRef, key=TEXTS, sha256=TEXTS)
SNAPSHOTS = st.builds(SnapshotRef, key=TEXTS, sha256=TEXTS)
SESSIONS = st.builds(
    Session,
    id=TEXTS,
    seq=COUNTS,
    mode=st.sampled_from(Mode),
    config_fingerprint=TEXTS,
    created_ms=COUNTS,
    plan=REFS,
    state=st.sampled_from(State),
    outcome=st.sampled_from(Outcome),
    retry_count=COUNTS,
    attempt=COUNTS,
    attempt_started_ms=COUNTS,
    failures=st.none() | REFS,
    trouble_since_ms=COUNTS,
    format=st.just(2),
    switch=COUNTS,
    switch_object=st.none() | REFS,
    switch_attempt=COUNTS,
    switch_ms=COUNTS,
    lineage_entry_id=TEXTS,
    end_issued=TEXTS,
    audit=st.none()
    | st.builds(
        AuditReceipt,
        switch=COUNTS,
        switch_sha256=TEXTS,
        passed=st.booleans(),
        at_ms=COUNTS,
        summary=TEXTS,
        checks=st.lists(st.builds(Checked, TEXTS, st.booleans(), COUNTS, COUNTS), max_size=3).map(tuple),
    ),
    stalls=COUNTS,
    target=st.none() | SNAPSHOTS,
    done_ms=COUNTS,
    last_error=TEXTS,
    counts=st.dictionaries(TEXTS, COUNTS, max_size=3),
)
POINTERS = st.builds(
    Pointer,
    active_session=TEXTS,
    epoch=COUNTS,
    owner=st.none() | st.builds(Owner, run=TEXTS, host=TEXTS, pid=COUNTS, since_ms=COUNTS),
    next_seq=COUNTS,
    history=st.lists(TEXTS, max_size=3).map(tuple),
    current_snapshot=st.none() | SNAPSHOTS,
    clear_token=TEXTS,
    hold=st.none() | REFS,
    hold_ended=st.none() | st.builds(HoldEnd, seq=COUNTS, at_ms=COUNTS, asked_by=TEXTS),
    format=st.just(NEWEST),
)


def a_session() -> Session:
    return Session("cp1-00000a", 1, Mode.SYNC, "fp", 5, ObjectRef("plan", "ab"))


@settings(deadline=None)
@given(SESSIONS)
def test_a_session_survives_its_znrecord(session: Session) -> None:
    data = session_to_bytes(session)
    assert session_from_bytes(data) == session
    record = json.loads(data)
    assert set(record) == {"id", "simpleFields", "mapFields", "listFields"}
    assert all(isinstance(value, str) for value in record["simpleFields"].values())


@settings(deadline=None)
@given(POINTERS)
def test_a_pointer_survives_its_znrecord(pointer: Pointer) -> None:
    assert pointer_from_bytes(pointer_to_bytes(pointer)) == pointer


def test_who_ended_a_hold_is_not_stored_in_format_1() -> None:
    pointer = Pointer(hold_ended=HoldEnd(3, 5, "ann@host"))
    assert pointer_from_bytes(pointer_to_bytes(pointer)) == Pointer()
    assert "holdEnded" not in json.loads(pointer_to_bytes(Pointer(format=NEWEST)))["simpleFields"]


def test_state_and_retry_count_stand_where_seed_000_wants_them() -> None:
    record = json.loads(session_to_bytes(replace(a_session(), state=State.IN_PROGRESS, retry_count=2)))
    assert record["id"] == "cp1"
    assert (record["simpleFields"]["state"], record["simpleFields"]["retryCount"]) == ("IN_PROGRESS", "2")
    assert {s.value for s in State} == {"INIT", "IN_PROGRESS", "SWITCH", "DONE"}


@pytest.mark.parametrize(
    "data", [b"", b"null", b"[]", b"{}", b'{"simpleFields": {}}', b'{"simpleFields": []}', b"\xff"]
)
def test_other_bytes_are_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        pointer_from_bytes(data)
    with pytest.raises(ValueError, match=r".*"):
        session_from_bytes(data)


def test_our_names_are_known_and_others_are_not() -> None:
    identity = new_session_id(17)
    name = segment_name("flights", identity, 2, 31, 0)
    assert is_ours("flights", name)
    assert seq_of(name) == 17
    assert not is_ours("flight", name)
    assert not is_ours("s", name)
    for other in (
        "flights_2013",
        "flights__cp17_2_31_0",
        "merged__cp1-00000g_0_0_0",
        f"{name}_x",
        f"{name}\n",
    ):
        assert seq_of(other) is None
        assert not is_ours("flights", other)


def test_a_table_whose_name_looks_like_ours_is_told_apart() -> None:
    table = "t__cp1-00000a_0_0_0"
    name = segment_name(table, "cp2-00000b", 0, 0, 0)
    assert is_ours(table, name)
    assert not is_ours("t", name)
    assert seq_of(name) == 2


def test_r17_session_ids_of_one_number_differ() -> None:
    """R17: a re-created table must not meet old names."""
    assert len({new_session_id(1) for _ in range(50)}) > 45


def test_r08_the_gate_opens_for_exactly_the_audited_switch() -> None:
    passed = AuditReceipt(2, "sha2", True, 5, "")
    session = replace(a_session(), switch=2, switch_object=ObjectRef("k", "sha2"), audit=passed)
    assert session.gate_open
    for shut in (
        replace(session, audit=None),
        replace(session, audit=replace(passed, passed=False)),
        replace(session, switch=3),
        replace(session, switch_object=ObjectRef("k", "sha3")),
        replace(session, switch_object=None),
    ):
        assert not shut.gate_open


def test_a_receipt_of_a_release_that_kept_no_checks_is_read() -> None:
    old = {"switch": 1, "switch_sha256": "00", "passed": True, "at_ms": 5, "summary": "well"}
    assert published_audit(old) == AuditReceipt(1, "00", True, 5, "well")


@pytest.mark.parametrize("outcome", list(Outcome))
def test_only_published_and_noop_are_done(outcome: Outcome) -> None:
    closed = ended(replace(a_session(), state=State.SWITCH), outcome, 9)
    done = outcome in (Outcome.PUBLISHED, Outcome.NOOP)
    assert closed.state is (State.DONE if done else State.SWITCH)
    assert (closed.outcome, closed.done_ms) == (outcome, 9)


def test_since_when_there_is_trouble_is_not_written_in_format_1() -> None:
    troubled = Session("cp1-aaaaaa", 1, Mode.SYNC, "f", 0, ObjectRef("k", "0"), trouble_since_ms=7)
    assert "troubleSinceMs" not in json.loads(session_to_bytes(troubled))["simpleFields"]
    newer = replace(troubled, format=2)
    assert json.loads(session_to_bytes(newer))["simpleFields"]["troubleSinceMs"] == "7"
    assert session_from_bytes(session_to_bytes(newer)).trouble_since_ms == 7
