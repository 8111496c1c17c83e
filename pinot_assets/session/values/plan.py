"""What a session has to do with each file, as of one attempt, and what of its segments follows from that.

Which plan comes next is decided in `session/decide/next_plan.py`; how it is stored is in
`session/stores/staging.py`. No I/O here. Source: docs/design/session.md#the-switch-w1-to-w6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import attrgetter

from pinot_assets.core.stored_format import Open, Stored
from pinot_assets.session.values.state import Mode
from pinot_assets.snapshot.manifest import PublishedFile, Snapshot
from pinot_assets.snapshot.receipt import Fingerprint, Output, Receipt, SourceFile


class RowStatus(StrEnum):
    """What the plan says of one file."""

    BUILD = "BUILD"
    DONE = "DONE"
    GONE = "GONE"


@dataclass(frozen=True, slots=True)
class Row(Open):
    """One file of the session.

    :ivar ordinal: given once per session and never again (R16).
    :ivar receipt: key of the one receipt that this plan accepts (R11); of a row to build, of the newest one
        that was revoked (R14), "" where none was.
    """

    uri: str
    ordinal: int
    planned: Fingerprint
    status: RowStatus
    receipt: str = ""


@dataclass(frozen=True, slots=True)
class Plan(Stored):
    """Every file of a session as of one attempt.

    :ivar removals: URIs in the ledger that are no longer listed (sync).
    :ivar touched: listed files whose content equals the ledger's under a new fingerprint (E3); remembered
        with the next snapshot.
    :ivar listing_digest: digest of the inventory that this plan was made from.
    """

    session: str
    attempt: int
    mode: Mode
    rows: tuple[Row, ...]
    removals: tuple[str, ...]
    touched: Mapping[str, Fingerprint]
    listing_digest: str

    @property
    def to_build(self) -> tuple[Row, ...]:
        """Rows without an accepted receipt."""
        return tuple(r for r in self.rows if r.status is RowStatus.BUILD)

    @property
    def done(self) -> tuple[Row, ...]:
        """Rows with one."""
        return tuple(r for r in self.rows if r.status is RowStatus.DONE)

    @property
    def only_remembers(self) -> bool:
        """Every listed file is published as it is: new fingerprints are noted, and no segment comes or goes.

        Also of a swap, which has all files as rows else. One that empties the table has no file listed, and
        so none that was touched.
        """
        return bool(self.touched) and not (self.rows or self.removals)

    def counts(self, failed: int = 0) -> dict[str, int]:
        """Files by status, for people."""
        gone = sum(r.status is RowStatus.GONE for r in self.rows)
        return {
            "files": len(self.rows) - gone,
            "done": len(self.done),
            "failed": failed,
            "pending": len(self.to_build) - failed,
            "gone": gone,
            "removals": len(self.removals),
        }


@dataclass(frozen=True, slots=True)
class Changes:
    """The listing against the ledger, after content has decided (edge case E3)."""

    new: tuple[SourceFile, ...]
    rewritten: tuple[SourceFile, ...]
    deleted: tuple[str, ...]
    touched: Mapping[str, Fingerprint]
    listed: Mapping[str, SourceFile]
    listing_digest: str

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
        """Files that append and sync have to build."""
        return {f.uri: f for f in (*self.new, *self.rewritten)}


Receipts = Mapping[int, tuple[str, Receipt]]
"""Valid receipts by ordinal, each with its key."""


def with_receipts(plan: Plan, receipts: Receipts) -> Plan:
    """The plan with the receipts of its own attempt taken in."""

    def taken(row: Row) -> Row:
        valid = receipts.get(row.ordinal)
        if row.status is not RowStatus.BUILD or valid is None:
            return row
        key, receipt = valid
        return replace(row, planned=receipt.read, status=RowStatus.DONE, receipt=key)

    return replace(plan, rows=tuple(taken(r) for r in plan.rows))


def without_files(plan: Plan, uris: frozenset[str]) -> Plan:
    """The plan less the files that are not published: the next session plans them anew."""
    rows = tuple(replace(r, status=RowStatus.GONE, receipt="") if r.uri in uris else r for r in plan.rows)
    return replace(plan, rows=rows, removals=tuple(u for u in plan.removals if u not in uris))


def as_built(plan: Plan) -> Plan:
    """The plan as it stands once every file of it is built."""
    rows = (
        replace(row, status=RowStatus.DONE) if row.status is RowStatus.BUILD else row for row in plan.rows
    )
    return replace(plan, rows=tuple(rows))


def segments_to(plan: Plan, receipts: Mapping[int, Receipt]) -> tuple[Output, ...]:
    """Outputs of the plan's accepted rows alone, in ordinal order (R11)."""
    return tuple(o for row in plan.done for o in receipts[row.ordinal].outputs)


def segments_from(plan: Plan, current: Snapshot | None, visible: frozenset[str]) -> tuple[str, ...]:
    """What the switch replaces: planned ∩ visible now, sorted (R5).

    :param visible: every visible segment of the table, foreign ones included.
    """
    if plan.only_remembers:
        return ()
    if plan.mode is Mode.SWAP:
        return tuple(sorted(visible))
    if plan.mode is Mode.APPEND or current is None:
        return ()
    superseded = {r.uri for r in plan.done} | set(plan.removals)
    planned = {o.segment for f in current.files if f.uri in superseded for o in f.outputs}
    return tuple(sorted(planned & visible))


def published_files(
    plan: Plan, receipts: Mapping[int, Receipt], current: Snapshot | None
) -> tuple[PublishedFile, ...]:
    """The rows of the next snapshot, in the order of their URIs: the diff is fastest by far then."""
    added = [PublishedFile.from_receipt(receipts[r.ordinal], plan.session) for r in plan.done]
    kept: list[PublishedFile] = []
    if current is not None and (plan.mode is not Mode.SWAP or plan.only_remembers):
        gone = set(plan.removals)
        if plan.mode is Mode.SYNC:
            gone |= {f.uri for f in added}
        newest = current.ledger
        for file in current.files:
            if file.uri in gone:
                continue
            touched = plan.touched.get(file.uri)
            if touched is not None and file is newest[file.uri]:
                file = replace(file, fingerprint=touched)
            kept.append(file)
    return tuple(sorted((*kept, *added), key=attrgetter("uri")))  # stable: the newest of a file stays last
