"""The status of a table, from values: the worst of what holds, with what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pinot_assets.core.check_result import Severity
from pinot_assets.session.detect.table_status import (
    NEEDS_PERSON,
    SourceChanges,
    StatusFacts,
    StatusReport,
    TableCondition,
    table_status,
    unknown_status,
)
from pinot_assets.session.values.outdated import OlderFiles, Outdated, RebuildNeed
from pinot_assets.session.values.state import AuditReceipt, Mode, ObjectRef, Outcome, Owner, Session, State
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Failure, Fingerprint, Output

HOUR = 3_600_000
NOW = 1_800_000_000_000
SESSION = Session("cp2-bbbbbb", 2, Mode.SYNC, "f", NOW - HOUR, ObjectRef("k", "0"), State.IN_PROGRESS)
SNAPSHOT = Snapshot(1, "t", "cp1-aaaaaa", "SYNC", "e", None, "", "", NOW - 3 * HOUR, ())
FINE = StatusFacts("t", SNAPSHOT)
BAD = Failure("s3://b/F1.csv", 0, 1, "UNREADABLE", "it is no text")
GONE = replace(BAD, code="VANISHED", reason="it has gone")
OLD = PublishedFile("s3://b/F2.csv", Fingerprint(1, 1), "h", 1, 0, "cp1", (Output("s", 1, 1, "", 1, "", ""),))
OLDER = Outdated(2, 5, (OlderFiles(1, (), True, (OLD,)),))
NEED = RebuildNeed(OLDER, Outdated())
SHUT = AuditReceipt(1, "0", False, NOW, "rows_as_read: 9 of 10 rows")
SERVERS = replace(SHUT, waits=True)
HOLDER = Owner("run", "host", 7, NOW)
CHANGED = SourceChanges(new=2, rewritten=1, since_ms=NOW - 2 * HOUR)


def status(facts: StatusFacts) -> StatusReport:
    return table_status(facts, NOW)


@pytest.mark.parametrize(
    ("facts", "standing"),
    [
        (FINE, TableCondition.UP_TO_DATE),
        (replace(FINE, snapshot=None), TableCondition.NOT_PUBLISHED),
        (replace(FINE, changes=CHANGED), TableCondition.WAITING),
        (replace(FINE, is_held=True), TableCondition.HELD),
        (replace(FINE, need=NEED), TableCondition.OUTDATED),
        (replace(FINE, need=NEED, changes=CHANGED), TableCondition.WAITING),
        (replace(FINE, session=SESSION, failures=(BAD,)), TableCondition.FAILED),
        (replace(FINE, session=replace(SESSION, audit=SHUT)), TableCondition.FAILED),
        (replace(FINE, session=replace(SESSION, trouble_since_ms=NOW - HOUR)), TableCondition.FAILED),
        (replace(FINE, gave_up=replace(SESSION, outcome=Outcome.ABANDONED_RETRIES)), TableCondition.FAILED),
        (
            replace(FINE, session=replace(SESSION, trouble_since_ms=NOW - HOUR // 2)),
            TableCondition.TRIED_AGAIN,
        ),
        (replace(FINE, session=SESSION, failures=(GONE,)), TableCondition.TRIED_AGAIN),
        (replace(FINE, session=replace(SESSION, audit=SERVERS)), TableCondition.TRIED_AGAIN),
        (replace(FINE, session=SESSION), TableCondition.UNFINISHED),
        (replace(FINE, session=SESSION, holder=HOLDER), TableCondition.UP_TO_DATE),
        # Of several, the worst.
        (
            replace(FINE, session=SESSION, failures=(BAD,), is_held=True, changes=CHANGED),
            TableCondition.FAILED,
        ),
        (replace(FINE, is_held=True, changes=CHANGED), TableCondition.HELD),
        (replace(FINE, snapshot=None, session=SESSION, failures=(BAD,)), TableCondition.FAILED),
        (replace(FINE, snapshot=None, changes=CHANGED), TableCondition.NOT_PUBLISHED),
    ],
)
def test_the_standing_follows_from_the_facts(facts: StatusFacts, standing: TableCondition) -> None:
    found = status(facts)
    assert found.state is standing
    assert found.check_result().passed is (standing is TableCondition.UP_TO_DATE)
    assert found.severity is (Severity.ERROR if standing in NEEDS_PERSON else Severity.WARN)


def test_a_failed_file_is_named_with_its_reason_and_what_queries_still_see() -> None:
    found = status(replace(FINE, session=replace(SESSION, counts={"files": 5}), failures=(BAD,)))
    assert "1 of 5 files could not be built, first F1.csv (UNREADABLE: it is no text)" in found.what
    assert "queries see cp1-aaaaaa" in found.served
    assert (found.command, found.runbook) == ("pinot-assets run t", "pinotassetssessionfailed")


def test_a_shut_gate_says_what_it_found_and_where_to_look() -> None:
    found = status(replace(FINE, session=replace(SESSION, audit=SHUT)))
    assert "the gate is shut" in found.what
    assert SHUT.summary in found.what
    assert (found.command, found.runbook) == ("pinot-assets session show t", "pinotassetsgateshut")


def test_a_held_table_names_the_way_out() -> None:
    found = status(replace(FINE, is_held=True, held=2))
    assert "keeps 2 files of the source out" in found.what
    assert found.command == "pinot-assets resume t"


def test_a_table_behind_says_since_when_and_by_what() -> None:
    found = status(replace(FINE, changes=CHANGED))
    assert "2 new, 1 rewritten" in found.what
    assert found == table_status(replace(FINE, changes=CHANGED), NOW + HOUR), "stored, it stays true"
    assert found.since_ms == CHANGED.since_ms


@pytest.mark.parametrize(
    ("files", "words"),
    [(0, "the source waits"), (1, "1 file of the source waits"), (2, "2 files of the source wait")],
)
def test_a_table_that_was_never_published_says_what_waits(files: int, words: str) -> None:
    found = status(replace(FINE, snapshot=None, changes=SourceChanges(new=files)))
    assert f"t was never published: {words} for a first run" in found.what
    assert found.served == "queries see nothing"
    assert found.command == "pinot-assets run t"


def test_outdated_files_name_the_rebuild_and_those_without_a_source_come_first() -> None:
    found = status(replace(FINE, need=NEED))
    assert found.what.startswith("t: 1 of 5 segments were built under revision 1 (now 2)")
    assert (found.command, found.runbook) == (
        "pinot-assets rebuild t",
        "segments-that-an-older-table-spec-built",
    )
    gone = status(replace(FINE, need=RebuildNeed(OLDER, OLDER)))
    assert gone.what.endswith("cannot be built again, because the source lacks F2.csv")
    assert status(replace(FINE, need=NEED, holder=HOLDER)).command == ""


def test_nothing_is_to_be_done_while_a_run_works() -> None:
    for facts in (replace(FINE, snapshot=None), replace(FINE, changes=CHANGED)):
        found = status(replace(facts, holder=HOLDER))
        assert "has begun, by run on host" in found.what
        assert (found.do, found.command) == ("", "")


def test_the_check_has_the_command_on_a_line_of_its_own() -> None:
    result = status(replace(FINE, is_held=True)).check_result()
    assert result.description.splitlines()[-1] == "`pinot-assets resume t`"


def test_what_cannot_be_read_is_not_known() -> None:
    result = unknown_status("t", "ZooKeeper does not answer", "is it up?").check_result()
    assert (result.passed, result.known, result.severity) == (False, False, Severity.WARN)
    assert "ZooKeeper does not answer" in result.message
