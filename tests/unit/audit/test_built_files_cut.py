from __future__ import annotations

from pinot_assets.audit.built_files import cut_values
from pinot_assets.segment.values.normalize import Cut
from pinot_assets.table_spec.blocks.audit import CutCheck

LOST = {
    "file:///a.csv": {"name": Cut(2, 0), "note": Cut(1, 3)},
    "file:///b.csv": {"note": Cut(0, 1)},
}


def test_a_nul_keeps_the_gate_shut_and_a_length_is_shown() -> None:
    at_nul, at_length = cut_values(LOST, [])
    assert (at_nul.name, at_nul.blocks, at_nul.found, at_nul.of_data) == ("cut_at_nul", True, 3, True)
    assert at_nul.message == (
        "3 values contained a NUL and lost what follows it: a.csv: name 2 values; a.csv: note 1 value; "
        "keep the gate open with `- check: cut_at_nul`, `severity: warn`, or correct the files"
    )
    assert (at_length.name, at_length.blocks, at_length.passed) == ("cut_at_max_length", False, False)
    assert "a.csv: note 3 values; b.csv: note 1 value" in at_length.message


def test_the_table_spec_may_allow_the_one_and_refuse_the_other() -> None:
    bounds = [
        CutCheck(check="cut_at_nul", severity="warn"),
        CutCheck(check="cut_at_max_length"),
    ]
    at_nul, at_length = cut_values(LOST, bounds)
    assert (at_nul.blocks, at_nul.passed) == (False, False)
    assert at_length.blocks


def test_where_nothing_is_cut_nothing_is_said() -> None:
    assert [*cut_values({}, [])] == []
    assert [found.name for found in cut_values({"file:///a": {"c": Cut(1, 0)}}, [])] == ["cut_at_nul"]


def test_times_that_are_replaced_are_counted_and_only_shown_unless_the_spec_says_otherwise() -> None:
    lost = {"file:///a.csv": {"ts": Cut(0, 0, 2)}, "file:///b.csv": {"ts": Cut(out_of_time=1)}}
    [shown] = cut_values(lost, [])
    assert (shown.name, shown.blocks, shown.found, shown.of_data) == ("times_replaced", False, 3, True)
    assert shown.message == (
        "3 values were times before 1971 or after 2071 and became the column's default or the time of the "
        "build: a.csv: ts 2 values; b.csv: ts 1 value"
    )
    [refused] = cut_values(lost, [CutCheck(check="times_replaced")])
    assert refused.blocks
