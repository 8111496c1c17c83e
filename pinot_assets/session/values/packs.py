"""Packs of a session as values: which members go into which pack, and which packs a snapshot has.

`session/build_packs.py` reads and stores what this needs. No I/O here.
Source: docs/design/layout.md#session.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pinot_assets.session.values.plan import FileKey, InPack, Plan, Row, RowStatus, carried_files
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.packs import Member, MemberList, PublishedPack, members_sha256
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Receipt
from pinot_assets.snapshot.recipes import StoredRecipe
from pinot_assets.table_spec.changes.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Accepted:
    """A small file whose rows go into a pack: the plan accepted its receipt, or a published pack has it.

    :ivar bytes: about how many bytes its rows have in a segment, unpacked.
    """

    member: Member
    bytes: int


def read_digest(recipe: StoredRecipe | None) -> str:
    """Return the digest of a recipe's part for reading; "" without a recipe."""
    return Recipe(dict(recipe.read), {}).read_fingerprint if recipe is not None else ""


def accepted_members(plan: Plan, receipts: Mapping[int, Receipt]) -> list[Accepted]:
    """Return the small files with rows that the plan accepted, in the order in which packs take them."""
    read = [receipts[row.ordinal] for row in plan.done if row.is_small]
    return [
        Accepted(
            Member(
                uri=receipt.uri,
                fingerprint=receipt.read,
                sha256=receipt.sha256,
                rows=receipt.rows,
                bad_rows=receipt.bad_rows,
                session=plan.session,
                rows_object=receipt.rows_object,
                first=receipt.first,
            ),
            receipt.segment_bytes,
        )
        for receipt in sorted(read, key=lambda one: (one.attempt, one.ordinal))
        if receipt.rows
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


def in_old_places(
    dirty: Mapping[str, MemberList], plan: Plan, current: Snapshot, accepted: Iterable[Accepted], read: str
) -> Iterator[tuple[tuple[Accepted, ...], str]]:
    """Yield what becomes of dirty packs, those that keep something: members that are gone leave, and a small
    file that was read again takes the place of its former version.

    A file that was read with another read recipe than the pack leaves it: a pack has one.

    :param dirty: the member lists of the dirty packs, by their names.
    :param read: digest of the read recipe of the accepted files.
    :returns: yields the members of each, and the digest of their read recipe.
    """
    kept = {(file.uri, file.session) for file in carried_files(plan, current)}
    new = {one.member.uri: one for one in accepted}
    for pack in current.packs:
        if (old := dirty.get(pack.name)) is None:
            continue
        bytes_per_row = pack.bytes / max(pack.rows, 1)
        members: list[Accepted] = []
        for member in old.members:
            if (member.uri, member.session) in kept:
                members.append(Accepted(member, round(bytes_per_row * member.rows)))
            elif old.read == read and (one := new.pop(member.uri, None)) is not None:
                members.append(one)
        if members:
            yield tuple(members), old.read


def cut_at(target: int, waiting: Iterable[Accepted]) -> Iterator[tuple[Accepted, ...]]:
    """Yield members in packs of about the target's size, in their order.

    :param target: bytes of a segment.
    """
    pack: list[Accepted] = []
    size = 0
    for one in waiting:
        if pack and size + one.bytes > target:
            yield tuple(pack)
            pack, size = [], 0
        pack.append(one)
        size += one.bytes
    if pack:
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
            files=len(members[row.ordinal].members),
            rows=receipts[row.ordinal].rows,
            outputs=receipts[row.ordinal].outputs,
            seconds=receipts[row.ordinal].seconds,
            revision=revision,
        )
        for row in plan.packs_done
    )


def places_of(
    packs: Iterable[PublishedPack], members: Mapping[int, MemberList], read: str
) -> dict[FileKey, InPack]:
    """Return the pack of each file that was packed.

    :param members: their member lists, by ordinal.
    :param read: digest of the read recipe of the plan.
    """
    return {
        (member.uri, member.session): InPack(pack.name, members[pack.ordinal].read == read)
        for pack in packs
        for member in members[pack.ordinal].members
    }


def published_packs(
    built: Sequence[PublishedPack], files: Iterable[PublishedFile], current: Snapshot | None
) -> tuple[PublishedPack, ...]:
    """Return the packs of the next snapshot: those of the ledger that still have a file, and the new ones."""
    if current is None or not current.packs:
        return tuple(built)
    named = {file.pack for file in files}
    return (*(pack for pack in current.packs if pack.name in named), *built)
