"""The size of the lineage node is known before Pinot is asked to write it."""

from __future__ import annotations

import json

import pytest
from fakes.project import ROOT

from pinot_assets.errors import PushRefused
from pinot_assets.ingest.contract.build_spec import segment_name
from pinot_assets.pinot import Lineage, LineageEntry, LineageState
from pinot_assets.session.checks.capacity import (
    LINEAGE_BYTES,
    require_lineage_capacity,
    require_plan_fits,
    znode_bytes,
)
from pinot_assets.session.values.plan import Plan, Row, RowStatus
from pinot_assets.session.values.state import Mode
from pinot_assets.snapshot.receipt import Fingerprint

OPEN, DONE = LineageState.IN_PROGRESS, LineageState.COMPLETED


def names(count: int, first: int = 0) -> frozenset[str]:
    """Names of 60 bytes."""
    return frozenset(f"{n:060}" for n in range(first, first + count))


def entry(segments_from: frozenset[str], segments_to: frozenset[str], state: LineageState) -> LineageEntry:
    return LineageEntry("e" * 36, segments_from, segments_to, state, 1_700_000_000_000)


def plan(files: int, size: int = 10, status: RowStatus = RowStatus.BUILD) -> Plan:
    rows = (Row(f"file:///{n}", n, Fingerprint(size, 1), status) for n in range(files))
    return Plan("cp1-00000a", 0, Mode.SYNC, tuple(rows), (), {}, "")


def test_the_size_is_that_of_the_record_as_helix_writes_it() -> None:
    """Beside what Pinot 1.5.1 wrote for two entries."""
    entries = [entry(frozenset({"a", "b"}), frozenset({"c"}), DONE)]
    record = {
        "id": "t_OFFLINE",
        "simpleFields": {},
        "mapFields": {},
        "listFields": {"e" * 36: ["a,b", "c", "COMPLETED", "1700000000000"]},
    }
    assert znode_bytes("t", entries) == len(json.dumps(record, indent=2))


def test_a_switch_that_fits_is_let_through() -> None:
    require_lineage_capacity("t", Lineage(), names(7_000), names(7_000, 7_000))


def test_a_switch_that_does_not_fit_is_refused_with_the_way_out() -> None:
    with pytest.raises(PushRefused, match=r"KiB of 900 KiB") as caught:
        require_lineage_capacity("t", Lineage(), names(8_000), names(8_000, 8_000))
    assert "several tables" in str(caught.value)


def test_entries_that_stand_count_and_one_that_is_replaced_does_not() -> None:
    ours = names(8_000)
    standing = entry(frozenset(), names(8_000, 8_000), DONE)
    with pytest.raises(PushRefused, match="for 1 entry that is kept"):
        require_lineage_capacity("t", Lineage((standing,)), frozenset(), ours)
    require_lineage_capacity("t", Lineage((entry(frozenset(), ours, OPEN),)), frozenset(), ours)


def test_a_plan_that_cannot_fit_however_it_is_built_is_refused() -> None:
    most = LINEAGE_BYTES // len("t__cp1-00000a_0_12345_0,")
    require_plan_fits("t", plan(most - 500), ())
    with pytest.raises(PushRefused, match=r"files are too many for one switch of t"):
        require_plan_fits("t", plan(most + 5_000), ())


def test_files_without_bytes_have_no_segment() -> None:
    require_plan_fits("t", plan(100_000, size=0), ())
    require_plan_fits("t", plan(100_000, size=0, status=RowStatus.DONE), ())


def test_what_is_replaced_counts_in_the_plan() -> None:
    with pytest.raises(PushRefused):
        require_plan_fits("t", plan(1), names(16_000))


NEW, REPLACED = 30_080, 15_219


def segments_of(session: str, count: int) -> frozenset[str]:
    """Names of the segments of a table of eight letters."""
    return frozenset(segment_name("checkins", session, 0, n, 0) for n in range(count))


@pytest.mark.parametrize(("most", "replaced"), [(NEW, 0), (REPLACED, 1)])
def test_the_page_about_scale_says_how_many_segments_fit(most: int, replaced: int) -> None:
    def switch(count: int) -> None:
        old, new = segments_of("cp1-00000a", count * replaced), segments_of("cp2-00000b", count)
        require_lineage_capacity("checkins", Lineage(), old, new)

    switch(most)
    with pytest.raises(PushRefused):
        switch(most + 1)
    assert f"| {most:,} |" in (ROOT / "docs" / "scale.md").read_text()
