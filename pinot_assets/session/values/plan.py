"""What a session has to do, decided from values alone: listing, ledger, receipts, former plan.

No I/O here. Sources: docs/design/session.md#modes-and-kinds-of-push, #continuing-an-open-session and
#the-switch-w1-to-w6; docs/guides/consistent-push.md#how-all-scenes-begin.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from operator import attrgetter
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from pinot_assets.core.stored_format import (
    FORMAT,
    NEEDS,
    Marks,
    Open,
    Stored,
    kept_fields,
    kept_of,
    marks,
    metadata_of,
    require_schema,
    require_values,
    since,
    table_of,
)
from pinot_assets.core.untrusted import fitting, whole_number
from pinot_assets.session.values.state import Mode
from pinot_assets.snapshot.fingerprint import Fingerprint, SourceFile
from pinot_assets.snapshot.manifest import PublishedFile, Snapshot
from pinot_assets.snapshot.receipt import Output, Receipt

SIZES_END: Final = 10**18
"""From here on a number is no size of a file."""


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


@dataclass(frozen=True, slots=True)
class HeldVersion:
    """A version of a file that a rollback took back.

    :ivar size: bytes; of no meaning where the content is not known.
    :ivar sha256: of its content, "" where nobody knows it: a hold of format 1 and a ledger that was made anew
        say nothing of it.
    """

    token: str
    size: int = 0
    sha256: str = ""

    @classmethod
    def read(cls, text: str) -> HeldVersion:
        """Inverse of `text`; of a text of another shape the token alone is taken, which then counts alone."""
        token, *rest = text.split(" ")
        size = whole_number(rest[0]) if len(rest) == 2 else None
        return cls(token) if size is None or size >= SIZES_END else cls(token, size, rest[1])

    @property
    def text(self) -> str:
        """As it is stored: one text, since a hold may have a million of them and JSON is read up to a limit
        of values."""
        return f"{self.token} {self.size} {self.sha256}" if self.sha256 else self.token


@dataclass(frozen=True, slots=True)
class Hold(Stored):
    """What a rollback took back and the next trigger must not bring back (R23).

    :ivar files: held version tokens by URI: of each file the version that the source has, as far as known.
        It alone says which files are held, and there is nothing else in format 1.
    :ivar removals: deletions that the rollback undid.
    :ivar versions: what more is known of held files, as `HeldVersion` writes it: their content, and further
        versions. Not stored where nothing is.
    """

    files: Mapping[str, str]
    removals: tuple[str, ...]
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict, metadata=since(2))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is held."""
        return not (self.files or self.removals)

    def holds(self, file: SourceFile) -> bool:
        """Whether this version of the file is to stay out, by its token alone: content decides when a run
        looks at it (`hold.as_listed`)."""
        return any(version.token == file.fingerprint.token for version in self.versions_of(file.uri))

    def versions_of(self, uri: str) -> tuple[HeldVersion, ...]:
        """The held versions of a file, the one of `files` first."""
        if uri not in self.files:
            return ()
        first = HeldVersion(self.files[uri])
        known = [HeldVersion.read(text) for text in self.versions.get(uri, ())]
        first = next((version for version in known if version.token == first.token), first)
        return first, *(version for version in known if version.token != first.token)

    def with_versions(self, versions: Mapping[str, Sequence[HeldVersion]]) -> Hold:
        """The same removals, and these versions; a file without any is not held."""
        there = {uri: found for uri, found in versions.items() if found}
        return replace(
            self,
            files={uri: found[0].token for uri, found in there.items()},
            versions={
                uri: tuple(version.text for version in found)
                for uri, found in there.items()
                if len(found) > 1 or found[0].sha256
            },
        )


NO_HOLD = Hold(files={}, removals=())


def without_held(changes: Changes, hold: Hold) -> Changes:
    """The changes less the file versions and removals that a rollback holds back."""
    return replace(
        changes,
        new=tuple(f for f in changes.new if not hold.holds(f)),
        rewritten=tuple(f for f in changes.rewritten if not hold.holds(f)),
        deleted=tuple(u for u in changes.deleted if u not in hold.removals),
    )


def new_plan(session: str, mode: Mode, changes: Changes) -> Plan:
    """The first plan of a session (docs/design/session.md#modes-and-kinds-of-push)."""
    work = work_of(mode, changes)
    rows = tuple(
        Row(uri, ordinal, work[uri].fingerprint, RowStatus.BUILD) for ordinal, uri in enumerate(sorted(work))
    )
    return Plan(
        session=session,
        attempt=0,
        mode=mode,
        rows=rows,
        removals=_removals(mode, changes),
        touched=changes.touched,
        listing_digest=changes.listing_digest,
    )


def work_of(mode: Mode, changes: Changes) -> Mapping[str, SourceFile]:
    """The files that a session of that mode has to build (docs/design/session.md#modes-and-kinds-of-push)."""
    return changes.listed if mode is Mode.SWAP else changes.work


def is_empty(plan: Plan) -> bool:
    """Nothing to build, nothing to take away, nothing to remember."""
    return not (plan.rows or plan.removals or plan.touched)


def reconcile(plan: Plan, changes: Changes, receipts: Mapping[int, tuple[str, Receipt]]) -> Plan:
    """The plan of the next attempt, file by file.

    Source: docs/design/session.md#continuing-an-open-session.

    :param receipts: valid receipts by ordinal, each with its key (R12).
    """
    rows: list[Row] = []
    work = work_of(plan.mode, changes)
    for row in plan.rows:
        listed = changes.listed.get(row.uri)
        found = receipts.get(row.ordinal)
        if row.status is RowStatus.GONE:
            rows.append(row)
        elif listed is None:
            rows.append(replace(row, status=RowStatus.GONE, receipt=""))
        elif found is not None:
            key, receipt = found
            rows.append(replace(row, planned=receipt.read, status=RowStatus.DONE, receipt=key))
        elif row.uri not in work:
            # Back to the version that is published: built again, append would show its rows twice.
            rows.append(replace(row, status=RowStatus.GONE, receipt=""))
        else:
            # A receipt that it had is revoked (R14), also for a driver that follows one which dies now.
            rows.append(replace(row, planned=listed.fingerprint, status=RowStatus.BUILD))
    live = {r.uri for r in rows if r.status is not RowStatus.GONE}
    free = max((r.ordinal for r in rows), default=-1) + 1
    for ordinal, uri in enumerate(sorted(set(work) - live), start=free):
        rows.append(Row(uri, ordinal, work[uri].fingerprint, RowStatus.BUILD))
    return replace(
        plan,
        attempt=plan.attempt + 1,
        rows=tuple(rows),
        removals=_removals(plan.mode, changes),
        touched=changes.touched,
        listing_digest=changes.listing_digest,
    )


def unchanged(
    plan: Plan, changes: Changes, receipts: Mapping[int, tuple[str, Receipt]]
) -> dict[int, tuple[str, Receipt]]:
    """The receipts without those of files that were rewritten since.

    Otherwise a session keeps to the version that it read (F8), and the next one takes the newer. One whose
    rows did not pass an assertion would never come to its end.
    """
    rows = {row.ordinal: changes.listed.get(row.uri) for row in plan.rows}
    return {
        ordinal: (key, receipt)
        for ordinal, (key, receipt) in receipts.items()
        if (listed := rows.get(ordinal)) is None or listed.fingerprint == receipt.read
    }


def with_spent_names(
    plan: Plan, receipts: Mapping[int, tuple[str, Receipt]], spent: frozenset[str]
) -> dict[int, Receipt]:
    """Receipts of done rows that name a segment whose name is spent, by ordinal (rule R16)."""
    found = {row.ordinal: receipts[row.ordinal][1] for row in plan.done}
    return {n: r for n, r in found.items() if not spent.isdisjoint(o.segment for o in r.outputs)}


def revoked(plan: Plan, ordinals: Collection[int]) -> Plan:
    """The plan without the receipts that those rows accepted."""
    rows = (
        replace(row, status=RowStatus.BUILD, receipt="") if row.ordinal in ordinals else row
        for row in plan.rows
    )
    return replace(plan, rows=tuple(rows))


def returned(before: Plan, after: Plan, receipts: Mapping[int, tuple[str, Receipt]]) -> dict[int, Receipt]:
    """Receipts of files that were dropped and came back in the version that was built (rule R15).

    :param before: the plan that `after` was reconciled from.
    :param receipts: valid receipts by ordinal.
    :returns: by the ordinal of the file's new row.
    """
    gone = [
        receipts[r.ordinal][1] for r in before.rows if r.status is RowStatus.GONE and r.ordinal in receipts
    ]
    built = {(receipt.uri, receipt.read): receipt for receipt in gone}
    rows = ((row.ordinal, (row.uri, row.planned)) for row in after.to_build)
    return {ordinal: built[key] for ordinal, key in rows if key in built}


def accept(plan: Plan, receipts: Mapping[int, tuple[str, Receipt]]) -> Plan:
    """The plan with the receipts of its own attempt taken in."""

    def taken(row: Row) -> Row:
        found = receipts.get(row.ordinal)
        if row.status is not RowStatus.BUILD or found is None:
            return row
        key, receipt = found
        return replace(row, planned=receipt.read, status=RowStatus.DONE, receipt=key)

    return replace(plan, rows=tuple(taken(r) for r in plan.rows))


def as_built(plan: Plan) -> Plan:
    """The plan as it stands once every file of it is built."""
    rows = (
        replace(row, status=RowStatus.DONE) if row.status is RowStatus.BUILD else row for row in plan.rows
    )
    return replace(plan, rows=tuple(rows))


class Next(StrEnum):
    """What a trigger does with an unpublished session."""

    CONTINUE = "CONTINUE"
    RETRY = "RETRY"
    ABANDON_RETRIES = "ABANDON_RETRIES"
    ABANDON_CONFIG = "ABANDON_CONFIG"
    ABANDON_AUDIT = "ABANDON_AUDIT"


STALLS = 2
"""So many attempts in a row that came no further: ends without an answer count as one failure then, builds
that left nothing as trouble that passes by itself (rule R10)."""


def decide(
    *, failed: bool, same_config: bool, retry_count: int, max_retries: int, at_nobodys_fault: bool = False
) -> Next:
    """Whether to retry: the budget is read now, and only a failure spends it.

    Source: docs/design/session.md#continuing-an-open-session.

    :param failed: whether the last attempt had failed files or a failed audit, or its end twice gave no
        answer.
    :param at_nobodys_fault: whether its audit failed and named no file, so that there is nothing to build
        again (rule R14).
    """
    if not same_config:
        return Next.ABANDON_CONFIG
    if at_nobodys_fault:
        return Next.ABANDON_AUDIT
    if not failed:
        return Next.CONTINUE
    return Next.RETRY if retry_count < max_retries else Next.ABANDON_RETRIES


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


def _removals(mode: Mode, changes: Changes) -> tuple[str, ...]:
    # Append never takes rows away; swap replaces everything, so there is nothing to name.
    return tuple(sorted(changes.deleted)) if mode is Mode.SYNC else ()


# --- as an object of the staging area ------------------------------------------------------------

_ROWS = pa.schema(
    [
        pa.field("uri", pa.string(), nullable=False),
        pa.field("ordinal", pa.int64(), nullable=False),
        pa.field("size", pa.int64()),
        pa.field("mtime_us", pa.int64()),
        pa.field("etag", pa.string()),
        pa.field("version_id", pa.string()),
        pa.field("status", pa.string(), nullable=False),
        pa.field("receipt", pa.string(), nullable=False),
    ]
)
# Removals and touched files are rows, too: they may be as many as the files themselves.
_REMOVAL, _TOUCHED = "REMOVAL", "TOUCHED"
_META = frozenset({"session", "attempt", "mode", "listingDigest", FORMAT, NEEDS})


def plan_to_parquet(plan: Plan) -> bytes:
    """The plan as one Parquet object."""
    rows = [_row(r.uri, r.ordinal, r.planned, r.status, r.receipt) | dict(r.kept) for r in plan.rows]
    rows += [_row(uri, -1, None, _REMOVAL, "") for uri in plan.removals]
    rows += [_row(uri, -1, version, _TOUCHED, "") for uri, version in plan.touched.items()]
    schema = pa.schema([*_ROWS, *kept_fields(plan.rows)]).with_metadata(
        {
            "session": plan.session,
            "attempt": str(plan.attempt),
            "mode": plan.mode,
            "listingDigest": plan.listing_digest,
            **{key: str(value) for key, value in marks(plan.format).items()},
            **plan.kept,
        }
    )
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink, compression="zstd")
    return sink.getvalue()


def plan_from_parquet(data: bytes, what: str = "a plan") -> Plan:
    """Inverse of `plan_to_parquet`; what is none raises what its parsers raise.

    :param what: its address, for errors.
    :raises NeedsNewerRelease: it is of a format that this release does not know.
    """
    meta = metadata_of(data)
    number = Marks.of(meta).require_known(what)  # before its rows, which may be other ones by then
    table = table_of(data)
    require_schema(table.schema, _ROWS)
    require_values(table, _ROWS)
    unknown = [name for name in table.schema.names if name not in _ROWS.names]
    rows: list[Row] = []
    removals: list[str] = []
    touched: dict[str, Fingerprint] = {}
    for row in table.to_pylist():
        if row["status"] == _REMOVAL:
            removals.append(row["uri"])
            continue
        version = fitting(Fingerprint(row["size"], row["mtime_us"], row["etag"], row["version_id"]))
        if row["status"] == _TOUCHED:
            touched[row["uri"]] = version
            continue
        kept = {"kept": kept_of(row, unknown)} if unknown else {}
        rows.append(
            Row(row["uri"], row["ordinal"], version, RowStatus(row["status"]), row["receipt"], **kept)
        )
    return Plan(
        session=meta["session"],
        attempt=int(meta["attempt"]),
        mode=Mode(meta["mode"]),
        rows=tuple(rows),
        removals=tuple(removals),
        touched=touched,
        listing_digest=meta["listingDigest"],
        format=number,
        kept={key: value for key, value in meta.items() if key not in _META},
    )


def _row(uri: str, ordinal: int, version: Fingerprint | None, status: str, receipt: str) -> dict[str, object]:
    values = version.to_json() if version else dict.fromkeys(("size", "mtime_us", "etag", "version_id"))
    return {"uri": uri, "ordinal": ordinal, **values, "status": str(status), "receipt": receipt}
