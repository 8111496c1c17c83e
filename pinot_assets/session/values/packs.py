"""Packs of a session as values: which members go into which pack, and which packs a snapshot has.

`session/pack_decision.py` and `session/close.py` read and store what this needs. No I/O here.
Source: docs/design/layout.md#session.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pinot_assets.segment.values.cells import cell_kind
from pinot_assets.session.values.plan import FileKey, InPack, Places, Plan, Row, RowStatus, carried_files
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.packs import Member, MemberList, PublishedPack, members_sha256
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Receipt
from pinot_assets.snapshot.recipes import StoredRecipe
from pinot_assets.table_spec.changes.recipe import Recipe, cell_kind_of_recipe


@dataclass(frozen=True, slots=True)
class Accepted:
    """Rows of a file that go into a pack: the plan accepted the file's receipt, or a published pack has them.

    :ivar bytes: about how many bytes they have in a segment, unpacked.
    :ivar cell: their partition and time slice; "" without cells.
    """

    member: Member
    bytes: int
    cell: str = ""


def read_digest(recipe: StoredRecipe | None) -> str:
    """Return the digest of a recipe's part for reading; "" without a recipe."""
    return Recipe(dict(recipe.read), {}).read_fingerprint if recipe is not None else ""


def accepted_members(plan: Plan, receipts: Mapping[int, Receipt]) -> list[Accepted]:
    """Return the rows of small files that the plan accepted, in the order in which packs take them."""
    read = [receipts[row.ordinal] for row in plan.done if row.is_small]
    return [
        Accepted(
            Member(
                uri=receipt.uri,
                fingerprint=receipt.read,
                sha256=receipt.sha256,
                rows=piece.rows,
                bad_rows=receipt.bad_rows,
                session=plan.session,
                rows_object=piece.chunk.rows_object,
                first=piece.first,
                offset=piece.chunk.offset,
                length=piece.chunk.length,
                crc=piece.chunk.crc,
            ),
            round(receipt.segment_bytes * piece.rows / receipt.rows),
            piece.chunk.cell,
        )
        for receipt in sorted(read, key=lambda one: (one.attempt, one.ordinal))
        for piece in receipt.places
    ]


def with_kept_packs(packs: Iterable[Row], keys: Collection[str]) -> list[Row]:
    """Return the packs of the former plan: one whose member list is still wanted stays, and any other goes.

    :param keys: of the member lists that are wanted.
    """
    return [
        row
        if row.status is RowStatus.GONE or row.uri in keys
        else replace(row, status=RowStatus.GONE, receipt="")
        for row in packs
    ]


@dataclass(frozen=True, slots=True)
class Content:
    """What a pack will have.

    :ivar read: digest of the read recipe of its members.
    """

    members: tuple[Accepted, ...]
    read: str
    cell: str


def in_old_places(
    dirty: Mapping[str, MemberList],
    plan: Plan,
    current: Snapshot,
    accepted: Iterable[Accepted],
    read: str,
    target: int,
) -> Iterator[Content]:
    """Yield what becomes of dirty packs, those that keep something: members that are gone leave, and the
    rows of a small file that was read again take the place of its former version's in the same cell.

    A file that was read with another read recipe than the pack leaves it: a pack has one. With cells, rows
    of a large file take a place only as long as the pack does not exceed the target.

    :param dirty: the member lists of the dirty packs, by their names.
    :param read: digest of the read recipe of the accepted files.
    :param target: bytes of a segment.
    """
    kept = {(file.uri, file.session) for file in carried_files(plan, current)}
    new: dict[tuple[str, str], list[Accepted]] = defaultdict(list)
    for one in accepted:
        new[one.member.uri, one.cell].append(one)
    for pack in current.packs:
        if (old := dirty.get(pack.name)) is None:
            continue
        bytes_per_row = pack.bytes / max(pack.rows, 1)
        staying = {
            member: Accepted(member, round(bytes_per_row * member.rows), old.cell)
            for member in old.members
            if member.file in kept
        }
        room, members = target - sum(one.bytes for one in staying.values()), list[Accepted]()
        for member in old.members:
            if member in staying:
                members.append(staying[member])
                continue
            pieces = new[member.uri, old.cell] if old.read == read else []
            while pieces and (pieces[0].bytes <= room or not old.cell):
                room -= pieces[0].bytes
                members.append(pieces.pop(0))
        if members:
            yield Content(tuple(members), old.read, old.cell)


def cut_at(target: int, waiting: Iterable[Accepted]) -> Iterator[tuple[Accepted, ...]]:
    """Yield members in packs of about the target's size, in their order, each pack of one cell.

    :param target: bytes of a segment.
    """
    cells: dict[str, list[Accepted]] = defaultdict(list)
    for one in waiting:
        cells[one.cell].append(one)
    for cell in sorted(cells):
        pack: list[Accepted] = []
        size = 0
        for one in cells[cell]:
            if pack and size + one.bytes > target:
                yield tuple(pack)
                pack, size = [], 0
            pack.append(one)
            size += one.bytes
        yield tuple(pack)


def packs_built(
    plan: Plan, receipts: Mapping[int, Receipt], members: Mapping[int, MemberList], revision: int
) -> tuple[PublishedPack, ...]:
    """Return the packs that the plan publishes.

    :param members: their member lists, by ordinal.
    :param revision: names the recipe of the plan.
    """
    return tuple(
        PublishedPack(
            session=plan.session,
            ordinal=row.ordinal,
            members=members_sha256(row.uri),
            files=members[row.ordinal].files,
            rows=receipts[row.ordinal].rows,
            outputs=receipts[row.ordinal].outputs,
            seconds=receipts[row.ordinal].seconds,
            revision=revision,
            cell=members[row.ordinal].cell,
        )
        for row in plan.packs_done
    )


def places_of(
    packs: Iterable[PublishedPack], members: Mapping[int, MemberList], recipe: StoredRecipe | None
) -> Places:
    """Return the new packs of each file that has rows in one.

    :param members: their member lists, by ordinal.
    :param recipe: of the plan.
    """
    places: dict[FileKey, list[InPack]] = defaultdict(list)
    read, cells = read_digest(recipe), cell_kind_of_recipe(recipe.write) if recipe is not None else ""
    for pack in packs:
        of_pack = members[pack.ordinal]
        is_current = of_pack.read == read and cell_kind(of_pack.cell) == cells
        in_pack = InPack(pack.name, is_current, of_pack.cell)
        for key in dict.fromkeys(member.file for member in members[pack.ordinal].members):
            places[key].append(in_pack)
    return places


def published_packs(
    built: Sequence[PublishedPack], files: Iterable[PublishedFile], current: Snapshot | None
) -> tuple[PublishedPack, ...]:
    """Return the packs of the next snapshot: those of the ledger that still have a file, and the new ones."""
    if current is None or not current.packs:
        return tuple(built)
    named = {name for file in files for name in file.packs}
    return (*(pack for pack in current.packs if pack.name in named), *built)
