"""Read a table's state without its lease: for the files sensor, `status` and the dashboards.

Also read its kept sessions and their files, for people. A node that cannot be read is reported, and the
others are still shown. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.text import plural
from pinot_assets.errors import SessionError, SnapshotCorrupt
from pinot_assets.session.lineage.stale_pointer import newer_than
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.stores.stored_snapshots import read_snapshots
from pinot_assets.session.values.hold import NO_HOLD, Hold
from pinot_assets.session.values.plan import Plan, Row, RowStatus
from pinot_assets.session.values.state import Owner, Pointer, Session, is_fresh, is_ours, ours_of, utc_iso
from pinot_assets.session.values.trouble import passes, stands
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef
from pinot_assets.snapshot.published_files import versions_of
from pinot_assets.snapshot.receipt import Failure, Output, Receipt
from pinot_assets.source import (
    Fingerprint,
    Inventory,
    Known,
    ObjectStore,
    Readiness,
    Rules,
    Unready,
    judge_readiness,
    take_inventory,
)
from pinot_assets.source.allowed_places import require_all_data
from pinot_assets.source.diff import differing
from pinot_assets.source.file_table import columns_of
from pinot_assets.source.file_table import files_of as files_in
from pinot_assets.source.listing import Choice
from pinot_assets.table_spec import TableSpec


@dataclass(frozen=True, slots=True)
class Observation:
    """A table's state in ZooKeeper and the staging area, as read at one moment.

    :ivar session: the open session, None when there is none.
    :ivar failures: files that failed in its last attempt.
    :ivar failed_versions: the version tokens of those files that the attempt was planned for, by URI.
    :ivar holder: who holds the lease.
    :ivar unrecorded: number of segments of ours in Pinot, if ZooKeeper has no record of the table (it was
        lost, or `forget` deleted it); else 0. The next run makes the ledger from them.
    :ivar snapshot: the ledger; None if there is none, or if the table was re-created since.
    :ivar plan: the open session's plan.
    """

    pointer: Pointer
    session: Session | None
    failures: tuple[Failure, ...]
    failed_versions: Mapping[str, str]
    holder: Owner | None
    snapshot: Snapshot | None
    hold: Hold
    plan: Plan | None = None
    unrecorded: int = 0

    @property
    def passing(self) -> bool:
        """Whether the open session has only trouble that passes, for which it is tried again."""
        if self.session is None:
            return False
        return passes(self.failures) if self.failures else stands(self.session)


@dataclass(frozen=True, slots=True)
class ListingComparison:
    """The differences between listing and ledger, by fingerprint alone: a run compares content later (E3).

    :ivar digest: digest of the files that count.
    :ivar listing: digest of all listed files, ready or not.
    :ivar later: new files that are not ready yet.
    :ivar waiting: known files that are being rewritten; the table waits for them.
    :ivar restored: held files on which source and table agree again; the next run ends their hold.
    """

    listed: int
    digest: str
    listing: str
    new: tuple[str, ...]
    rewritten: tuple[str, ...]
    deleted: tuple[str, ...]
    later: tuple[Unready, ...] = ()
    waiting: tuple[Unready, ...] = ()
    restored: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether anything differs from the ledger."""
        return bool(self.new or self.rewritten or self.deleted)

    def __str__(self) -> str:
        restored = f", {len(self.restored):,} that the hold no longer keeps out" if self.restored else ""
        new, rewritten, deleted = len(self.new), len(self.rewritten), len(self.deleted)
        return f"{new:,} new, {rewritten:,} rewritten, {deleted:,} deleted{restored}"


def observe(store: SessionStore, staging: Staging) -> Observation:
    """Read pointer, open session, ledger and hold. Writes nothing.

    :raises SessionError: a node cannot be read.
    :raises SnapshotCorrupt: the ledger cannot be read.
    """
    pointer, table = store.pointer(), store.table.removesuffix("_OFFLINE")
    session = store.active_session(pointer)
    plan = staging.plan(session.plan) if session else None
    blocking = session.failures if session and session.has_blocking_failures else None
    failures = staging.failures(blocking) if blocking else ()
    failed = {f.ordinal for f in failures}
    return Observation(
        pointer=pointer,
        session=session,
        failures=failures,
        failed_versions={
            row.uri: row.planned.token for row in (plan.rows if plan else ()) if row.ordinal in failed
        },
        holder=store.holder(),
        snapshot=_ledger(store, staging, pointer),
        hold=staging.hold(pointer.hold) if pointer.hold else NO_HOLD,
        plan=plan,
        unrecorded=len(ours_of(table, store.segment_names())) if is_fresh(pointer) else 0,
    )


def published_token(store: SessionStore) -> str:
    """Return a token of what is published; if two tokens are equal, the ledger is the same.

    :returns: "" while nothing is published, a session is open, the lease is held or a rollback holds files
        back: then the caller has to read more than the ledger.
    :raises SessionError: a node cannot be read.
    """
    pointer = store.pointer()
    if pointer.current_snapshot is None or pointer.active_session or pointer.hold or store.holder():
        return ""
    return f"{pointer.current_snapshot.sha256} of a table made at {store.table_made_ms()}"


def _ledger(store: SessionStore, staging: Staging, pointer: Pointer) -> Snapshot | None:
    if pointer.current_snapshot is None:
        return None
    snapshot = _current(staging, pointer, pointer.current_snapshot)
    table = store.table.removesuffix("_OFFLINE")
    if not is_older_than(snapshot, store.table_made_ms()):
        return snapshot
    return snapshot if any(is_ours(table, name) for name in store.segment_names()) else None


def is_older_than(published: Snapshot, made_ms: int | None) -> bool:
    """Whether Pinot made the table after this snapshot was published.

    That alone does not prove that the table was re-created, since clocks differ. A re-created table also
    holds no segment of ours; but neither does a table whose segments somebody deleted.

    :param made_ms: when Pinot made the table, None if unknown.
    """
    return made_ms is not None and bool(published.segments) and published.published_ms < made_ms


def _current(staging: Staging, pointer: Pointer, ref: SnapshotRef) -> Snapshot:
    """Return the current snapshot. If it is not kept any more, the pointer comes from an old backup; then
    return the newest snapshot, which a run will find, too."""
    try:
        return staging.snapshot(ref)
    except SnapshotCorrupt:
        newer = read_snapshots(staging, (header.ref for header in newer_than(staging, pointer)))
        if (newest := next(newer, None)) is None:
            raise
        return newest.snapshot


def list_source(
    spec: TableSpec, source: ObjectStore, on_listed: Callable[[int], None] = lambda _: None
) -> Inventory:
    """Return the files of the input directory that match the patterns, ready or not.

    :param on_listed: called with the number of objects seen so far.
    :raises ListingFailed: the listing did not complete.
    :raises SettingError: one of the files cannot be data.
    """
    chosen = choice_of(spec)
    inventory = take_inventory(
        source, include=chosen.include, exclude=chosen.exclude, marker=chosen.marker, on_listed=on_listed
    )
    require_all_data(inventory.files, spec.policy)
    return inventory


def choice_of(spec: TableSpec) -> Choice:
    """Return the patterns that choose the table's files in the input directory."""
    ingestion = spec.ingestion
    return Choice(ingestion.include, ingestion.exclude, ingestion.completeness_marker)


def judge_listing(
    spec: TableSpec, inventory: Inventory, snapshot: Snapshot | None, hold: Hold, plan: Plan | None
) -> Readiness:
    """Judge which listed files count now; the sensor and the trigger both use this function and no other.

    :param plan: the open session's plan.
    """
    rules = Rules(spec.ingestion.min_file_age_sec, spec.ingestion.completeness_marker)
    if rules == Rules():
        return Readiness(inventory, inventory)
    ledger = snapshot.ledger if snapshot else {}
    planned = [row.uri for row in plan.rows if row.status is not RowStatus.GONE] if plan else []
    versions: dict[str, list[Fingerprint]] = {uri: [] for uri in (*planned, *hold.files)}
    for uri, file in ledger.items():
        versions.setdefault(uri, []).append(file.fingerprint)
    for uri in hold.files.keys() & inventory.files.keys():
        if hold.holds(inventory.files[uri]):
            versions[uri].append(inventory.files[uri].fingerprint)
    # Append never removes rows. So the table does not wait for a file that was moved away after its build.
    removable = frozenset() if spec.mode == "append" else frozenset([*ledger, *planned])
    return judge_readiness(inventory, rules, Known(versions, removable))


def compare_listing(
    spec: TableSpec,
    inventory: Inventory,
    observation: Observation,
    differences: tuple[pa.Table, pa.Table] | None = None,
) -> ListingComparison:
    """Compare a listing with the ledger, without files that are not ready and without held ones.

    :param differences: `differing` of the whole listing and the ledger, if it is known.
    """
    hold, snapshot = observation.hold, observation.snapshot
    readiness = judge_listing(spec, inventory, snapshot, hold, observation.plan)
    counted = readiness.counted
    if differences is None or counted is not inventory:
        differences = differing(columns_of(counted.files), versions_of(snapshot.files if snapshot else ()))
    changed, known = ({file.uri: file for file in files_in(side)} for side in differences)
    free = sorted(uri for uri, file in changed.items() if not hold.holds(file))
    return ListingComparison(
        listed=len(inventory.files),
        digest=counted.digest,
        listing=inventory.digest,
        new=tuple(uri for uri in free if uri not in known),
        rewritten=tuple(uri for uri in free if uri in known),
        deleted=tuple(sorted(known.keys() - changed.keys() - set(hold.removals))),
        later=readiness.later,
        waiting=readiness.waiting,
        restored=tuple(
            sorted(
                uri for uri in {*hold.files, *hold.removals} if uri in counted.files and uri not in changed
            )
        ),
    )


def behind_since_ms(
    inventory: Inventory, listing: ListingComparison, snapshot: Snapshot | None
) -> int | None:
    """Return since when the oldest new or rewritten file waits, epoch milliseconds; None if none waits.

    It waits since it was written, but no longer than the snapshot that lacks it exists: a copy may keep an
    old date.
    """
    published_ms = snapshot.published_ms if snapshot is not None else 0
    files = [inventory.files[uri] for uri in (*listing.new, *listing.rewritten)]
    written_ms = min((file.fingerprint.mtime_us // 1000 for file in files), default=None)
    return None if written_ms is None else max(written_ms, published_ms)


# --- the kept sessions and their files, for people ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class UnreadableSession:
    """A session whose node cannot be read.

    :ivar node: `cp17`.
    """

    node: str
    why: str


class FileStatus(StrEnum):
    """The status of a file in a session, for people."""

    DONE = "done"
    FAILED = "failed"
    PENDING = "pending"
    GONE = "gone"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class FileState:
    """One file of a session.

    :ivar planned: token of the version in the plan; "" for a removal.
    :ivar receipt: key of the receipt in the staging area; "" if there is none or it was deleted.
    :ivar rows: None without a receipt.
    :ivar failure: code and reason of the last attempt's failure, else "".
    """

    uri: str
    status: FileStatus
    planned: str = ""
    receipt: str = ""
    rows: int | None = None
    segments: tuple[str, ...] = ()
    failure: str = ""


def kept_sessions(store: SessionStore) -> list[Session | UnreadableSession]:
    """The kept sessions, newest first."""
    sessions: list[Session | UnreadableSession] = []
    for node in reversed(store.session_nodes()):
        try:
            sessions.append(store.session(node))
        except SessionError as error:
            sessions.append(UnreadableSession(node, error.why or error.what))
    return sessions


def session_files(staging: Staging, session: Session) -> Iterator[FileState]:
    """Every file of a session as of its newest plan, in the plan's order, removals last.

    :raises SourceError: plan or failures cannot be read.
    """
    plan = staging.plan(session.plan)
    receipts = staging.receipts(plan)
    packed = {  # a packed file is in the segments of its pack
        member.uri: receipts[row.ordinal][1].outputs
        for row in plan.packs_done
        if row.ordinal in receipts
        for member in staging.members(row.uri).members
    }
    failed = staging.failures(session.failures) if session.failures is not None else ()
    failures = {f.ordinal: f"{f.code}: {f.reason}" for f in failed}
    for row in plan.rows:
        failure = failures.get(row.ordinal, "")
        yield _state(row, receipts.get(row.ordinal), failure, packed.get(row.uri, ()))
    for uri in plan.removals:
        yield FileState(uri, FileStatus.REMOVED)


def _state(
    row: Row, accepted: tuple[str, Receipt] | None, failure: str, packed: Sequence[Output]
) -> FileState:
    if row.status is RowStatus.GONE:
        return FileState(row.uri, FileStatus.GONE, row.planned.token)
    if failure:
        return FileState(row.uri, FileStatus.FAILED, row.planned.token, failure=failure)
    if accepted is None:
        # The receipts of an abandoned session are deleted, so a file can be DONE without one.
        done = row.status is RowStatus.DONE
        return FileState(row.uri, FileStatus.DONE if done else FileStatus.PENDING, row.planned.token)
    key, receipt = accepted
    return FileState(
        row.uri,
        FileStatus.DONE,
        row.planned.token,
        key,
        receipt.rows,
        tuple(output.segment for output in (*receipt.outputs, *packed)),
    )


def session_values(session: Session) -> JsonObject:
    """A session as plain values, for JSON; times as `…Ms` in epoch milliseconds, 0 for never, and as `…At` in
    ISO 8601, None for never."""
    return {
        "node": session.node,
        "id": session.id,
        "mode": session.mode,
        "askedBy": session.asked_by or None,
        "state": session.state,
        "outcome": session.outcome,
        "retryCount": session.retry_count,
        "attempt": session.attempt,
        "createdMs": session.created_ms,
        "createdAt": utc_iso(session.created_ms),
        "attemptStartedMs": session.attempt_started_ms,
        "attemptStartedAt": utc_iso(session.attempt_started_ms),
        "switchMs": session.switch_ms,
        "switchAt": utc_iso(session.switch_ms),
        "doneMs": session.done_ms,
        "doneAt": utc_iso(session.done_ms),
        "files": dict(session.counts),
        "switch": session.switch,
        "lineageEntry": session.lineage_entry_id,
        "endIssued": session.end_issued,
        "auditPassed": None if session.audit is None else session.audit.passed,
        "lastError": session.last_error,
    }


def counts_text(session: Session) -> str:
    """Files by status, `5 files: 3 done, 2 failed`."""
    counts = dict(session.counts)
    files, removals = counts.pop("files", 0), counts.pop("removals", 0)
    parts = [f"{n:,} {what}" for what, n in counts.items() if n]
    if removals:
        parts.append(plural(removals, "removal"))
    return plural(files, "file") + (f": {', '.join(parts)}" if parts else "")
