"""The plan: what a session has to do with each file in one attempt, and which segments follow from it.

`session/decide/next_plan.py` decides which plan comes next; `session/stores/staging.py` stores plans. No I/O
here. Source: docs/design/session.md#the-switch-w1-to-w6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from operator import attrgetter
from typing import Final, NamedTuple

from pinot_assets.core.stored_format import Open, Stored
from pinot_assets.session.values.state import Mode
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.packs import PublishedPack
from pinot_assets.snapshot.published_files import PublishedFile, files_among
from pinot_assets.snapshot.receipt import Fingerprint, Output, Receipt, SourceFile
from pinot_assets.snapshot.recipes import UNKNOWN, StoredRecipe

FileKey = tuple[str, str]
"""One published version of a file: its URI, and the session that read it."""


class InPack(NamedTuple):
    """A new pack that has rows of a file.

    :ivar is_current: whether the plan's recipe read them and wrote the pack.
    :ivar cell: of the pack.
    """

    name: str
    is_current: bool
    cell: str = ""


Places = Mapping[FileKey, Sequence[InPack]]
"""The new packs of each file that has rows in one."""

_NONE: Final[Places] = {}


class RowStatus(StrEnum):
    """The status of a file in a plan: to build, built (its receipt is accepted), or left out."""

    BUILD = "BUILD"
    DONE = "DONE"
    GONE = "GONE"


@dataclass(frozen=True, slots=True)
class Row(Open):
    """One file, or one pack, of the session.

    :ivar uri: of a pack: the key of its member list in the staging area.
    :ivar ordinal: number of the row; a session never gives the same number twice (R16).
    :ivar receipt: key of the one receipt that this plan accepts (R11). A row to build has the key of the
        newest revoked receipt instead (R14), or "".
    :ivar is_small: whether the file's rows go into packs: a small file, or with cells any file. It is decided
        once for each version of a file.
    """

    uri: str
    ordinal: int
    planned: Fingerprint
    status: RowStatus
    receipt: str = ""
    is_small: bool = False


@dataclass(frozen=True, slots=True)
class Plan(Stored):
    """Every file of a session as of one attempt.

    :ivar removals: URIs in the ledger that are no longer listed (sync).
    :ivar touched: listed files with the ledger's content and a new fingerprint (E3); the next snapshot stores
        the new fingerprints.
    :ivar listing_digest: digest of the inventory that this plan was made from.
    :ivar recipe: what builds its files; None if its session is of format 1, or older than recipes.
    :ivar packs: what is built of the small files; empty until all of them are read. Their ordinals are among
        those of the rows.
    :ivar merged: names of published packs of which no file changes and that are merged with others.
    :ivar compacts: whether open packs of all levels are merged, because a person asked for it.
    """

    session: str
    attempt: int
    mode: Mode
    rows: tuple[Row, ...]
    removals: tuple[str, ...]
    touched: Mapping[str, Fingerprint]
    listing_digest: str
    recipe: StoredRecipe | None = None
    packs: tuple[Row, ...] = ()
    merged: tuple[str, ...] = ()
    compacts: bool = False

    @property
    def packs_to_build(self) -> tuple[Row, ...]:
        """Packs without an accepted receipt."""
        return tuple(r for r in self.packs if r.status is RowStatus.BUILD)

    @property
    def packs_done(self) -> tuple[Row, ...]:
        """Packs with an accepted receipt."""
        return tuple(r for r in self.packs if r.status is RowStatus.DONE)

    @property
    def next_ordinal(self) -> int:
        """The first number that no row and no pack has."""
        return max((r.ordinal for r in (*self.rows, *self.packs)), default=-1) + 1

    @property
    def to_build(self) -> tuple[Row, ...]:
        """Rows without an accepted receipt."""
        return tuple(r for r in self.rows if r.status is RowStatus.BUILD)

    @property
    def unbuilt(self) -> tuple[Row, ...]:
        """Files and packs without an accepted receipt."""
        return (*self.to_build, *self.packs_to_build)

    @property
    def done(self) -> tuple[Row, ...]:
        """Rows with an accepted receipt."""
        return tuple(r for r in self.rows if r.status is RowStatus.DONE)

    @property
    def only_remembers(self) -> bool:
        """Whether the plan only records new fingerprints: every listed file is published, no segment changes.

        A swap can be such a plan, too, though its plan otherwise has all files as rows. A swap that empties
        the table is not one: no file is listed, so none was touched.
        """
        return bool(self.touched) and not (self.rows or self.removals or self.merged)

    def counts(self, failed: int = 0) -> dict[str, int]:
        """Count the files by status, for people."""
        gone = sum(r.status is RowStatus.GONE for r in self.rows)
        return {
            "files": len(self.rows) - gone,
            "done": len(self.done),
            "failed": failed,
            "pending": len(self.to_build) - failed,
            "gone": gone,
            "removals": len(self.removals),
        } | ({"packs": len(self.packs_done) + len(self.packs_to_build)} if self.packs else {})


@dataclass(frozen=True, slots=True)
class Changes:
    """The differences between listing and ledger, after content was compared (edge case E3).

    :ivar rebuilds: published files, listed with the published content, that are built again under another
        recipe.
    """

    new: tuple[SourceFile, ...]
    rewritten: tuple[SourceFile, ...]
    deleted: tuple[str, ...]
    touched: Mapping[str, Fingerprint]
    listed: Mapping[str, SourceFile]
    listing_digest: str
    rebuilds: tuple[SourceFile, ...] = ()

    @property
    def any(self) -> bool:
        """Whether the listing differs from the ledger at all."""
        return self.any_content or bool(self.touched)

    @property
    def any_content(self) -> bool:
        """Whether a file came, went or has other content."""
        return bool(self.new or self.rewritten or self.deleted)

    @property
    def work(self) -> dict[str, SourceFile]:
        """Files that append and sync have to build, by URI."""
        return {f.uri: f for f in (*self.new, *self.rewritten, *self.rebuilds)}


Receipts = Mapping[int, tuple[str, Receipt]]
"""Valid receipts by ordinal, each with its key."""


def with_receipt(row: Row, key: str, receipt: Receipt) -> Row:
    """Return the row after it accepted this receipt. Where its rows are decides if they go into a pack."""
    is_small = bool(receipt.places) if receipt.rows else row.is_small
    return replace(row, planned=receipt.read, status=RowStatus.DONE, receipt=key, is_small=is_small)


def with_receipts(plan: Plan, receipts: Receipts) -> Plan:
    """Return the plan after its rows to build accepted these receipts."""

    def taken(row: Row) -> Row:
        valid = receipts.get(row.ordinal)
        if row.status is not RowStatus.BUILD or valid is None:
            return row
        return with_receipt(row, *valid)

    return replace(plan, rows=tuple(map(taken, plan.rows)), packs=tuple(map(taken, plan.packs)))


def without_files(plan: Plan, uris: frozenset[str]) -> Plan:
    """Return the plan without these files; they are not published, so the next session plans them again."""
    rows = tuple(replace(r, status=RowStatus.GONE, receipt="") if r.uri in uris else r for r in plan.rows)
    return replace(plan, rows=rows, removals=tuple(u for u in plan.removals if u not in uris))


def as_built(plan: Plan) -> Plan:
    """Return the plan as if every file and every pack of it were built."""

    def built(row: Row) -> Row:
        return replace(row, status=RowStatus.DONE) if row.status is RowStatus.BUILD else row

    return replace(plan, rows=tuple(map(built, plan.rows)), packs=tuple(map(built, plan.packs)))


def segments_to(plan: Plan, receipts: Mapping[int, Receipt]) -> tuple[Output, ...]:
    """Return the outputs of the plan's accepted rows only, in the order of the rows (R11)."""
    return tuple(o for row in (*plan.done, *plan.packs_done) for o in receipts[row.ordinal].outputs)


def segments_from(plan: Plan, current: Snapshot | None, visible: frozenset[str]) -> tuple[str, ...]:
    """Return the segments that the switch replaces: planned ∩ visible now, sorted (R5).

    :param visible: every visible segment of the table, foreign ones included.
    """
    if plan.only_remembers:
        return ()
    if plan.mode is Mode.SWAP:
        return tuple(sorted(visible))
    of_files = (file.outputs for file in superseded(plan, current))
    of_packs = (pack.outputs for pack in dirty_packs(plan, current))
    planned = {output.segment for outputs in chain(of_files, of_packs) for output in outputs}
    return tuple(sorted(planned & visible))


def superseded(plan: Plan, current: Snapshot | None) -> list[PublishedFile]:
    """Return the published versions that the plan replaces or removes.

    Sync: all versions of its files. Append: a version that is built again, whose rows would show twice.
    """
    if current is None or plan.only_remembers:
        return []
    if plan.mode is Mode.SWAP:
        return [*current.files]
    if plan.mode is Mode.SYNC:
        return files_among(current.files, {r.uri for r in plan.done} | set(plan.removals))
    built = {r.uri: r.planned for r in plan.done}
    newest = {f.uri: f for f in files_among(current.files, built.keys())}
    return [f for uri, f in newest.items() if built[uri] in (f.fingerprint, plan.touched.get(uri))]


def dirty_packs(plan: Plan, current: Snapshot | None) -> tuple[PublishedPack, ...]:
    """Return the published packs that are merged, or have rows of a version that is replaced or removed.

    What stays of them is built again from the rows that are kept.
    """
    if current is None or not current.packs:
        return ()
    names = {name for file in superseded(plan, current) for name in file.packs}.union(plan.merged)
    return tuple(pack for pack in current.packs if pack.name in names)


def carried_files(plan: Plan, current: Snapshot | None) -> list[PublishedFile]:
    """Return the files of dirty packs that the plan does not touch: their rows stay, in other segments."""
    dirty = {pack.name for pack in dirty_packs(plan, current)}
    if current is None or not dirty:
        return []
    gone = {id(file) for file in superseded(plan, current)}
    return [f for f in current.files if not dirty.isdisjoint(f.packs) and id(f) not in gone]


def published_files(
    plan: Plan,
    receipts: Mapping[int, Receipt],
    current: Snapshot | None,
    revision: int = UNKNOWN,
    places: Places = _NONE,
) -> tuple[PublishedFile, ...]:
    """Return the files of the next snapshot, sorted by URI, which makes the next diff much faster.

    :param revision: names the recipe of the plan.
    """
    added = [
        replace(
            PublishedFile.from_receipt(receipts[r.ordinal], plan.session, revision),
            packs=tuple(place.name for place in places.get((r.uri, plan.session), ())),
        )
        for r in plan.done
    ]
    kept: list[PublishedFile] = []
    if current is not None and (plan.mode is not Mode.SWAP or plan.only_remembers):
        gone = {id(file) for file in superseded(plan, current)}
        newest, dirty = current.ledger, {pack.name: pack.cell for pack in dirty_packs(plan, current)}
        for file in current.files:
            if id(file) in gone:
                continue
            touched = plan.touched.get(file.uri)
            if touched is not None and file is newest[file.uri]:
                file = replace(file, fingerprint=touched)
            kept.append(_moved(file, places.get((file.uri, file.session), ()), dirty, revision))
    return tuple(sorted((*kept, *added), key=attrgetter("uri")))  # stable: a file's newest version stays last


def _moved(
    file: PublishedFile, places: Sequence[InPack], dirty: Mapping[str, str], revision: int
) -> PublishedFile:
    """Return a file that stays, after some of its packs were replaced.

    A pack that Pinot's retention removed is not built again: the file keeps its name, and the rows count.

    :param dirty: the cells of replaced packs, by their names.
    """
    if not places:
        return file
    new = {place.cell for place in places}
    left = tuple(name for name in file.packs if dirty.get(name) not in new)
    is_current = not left and all(place.is_current for place in places)
    packs = (*left, *(place.name for place in places))
    return replace(file, packs=packs, revision=revision if is_current else file.revision)
