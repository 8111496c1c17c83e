"""What Dagster shows, from values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import dagster as dg
import pytest

from pinot_assets.assets.metadata import (
    SHOWN,
    cell,
    of_files,
    of_findings,
    of_report,
    of_session,
    of_snapshot,
    served,
)
from pinot_assets.audit.checks import Finding
from pinot_assets.core.json_object import JsonObject
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.session.values.state import HoldEnd, Mode, ObjectRef, Outcome, Session, State
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Failure, Output, Receipt
from pinot_assets.source import Fingerprint

VERSION = Fingerprint(10, 20)
SESSION = Session(
    "cp3-abcdef", 3, Mode.SYNC, "f", 0, ObjectRef("k", "0"), State.SWITCH, retry_count=1, attempt=2
)


def receipt(name: str, *outputs: Output, rows: int = 7) -> Receipt:
    return Receipt(f"file:///in/{name}", 0, 2, VERSION, "00", rows, 1, outputs, seconds=0.12345, worker="h/1")


def output(name: str, size: int) -> Output:
    return Output(name, 4_000_000_000, 5, f"file:///s/{name}.tar.gz", size, "00", "m")


def plain(metadata: Any) -> JsonObject:
    """As Dagster stores it; refuses what Dagster refuses."""
    event = dg.AssetMaterialization("a", metadata=metadata)
    return {key: value.value for key, value in event.metadata.items()}


def published(name: str, *outputs: Output, rows: int = 7) -> PublishedFile:
    return PublishedFile.from_receipt(receipt(name, *outputs, rows=rows), "cp3-abcdef")


def test_of_a_partition_of_one_file() -> None:
    shown = plain(of_files([published("a.csv", output("s0", 100), output("s1", 50))]))
    assert shown == {
        "file": "file:///in/a.csv",
        "version": VERSION.token,
        "rows": 7,
        "bad_rows": 1,
        "segments": "s0, s1",
        "crc": "4000000000, 4000000000",
        "bytes": 150,
        "seconds": 0.123,
    }


def test_of_a_file_without_rows() -> None:
    shown = plain(of_files([published("empty.csv", rows=0)]))
    assert (shown["rows"], shown["segments"], shown["bytes"]) == (0, "", 0)


def test_of_a_group_of_files() -> None:
    files = [published(f"{n}.csv", output(f"s{n}", 100)) for n in range(SHOWN + 5)]
    shown = plain(of_files(files))
    assert (shown["files"], shown["rows"], shown["bytes"]) == (SHOWN + 5, 7 * (SHOWN + 5), 100 * (SHOWN + 5))
    assert shown["segments"].endswith(f"s{SHOWN - 1} and 5 more")
    assert "file" not in shown


def test_of_a_report() -> None:
    report = TriggerReport(
        TriggerResult.STAGED,
        SESSION,
        listed=9,
        new=("a", "b"),
        rewritten=("c",),
        built=(receipt("a", output("s0", 100)), receipt("b", output("s1", 50))),
        kept=1,
        build_seconds=0.5,
        notes=("swept a stray",),
    )
    shown = plain(of_report(report))
    numbers = {key: value for key, value in shown.items() if isinstance(value, int)}
    assert numbers == {
        "files_listed": 9,
        "files_new": 2,
        "files_rewritten": 1,
        "files_deleted": 0,
        "files_built": 2,
        "files_kept": 1,
        "files_failed": 0,
        "rows_built": 14,
        "rows_per_s": 32,
        "bad_rows": 2,
        "small_files": 2,
        "bytes_built": 150,
        "attempt": 2,
        "retry_count": 1,
    }
    assert shown["build_seconds"] == 0.5
    assert (shown["session"], shown["state"]) == ("cp3-abcdef", "SWITCH")
    assert (shown["outcome"], shown["session_files"]) == ("open", "0 files")
    assert shown["notes"] == "- swept a stray"
    assert "failed_files" not in shown


def test_of_a_report_without_session() -> None:
    shown = plain(of_report(TriggerReport(TriggerResult.NOTHING, None, listed=2)))
    assert shown["summary"] == "nothing to do: 2 files listed, all published"
    assert "session" not in shown
    assert "rows_per_s" not in shown


def test_failed_files_are_a_table_whatever_their_reasons_hold() -> None:
    failures = tuple(
        Failure(f"file:///in/{n}", n, 0, "UNREADABLE", "line 1: a|b\nis no number") for n in range(SHOWN + 2)
    )
    shown = plain(of_report(TriggerReport(TriggerResult.FAILED, SESSION, listed=30, failed=failures)))
    lines = shown["failed_files"].splitlines()
    assert lines[0] == "| file | code | reason |"
    assert lines[2] == r"| file:///in/0 | UNREADABLE | line 1: a\|b is no number |"
    assert len([line for line in lines if "UNREADABLE" in line]) == SHOWN
    assert lines[-1] == "and 2 more"


def test_of_findings() -> None:
    shown = plain(of_findings([Finding("files_built", False, 5, 3, "3 of 5 files are built")]))
    assert shown == {
        "files_built_expected": 5,
        "files_built_found": 3,
        "files_built": "3 of 5 files are built",
    }


def test_of_an_assertion_the_numbers_are_of_answers() -> None:
    """`found: 0` beside `= 0` would read as if it held."""
    sql = "sql: SELECT COUNT(*) FROM t (= 0)"
    shown = plain(of_findings([Finding(sql, False, 2, 0, "COUNT(*) is 1")]))
    assert shown == {f"{sql}_answers": 2, f"{sql}_answers_as_expected": 0, sql: "COUNT(*) is 1"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("SELECT COUNT(*) FROM a_b", r"SELECT COUNT(\*) FROM a\_b"),
        ("a|b  <c>\n[d](e)", r"a\|b \<c> \[d\](e)"),
        ("`a_b|c*` until `resume`", r"`a_b\|c*` until `resume`"),
    ],
)
def test_markdown_reads_nothing_of_a_cell_as_its_own(text: str, shown: str) -> None:
    assert cell(text) == shown


def test_of_a_snapshot() -> None:
    file = PublishedFile("u", VERSION, "00", 7, 0, "cp3", (output("s0", 100), output("s1", 50)))
    snapshot = Snapshot(
        3, "t_OFFLINE", "cp3-abcdef", Mode.SYNC, "entry", None, "", "", 1_700_000_000_500, (file,)
    )
    shown = plain(
        of_snapshot(snapshot, SESSION, "file:///stage/snapshots/3%20x.json", 1_700_000_072_000, None)
    )
    assert shown == {
        "session": "cp3-abcdef",
        "mode": "SYNC",
        "lineage_entry": "entry",
        "files": 1,
        "segments": 2,
        "rows": 7,
        "bytes": 150,
        "published_at": 1_700_000_000.5,
        "manifest": "/stage/snapshots/3 x.json",
        "rollback_until": 1_700_000_072.0,
        "state": "SWITCH",
        "outcome": "open",
        "attempt": 2,
        "retry_count": 1,
        "session_files": "0 files",
        "session_begun": 0.0,
    }
    shown = plain(of_snapshot(snapshot, None, "s3://b/k.json", None, None))
    assert (shown["manifest"], shown["rollback_until"]) == ("s3://b/k.json", "no way back")
    assert "retry_count" not in shown
    assert served(snapshot) == "queries see cp3-abcdef, published 2023-11-14 22:13:20 UTC: 1 file, 7 rows"
    assert served(None) == "nothing is published yet"


@pytest.mark.parametrize(("seq", "is_shown"), [(3, True), (2, True), (1, False)])
def test_a_snapshot_says_who_asked_for_it_and_who_ended_the_hold_before_it(seq: int, is_shown: bool) -> None:
    parent = SnapshotRef("snapshots/0000000002-ab.json", "ab")
    snapshot = Snapshot(
        3, "t_OFFLINE", "cp3-abcdef", Mode.SYNC, "e", parent, "", "", 0, (), asked_by="ann@host"
    )
    shown = plain(of_snapshot(snapshot, None, "s3://b/k.json", None, HoldEnd(seq, 1, "bob@host")))
    assert shown["asked_by"] == "ann@host"
    assert ("by bob@host" in str(shown.get("hold_ended"))) is is_shown


def test_a_session_tells_its_switch_and_its_last_error() -> None:
    session = replace(
        SESSION,
        outcome=Outcome.ABANDONED_RETRIES,
        counts={"files": 3, "done": 2, "failed": 1, "gone": 0},
        switch=4,
        lineage_entry_id="entry",
        last_error="1 files failed",
    )
    shown = plain(of_session(session))
    assert (shown["outcome"], shown["session_files"]) == ("ABANDONED_RETRIES", "3 files: 2 done, 1 failed")
    assert (shown["switch"], shown["lineage_entry"]) == (4, "entry")
    assert shown["last_error"] == "1 files failed"
