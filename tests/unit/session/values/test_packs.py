"""Which members packs have, for tables of any history."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from fakes.changed import changed

from pinot_assets.core.stored_format import WITH_PACKS
from pinot_assets.session.values.packs import (
    Accepted,
    Content,
    cut_at,
    in_old_places,
    packs_built,
    places_of,
    published_packs,
    read_digest,
    with_kept_packs,
)
from pinot_assets.session.values.plan import (
    Plan,
    Row,
    RowStatus,
    carried_files,
    dirty_packs,
    published_files,
    segments_from,
    superseded,
)
from pinot_assets.session.values.state import Mode
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.packs import Member, MemberList, PublishedPack, members_key
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import FilePiece, Fingerprint, Output, Receipt, RowsChunk
from pinot_assets.snapshot.recipes import StoredRecipe

READ, OTHER = (StoredRecipe(0, {"columns": {}, "filter": text}, {"columns": {}}) for text in "ab")
CELLS = ("", "YEAR 2025", "YEAR 2026")


def version(n: int) -> Fingerprint:
    return Fingerprint(n, n)


def member(uri: str, n: int, session: str, cell: str = "") -> Member:
    chunk = (CELLS.index(cell), 1) if cell else (0, 0)
    return Member(uri, version(n), f"{n}", 2, 0, session, "0" * 64, 0, *chunk)


def output(name: str, rows: int = 1) -> Output:
    return Output(name, 1, rows, f"mem://{name}", 10, "", "", unpacked_bytes=100 * rows)


class Table:
    """A table all of whose files are small, as a sequence of sessions leaves it."""

    def __init__(self, mode: Mode, target: int) -> None:
        self.mode, self.target = mode, target
        self.number = 0
        self.lists: dict[str, MemberList] = {}
        self.snapshot: Snapshot | None = None

    def session(
        self,
        work: dict[str, int],
        gone: tuple[str, ...] = (),
        recipe: StoredRecipe = READ,
        cells: Callable[[int], tuple[str, ...]] = lambda _: ("",),
    ) -> Plan:
        """Publish these versions of files, in packs.

        :param cells: of a version.
        """
        read = read_digest(recipe)
        self.number += 1
        session = f"cp{self.number}-00000a"
        rows = tuple(
            Row(uri, n, version(v), RowStatus.DONE, f"b-{n}", is_small=True)
            for n, (uri, v) in enumerate(sorted(work.items()))
        )
        removals = gone if self.mode is Mode.SYNC else ()
        plan = Plan(session, 0, self.mode, rows, removals, {}, "", format=WITH_PACKS)
        accepted = [
            Accepted(member(row.uri, row.planned.size, session, cell), 200, cell)
            for row in rows
            for cell in cells(row.planned.size)
        ]
        wanted: list[Content] = []
        if self.snapshot is not None:
            dirty = {pack.name: self.lists[pack.name] for pack in dirty_packs(plan, self.snapshot)}
            wanted = [*in_old_places(dirty, plan, self.snapshot, accepted, read, self.target)]
        placed = {one.member for content in wanted for one in content.members}
        waiting = (one for one in accepted if one.member not in placed)
        wanted += [Content(m, read, m[0].cell) for m in cut_at(self.target, waiting)]

        packs, members, receipts = [], {}, {}
        for row in rows:
            receipts[row.ordinal] = _receipt(
                row.uri, row.ordinal, row.planned, 2 * len(cells(row.planned.size))
            )
        for ordinal, content in enumerate(wanted, start=len(rows)):
            of_pack = tuple(one.member for one in content.members)
            members[ordinal] = MemberList(of_pack, content.read, content.cell, format=WITH_PACKS)
            total = members[ordinal].rows
            packs.append(
                Row(members_key(f"{ordinal:064x}"), ordinal, version(1), RowStatus.DONE, f"p-{ordinal}")
            )
            receipts[ordinal] = replace(
                _receipt("", ordinal, version(1), total),
                outputs=(output(f"t__{session}_{ordinal}_0", total),),
            )
        plan = replace(plan, packs=tuple(packs))
        built = packs_built(plan, receipts, members, self.number)
        self.lists |= {pack.name: members[pack.ordinal] for pack in built}
        before = self.snapshot
        files = published_files(plan, receipts, before, self.number, places_of(built, members, recipe))
        self.snapshot = Snapshot(
            self.number, "t_OFFLINE", session, self.mode, "", None, "", "", 0, files,
            packs=published_packs(built, files, before), format=WITH_PACKS,
        )  # fmt: skip
        self.replaced = segments_from(plan, before, frozenset(before.segments if before else ()))
        return plan

    @property
    def now(self) -> Snapshot:
        assert self.snapshot is not None
        return self.snapshot

    def versions_in_packs(self) -> Counter[tuple[str, str, str]]:
        """Counts file, version and cell."""
        lists = [self.lists[pack.name] for pack in self.now.packs]
        return Counter((*member.file, one.cell) for one in lists for member in one.members)


def _receipt(uri: str, ordinal: int, read: Fingerprint, rows: int) -> Receipt:
    return Receipt(uri, ordinal, 0, read, f"{read.size}", rows, 0, (), 0.0, "", format=WITH_PACKS)


def any_cells(number: int) -> tuple[str, ...]:
    """The cells of a version: one, two or all; some have the one of before there were cells."""
    return CELLS[1 + number % 2 :] if number % 3 else CELLS[number % 2 : 2]


@pytest.mark.parametrize("mode", [Mode.SYNC, Mode.APPEND])
@pytest.mark.parametrize("cells", [lambda _: ("",), any_cells], ids=["", "cells"])
@pytest.mark.parametrize("seed", range(30))
def test_after_any_sessions_each_version_is_in_one_pack_of_each_cell(
    seed: int, cells: Callable[[int], tuple[str, ...]], mode: Mode
) -> None:
    """L2, L6, and what is replaced is what is not there any more."""
    drawn = random.Random(seed)
    table, there, number = Table(mode, target=drawn.choice([200, 500, 100_000])), set[str](), 0
    for _ in range(6):
        work: dict[str, int] = {}
        for _ in range(drawn.randint(0, 6)):
            number += 1
            work[f"f{drawn.randint(0, 9)}"] = number
        gone = tuple(uri for uri in sorted(there - work.keys()) if drawn.random() < 0.3)
        before = table.snapshot
        table.session(work, gone, drawn.choice([READ, READ, OTHER]), cells)
        there |= work.keys()
        if mode is Mode.SYNC:
            there -= set(gone)
            assert {file.uri for file in table.now.files} == there
        assert table.versions_in_packs() == Counter(
            (f.uri, f.session, cell) for f in table.now.files for cell in cells(f.fingerprint.size)
        )
        for pack in table.now.packs:
            files = {(f.uri, f.session) for f in table.now.files if pack.name in f.packs}
            assert files == {member.file for member in table.lists[pack.name].members}
            assert pack.files == len(files)
        assert {name for file in table.now.files for name in file.packs} == {
            pack.name for pack in table.now.packs
        }
        if before is not None:
            assert {*table.replaced} == before.segments.keys() - table.now.segments.keys()
        assert sum(o.rows for o in table.now.segments.values()) == table.now.rows


def test_a_file_that_is_read_otherwise_than_its_pack_leaves_it() -> None:
    table = Table(Mode.SYNC, 10_000)
    table.session({"a": 1, "b": 2})
    table.session({"a": 3}, recipe=OTHER)
    lists = [table.lists[pack.name] for pack in table.now.packs]
    assert [([m.uri for m in one.members], one.read) for one in lists] == [
        (["b"], read_digest(READ)),
        (["a"], read_digest(OTHER)),
    ]
    assert {file.uri: file.revision for file in table.now.files} == {"a": 2, "b": 1}


def test_a_file_that_stays_in_a_pack_of_the_same_recipe_counts_as_built_by_it() -> None:
    table = Table(Mode.SYNC, 10_000)
    table.session({"a": 1, "b": 2})
    table.session({"a": 3})
    assert {file.uri: (file.revision, file.session[:3]) for file in table.now.files} == {
        "a": (2, "cp2"),
        "b": (2, "cp1"),
    }


def test_what_stays_is_what_the_plan_does_not_touch() -> None:
    table = Table(Mode.SYNC, 10_000)
    table.session({"a": 1, "b": 2, "c": 3})
    before = table.now
    plan = table.session({"a": 4}, gone=("c",))
    assert [file.uri for file in superseded(plan, before)] == ["a", "c"]
    assert [file.uri for file in carried_files(plan, before)] == ["b"]


def test_a_pack_of_the_former_plan_stays_only_if_its_list_is_wanted() -> None:
    done = Row("stays", 3, version(1), RowStatus.DONE, "r")
    rows = [done, replace(done, uri="goes", ordinal=4), Row("went", 5, version(1), RowStatus.GONE)]
    assert with_kept_packs(rows, {"stays"}) == [
        done,
        Row("goes", 4, version(1), RowStatus.GONE),
        Row("went", 5, version(1), RowStatus.GONE),
    ]


def _published(uri: str) -> PublishedFile:
    return PublishedFile.from_receipt(_receipt(uri, 0, version(1), 2), "cp1-00000a", 1)


def test_a_file_without_a_pack_makes_none_dirty() -> None:
    pack = PublishedPack("cp1-00000a", 7, "0" * 64, 1, 2, (output("s"),))
    files = (_published("a"), replace(_published("b"), packs=(pack.name,)))
    now = Snapshot(1, "t", "cp1-00000a", "SYNC", "", None, "", "", 0, files, packs=(pack,), format=WITH_PACKS)
    plan = Plan("cp2-00000a", 0, Mode.SYNC, (), ("a",), {}, "", format=WITH_PACKS)
    assert dirty_packs(plan, now) == ()
    assert dirty_packs(replace(plan, removals=("b",)), now) == (pack,)


def test_rows_of_a_large_file_take_old_places_only_up_to_the_target() -> None:
    """A worker has the rows of a pack in memory."""
    table = Table(Mode.SYNC, target=300)
    cell = "YEAR 2026"
    table.session({"big": 1, "small": 2}, cells=lambda _: (cell,))
    again = [replace(member("big", 9, "cp2-00000a", cell), rows_object=f"{n}" * 64) for n in range(4)]
    row = Row("big", 0, version(9), RowStatus.DONE, "b", is_small=True)
    plan = Plan("cp2-00000a", 0, Mode.SYNC, (row,), (), {}, "")
    lists = {pack.name: table.lists[pack.name] for pack in dirty_packs(plan, table.now)}
    accepted = [Accepted(one, 150, cell) for one in again]
    [content] = in_old_places(lists, plan, table.now, accepted, read_digest(READ), table.target)
    assert [one.member for one in content.members] == again[:2], "the others go into new packs"


@pytest.mark.parametrize(
    "wrong",
    [
        {"rows": 0},
        {"rows": 8},
        {"outputs": (output("s"),)},
        {"pieces": (FilePiece(RowsChunk("c", "a" * 64, -1, 5, 1), 0, 7),)},
        {"pieces": (FilePiece(RowsChunk("c", "a" * 64, 0, 5, -1), 0, 7),)},
        {"pieces": (FilePiece(RowsChunk("c", "a" * 64, 0, 5, 1), -2, 7),)},
        {"pieces": (FilePiece(RowsChunk("c", "a" * 64, 0, 5, 1), 0, 0),), "rows": 0},
    ],
)
def test_a_receipt_whose_rows_cannot_be_where_it_says(wrong: dict[str, object]) -> None:
    pieces = (FilePiece(RowsChunk("c", "a" * 64, 0, 5, 1), 2, 7),)
    good = replace(_receipt("a", 0, version(1), 7), pieces=pieces)
    assert good.is_placed
    assert not changed(good, wrong).is_placed
