"""What tasks tell of what they read and wrote, held against each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pinot_assets.audit.built_files import (
    bounds_in_order,
    columns_as_in_schema,
    packs_as_read,
    rows_as_read,
    tars_as_built,
    unlike,
)
from pinot_assets.audit.checks import Finding
from pinot_assets.core.stored_format import WITH_PACKS
from pinot_assets.snapshot.packs import Member, MemberList
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import ColumnFacts, Fingerprint, Output, Receipt, SegmentFacts

SCHEMA = {"a": "INT", "b": "STRING"}
GOOD = (ColumnFacts("a", "INT", "-5", "10"), ColumnFacts("b", "STRING", "", "z"))


def output(segment: str, rows: int = 3, **more: Any) -> Output:
    return Output(segment, 7, rows, f"file:///{segment}.tar.gz", 1, "", "", **more)


def receipt(
    name: str = "f", written: tuple[int, ...] = (3,), read: int | None = None, **more: Any
) -> Receipt:
    """One whose segments hold so many rows, of a file with as many or `read`."""
    columns = more.pop("columns", GOOD)
    fields = {
        "outputs": tuple(output(f"{name}_{k}", rows) for k, rows in enumerate(written)),
        "facts": tuple(SegmentFacts(rows, columns) for rows in written),
        "rows_read": sum(written) if read is None else read,
        "rows": sum(written),
        "bad_rows": 0,
    }
    return Receipt(
        uri=f"s3://b/{name}.csv",
        ordinal=0,
        attempt=0,
        read=Fingerprint(1, 1),
        sha256="x",
        seconds=0.0,
        worker="",
        **{**fields, **more},
    )


def numbers(finding: Finding) -> tuple[bool, int, int]:
    return finding.passed, finding.expected, finding.found


def test_every_row_that_was_read_is_written() -> None:
    finding = rows_as_read([receipt("f", (3, 2)), receipt("g", (4,))])
    assert numbers(finding) == (True, 9, 9)
    assert finding.message == "9 of 9 rows that readers counted are in the segments"


def test_rows_that_were_lost_on_the_way_are_the_files_fault() -> None:
    finding = rows_as_read([receipt("f", (3, 2), read=6), receipt("g")])
    assert numbers(finding) == (False, 9, 8)
    assert (finding.files, finding.blames) == (("s3://b/f.csv",), True)
    assert (finding.blocks, finding.of_data) == (True, False)
    assert "f.csv: 6 rows read, 0 put aside, 0 filtered out, 5 written" in finding.message


def test_rows_that_came_twice_and_rows_that_went_do_not_cancel_out() -> None:
    finding = rows_as_read([receipt("f", (4,), read=3), receipt("g", (3,), read=4)])
    assert numbers(finding) == (False, 7, 7)


def test_rows_put_aside_or_filtered_out_are_no_loss_and_are_told() -> None:
    finding = rows_as_read([receipt("f", (3,), read=9, bad_rows=2, rows_filtered=4)])
    assert numbers(finding) == (True, 3, 3)
    assert finding.message.endswith("2 were put aside; 4 were filtered out")


def test_a_segment_that_says_another_number_than_the_task_is_at_fault() -> None:
    """The writer's own number is not believed alone."""
    finding = rows_as_read([receipt("f", (3,), rows=4)])
    assert (finding.passed, finding.files) == (False, ("s3://b/f.csv",))


def test_all_rows_of_a_file_lost_are_its_fault_though_it_has_no_segment() -> None:
    finding = rows_as_read([receipt("f", (), read=5)])
    assert (finding.blocks, finding.files, finding.of_data) == (True, ("s3://b/f.csv",), False)


def test_what_an_older_writer_did_not_count_is_told() -> None:
    finding = rows_as_read([receipt("f"), receipt("old", rows_read=None, facts=()), receipt("g", ())])
    assert numbers(finding) == (True, 3, 3)
    assert finding.message.endswith("the row count of 1 file is not known")


def small(uri: str, rows: int, first: int) -> Receipt:
    return replace(receipt(uri, ()), rows=rows, rows_read=rows, rows_object=OBJECT, first=first)


def pack(rows: int) -> Receipt:
    return replace(receipt("pack", (rows,)), uri=f"packs/{'a' * 64}.parquet")


def members(*files: Receipt, older: tuple[Receipt, ...] = ()) -> dict[str, MemberList]:
    sessions = [*((file, "cp1-00000a") for file in files), *((file, "cp0-00000a") for file in older)]
    listed = (Member(f.uri, f.read, f.sha256, f.rows, 0, by, f.rows_object, f.first) for f, by in sessions)
    return {pack(0).uri: MemberList(tuple(listed), "", format=WITH_PACKS)}


OBJECT = "b" * 64
F, G = small("f", 3, 0), small("g", 2, 3)
OTHERWISE = "g.csv is in a pack, and was read otherwise"


def test_each_small_file_is_in_one_pack_with_all_its_rows() -> None:
    """L1, L2."""
    finding = packs_as_read(members(F, G), [F, G, pack(5)])
    assert (finding.passed, finding.expected, finding.found) == (True, 5, 5)
    assert rows_as_read([F, G]).passed


def stays(file: Receipt) -> PublishedFile:
    return replace(PublishedFile.from_receipt(file, "cp0-00000a"), packs=("cp0-00000a_9",))


def test_files_that_stay_in_a_pack_that_is_built_again_count_as_well() -> None:
    """L1, L2."""
    finding = packs_as_read(members(F, older=(G,)), [F, pack(5)], [stays(G)])
    assert (finding.passed, finding.expected, finding.found) == (True, 5, 5)
    lost = packs_as_read(members(F), [F, pack(3)], [stays(G)])
    assert lost.blocks
    assert "g.csv is in 0 packs" in lost.message
    other = packs_as_read(members(F, older=(G,)), [F, pack(5)], [stays(replace(G, rows=7))])
    assert (other.blocks, other.files) == (True, (pack(0).uri,))
    assert OTHERWISE in other.message
    again = packs_as_read(members(F, older=(F, G)), [F, pack(8)], [stays(F), stays(G)])
    assert (again.passed, again.found) == (True, 8), "append published the same version again"


@pytest.mark.parametrize(
    ("listed", "receipts", "says", "blamed"),
    [
        ((F,), [F, G, pack(3)], "g.csv is in 0 packs", ()),
        ((F, G), [F, pack(5)], OTHERWISE, (pack(0).uri,)),
        (
            (F, replace(G, first=4)),
            [F, G, pack(5)],
            OTHERWISE,
            (pack(0).uri,),
        ),
        ((F, G), [F, G, pack(4)], "pack 0 has 4 rows, its files have 5", (pack(0).uri,)),
    ],
)
def test_a_file_that_is_in_no_pack_or_otherwise_shuts_the_gate(
    listed: tuple[Receipt, ...], receipts: list[Receipt], says: str, blamed: tuple[str, ...]
) -> None:
    finding = packs_as_read(members(*listed), receipts)
    assert finding.blocks
    assert says in finding.message
    assert finding.files == blamed


def test_columns_are_those_of_the_schema() -> None:
    assert numbers(columns_as_in_schema([receipt("f", (1, 2))], SCHEMA)) == (True, 4, 4)


@pytest.mark.parametrize(
    ("columns", "text", "found"),
    [
        (GOOD[:1], "f_0 lacks b", 1),
        ((*GOOD, ColumnFacts("c", "INT", "1", "1")), "has c, which the schema does not", 2),
        ((GOOD[0], ColumnFacts("b", "BYTES", "", "")), "has b as BYTES, in the schema STRING", 1),
    ],
)
def test_other_columns_are_named(columns: Any, text: str, found: int) -> None:
    finding = columns_as_in_schema([receipt("f", (1,), columns=columns)], SCHEMA)
    assert numbers(finding) == (False, 2, found)
    assert text in finding.message
    assert finding.at_fault == ("f_0",)


@pytest.mark.parametrize(
    ("kind", "low", "high", "in_order"),
    [
        ("INT", "9", "10", True),
        ("LONG", "10", "9", False),
        ("TIMESTAMP", "-1", "1600000000000", True),
        ("BOOLEAN", "1", "0", False),
        ("DOUBLE", "-Infinity", "1.0E-5", True),
        ("DOUBLE", "1.0E-5", "-Infinity", False),
        ("FLOAT", "2.0", "NaN", True),
        ("FLOAT", "NaN", "2.0", False),
        ("BIG_DECIMAL", "1E+3", "1000.5", True),
        ("BIG_DECIMAL", "1000.5", "1E+3", False),
        ("STRING", "a", "b", True),
        ("STRING", "b", "a", False),
        ("BYTES", "0a", "ff", True),
        ("STRING", "\0 b", "a", True),
        ("INT", None, None, True),
        ("INT", "x", "3", False),
    ],
)
def test_bounds_are_compared_as_java_does(kind: str, low: Any, high: Any, in_order: bool) -> None:
    finding = bounds_in_order([receipt("f", (1,), columns=(ColumnFacts("c", kind, low, high),))])
    assert numbers(finding) == (in_order, 1, int(in_order))
    assert ("f_0" in finding.at_fault) is not in_order


def test_a_segment_does_not_end_before_it_begins() -> None:
    good = receipt("f", outputs=(output("f_0", start_ms=5, end_ms=5),))
    assert numbers(bounds_in_order([good])) == (True, 3, 3)
    bad = receipt("f", outputs=(output("f_0", start_ms=6, end_ms=5),))
    assert numbers(bounds_in_order([bad])) == (False, 3, 2)


def test_a_tar_that_is_not_what_was_built_is_named() -> None:
    one, two, three = (receipt(name, tars=("v1",)) for name in "abc")
    staged = {"file:///a_0.tar.gz": "v1", "file:///b_0.tar.gz": "v2"}
    assert [o.segment for o in unlike([one, two, three], staged)] == ["b_0"]
    finding = tars_as_built([one, two, three], staged, {"file:///b_0.tar.gz": "was changed"})
    assert numbers(finding) == (False, 3, 1)
    assert finding.at_fault == ("c_0", "b_0")
    assert "the tar of c_0 has gone; the tar of b_0 was changed" in finding.message
    assert tars_as_built([two], staged, {}).passed  # another version, the same content


def test_a_tar_whose_version_nobody_noted_is_looked_into() -> None:
    [found] = unlike([receipt("f")], {"file:///f_0.tar.gz": "v1"})
    assert found.segment == "f_0"
