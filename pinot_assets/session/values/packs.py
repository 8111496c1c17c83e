"""Packs of a session as values: which members go into which pack, and which packs a snapshot has.

`session/build_packs.py` reads and stores what this needs. No I/O here.
Source: docs/design/layout.md#session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pinot_assets.session.values.plan import Plan, Row, RowStatus
from pinot_assets.session.values.state import Mode
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.packs import Member, MemberList, PublishedPack, members_sha256
from pinot_assets.snapshot.published_files import PublishedFile, files_among
from pinot_assets.snapshot.receipt import Receipt


@dataclass(frozen=True, slots=True)
class Accepted:
    """A small file that was read, and whose receipt the plan accepted.

    :ivar bytes: about how many bytes its rows have in a segment, unpacked.
    """

    member: Member
    bytes: int


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


def standing_packs(
    packs: Iterable[Row], lists: Mapping[str, MemberList], accepted: Iterable[Accepted]
) -> Iterator[Row]:
    """Yield the packs of the former plan: a pack stays as it is if all of its members do, and goes otherwise.

    :param lists: member lists by their keys.
    """
    there = {one.member for one in accepted}
    for row in packs:
        if row.status is RowStatus.GONE or there.issuperset(lists[row.uri].members):
            yield row
        else:
            yield replace(row, status=RowStatus.GONE, receipt="")


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


def back_in_packs(plan: Plan, current: Snapshot | None) -> frozenset[str]:
    """Return the files of an append that were read in the version that a published pack has: between listing
    and reading they came back to it. Published again, their rows would show twice, since a pack stays."""
    if plan.mode is not Mode.APPEND or current is None or not current.packs:
        return frozenset()
    built = {row.uri: row.planned for row in plan.done}
    newest = {file.uri: file for file in files_among(current.files, built.keys())}
    return frozenset(
        uri
        for uri, file in newest.items()
        if file.pack and built[uri] in (file.fingerprint, plan.touched.get(uri))
    )


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


def pack_of(packs: Iterable[PublishedPack], members: Mapping[int, MemberList]) -> dict[str, str]:
    """Return the name of the pack of each file that was packed, by URI."""
    return {member.uri: pack.name for pack in packs for member in members[pack.ordinal].members}


def published_packs(
    built: Sequence[PublishedPack], files: Iterable[PublishedFile], current: Snapshot | None
) -> tuple[PublishedPack, ...]:
    """Return the packs of the next snapshot: those of the ledger that still have a file, and the new ones."""
    if current is None or not current.packs:
        return tuple(built)
    named = {file.pack for file in files}
    return (*(pack for pack in current.packs if pack.name in named), *built)
