from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fakes.tables import APPEND, SWAP, SYNC, write_table

from pinot_assets.cli.first_query import FirstQuery
from pinot_assets.cli.table_status import TableCondition, status_lines, status_of, status_values
from pinot_assets.session.detect.observe import ListingComparison, Observation
from pinot_assets.session.values.hold import NO_HOLD, Hold
from pinot_assets.session.values.outdated import stored_recipe
from pinot_assets.session.values.state import (
    AuditReceipt,
    Mode,
    ObjectRef,
    Outcome,
    Owner,
    Pointer,
    PushKind,
    Session,
)
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.packs import PublishedPack
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Failure, Fingerprint, Output
from pinot_assets.snapshot.recipes import with_recipe
from pinot_assets.source import Unready

PUBLISHED = Snapshot(1, "t_OFFLINE", "cp1-aaaaaa", Mode.SYNC, "entry", None, "", "", 1_700_000_000_000, ())
NOBODY = Owner("run", "host", 7, 0)
OPEN = Session("cp2-bbbbbb", 2, Mode.SYNC, "f", 0, ObjectRef("k", "0"))
REFUSED = Session(
    "cp2-bbbbbb", 2, Mode.SYNC, "f", 0, ObjectRef("k", "0"), audit=AuditReceipt(1, "0", False, 0, "no")
)
NOW = 1_700_000_060_000
GAVE_UP = replace(
    OPEN,
    push=PushKind.PLAIN,
    failures=ObjectRef("k", "0"),
    outcome=Outcome.ABANDONED_RETRIES,
    last_error="no",
)
TORN = Failure("a", 0, 0, "UNREADABLE", "torn")
GONE = Failure("a", 0, 0, "VANISHED", "gone")


def state(
    folder: Path,
    *,
    session: Session | None = None,
    newest: Session | None = None,
    failures: tuple[Failure, ...] = (),
    holder: Owner | None = None,
    snapshot: Snapshot | None = PUBLISHED,
    hold: Hold | None = None,
    new: tuple[str, ...] = (),
    deleted: tuple[str, ...] = (),
    later: tuple[Unready, ...] = (),
    mode: dict[str, str] = SYNC,
) -> TableCondition:
    pointer = Pointer(hold=None if hold is None else ObjectRef("h", "0"))
    observation = Observation(pointer, session, failures, {}, holder, snapshot, hold or NO_HOLD)
    listing = ListingComparison(0, "", "", new, (), deleted, later)
    return status_of(write_table(folder, "t", {**mode}), observation, listing, None, newest, NOW).state


def test_a_table_that_is_what_its_files_are(tmp_path: Path) -> None:
    assert state(tmp_path) is TableCondition.UP_TO_DATE
    assert state(tmp_path, snapshot=None) is TableCondition.NOT_PUBLISHED


def test_files_that_wait(tmp_path: Path) -> None:
    assert state(tmp_path, new=("a",)) is TableCondition.WAITING
    assert state(tmp_path, new=("a",), snapshot=None) is TableCondition.NOT_PUBLISHED
    assert state(tmp_path, later=(Unready("a", "is young"),)) is TableCondition.WAITING


@pytest.mark.parametrize(
    ("mode", "is_state"), [(SYNC, TableCondition.WAITING), (APPEND, TableCondition.UP_TO_DATE)]
)
def test_an_appended_table_waits_for_no_removal(
    tmp_path: Path, mode: dict[str, str], is_state: TableCondition
) -> None:
    assert state(tmp_path, deleted=("a",), mode=mode) is is_state


def test_what_a_rollback_holds_goes_before_what_waits(tmp_path: Path) -> None:
    assert state(tmp_path, hold=Hold({"a": "t"}, ()), new=("b",)) is TableCondition.HELD


def test_a_swap_table_is_held_as_a_whole_by_an_empty_hold(tmp_path: Path) -> None:
    assert state(tmp_path, hold=NO_HOLD, mode=SWAP) is TableCondition.HELD


def test_an_open_session(tmp_path: Path) -> None:
    assert state(tmp_path, session=OPEN) is TableCondition.UNFINISHED
    assert state(tmp_path, session=OPEN, holder=NOBODY) is TableCondition.RUNNING
    assert state(tmp_path, session=OPEN, failures=(TORN,)) is TableCondition.FAILED
    assert state(tmp_path, session=REFUSED) is TableCondition.FAILED
    assert state(tmp_path, session=OPEN, failures=(GONE,)) is TableCondition.TRIED_AGAIN


def test_trouble_that_lasts_and_a_session_that_was_given_up_have_failed_as_in_dagster(tmp_path: Path) -> None:
    since_ms = NOW - 2 * 3_600_000
    lasting = replace(OPEN, trouble_since_ms=since_ms)
    assert state(tmp_path, session=lasting, failures=(GONE,)) is TableCondition.FAILED
    assert state(tmp_path, newest=GAVE_UP) is TableCondition.FAILED


def test_files_of_an_older_table_spec_are_shown_with_what_to_do(tmp_path: Path) -> None:
    recipes, revision = with_recipe((), stored_recipe(write_table(tmp_path, "t", APPEND)))
    files = tuple(
        PublishedFile(name, Fingerprint(1, 1), "h", 1, 0, "cp1", (output,), revision=revision)
        for name in ("a", "b")
        for output in (Output(name, 1, 1, "", 1, "", ""),)
    )
    snapshot = replace(PUBLISHED, files=files, recipes=recipes)
    spec = write_table(tmp_path, "t", {**APPEND, "recordReader.prop.delimiter": ";"})
    observation = Observation(Pointer(), None, (), {}, None, snapshot, NO_HOLD)
    listing = ListingComparison(1, "", "", (), (), ("a",))
    found = status_of(spec, observation, listing, None, None, NOW)
    assert found.state is TableCondition.OUTDATED
    rows = FirstQuery("SELECT 1", "pinot-assets query t", "http://console")
    shown = [*status_lines(found, rows, NOW)]
    waits, gone = [text for label, text in shown if label == "spec"]
    assert waits.startswith("1 of 2 segments were built under revision 1 (now 2): rows changed by")
    assert gone.endswith("the source lacks a")
    assert ("", "pinot-assets rebuild t") in shown
    values = status_values(found, rows)["tableSpec"]
    assert (values["outdated"]["files"], values["sourceGone"]["files"]) == (1, 1)


def test_rows_put_aside_are_counted(tmp_path: Path) -> None:
    file = PublishedFile("a", Fingerprint(1, 1), "h", 5, 2, "cp1", ())
    observation = Observation(Pointer(), None, (), {}, None, replace(PUBLISHED, files=(file,)), NO_HOLD)
    listing = ListingComparison(1, "", "", (), (), ())
    found = status_of(write_table(tmp_path, "t", SYNC), observation, listing, None, None, NOW)
    rows = FirstQuery("SELECT 1", "pinot-assets query t", "http://console")
    text = "2 bad rows put aside; `pinot-assets where t FILE` counts those of a file"
    assert ("", text) in [*status_lines(found, rows, NOW)]
    assert status_values(found, rows)["published"]["badRows"] == 2


def test_packs_are_counted_with_their_cells(tmp_path: Path) -> None:
    spec = write_table(tmp_path, "t", {**SYNC, "layout.pack": "true", "layout.targetSegmentSize": "1MB"})
    packs = tuple(
        PublishedPack("cp1-aaaaaa", n, "0" * 64, 2, 5, (Output(f"s{n}", 1, 5, "", size, "", ""),), cell=cell)
        for n, (size, cell) in enumerate([(2 << 20, "YEAR 2025"), (9, "YEAR 2026"), (9, "YEAR 2026")])
    )
    names = tuple(pack.name for pack in packs)
    files = tuple(
        PublishedFile(uri, Fingerprint(1, 1), "", 5, 0, "cp1-aaaaaa", (), packs=of)
        for uri, of in (("a", names[:2]), ("b", names[1:]), ("c", ()))
    )
    observation = Observation(
        Pointer(), None, (), {}, None, replace(PUBLISHED, files=files, packs=packs), NO_HOLD
    )
    status = status_of(spec, observation, ListingComparison(3, "", "", (), (), (), ()), None, None, NOW)
    rows = FirstQuery("", "", "")
    assert dict(status_lines(status, rows, NOW))["packs"] == (
        "3 packs of 2 files, in 2 cells; 2 are below three quarters of targetSegmentSize"
    )
    published = status_values(status, rows)["published"]
    assert (published["packs"], published["openPacks"]) == (3, 2)
