"""The kept sessions of a table and their files, for people. Needs no lease and writes nothing.

A node that cannot be read is told of and keeps nobody from seeing the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.text import plural
from pinot_assets.errors import SessionError
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.plan import Row, RowStatus
from pinot_assets.session.values.state import Session
from pinot_assets.snapshot.receipt import Receipt


@dataclass(frozen=True, slots=True)
class UnreadableSession:
    """A session whose node cannot be read.

    :ivar node: `cp17`.
    """

    node: str
    why: str


class FileStatus(StrEnum):
    """What became of a file in a session."""

    DONE = "done"
    FAILED = "failed"
    PENDING = "pending"
    GONE = "gone"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class FileState:
    """One file of a session.

    :ivar planned: token of the version that the plan names; "" for a removal.
    :ivar receipt: key of the receipt in the staging area; "" where there is none, or no more.
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
    found: list[Session | UnreadableSession] = []
    for node in reversed(store.session_nodes()):
        try:
            found.append(store.session(node))
        except SessionError as error:
            found.append(UnreadableSession(node, error.why or error.what))
    return found


def files_of(staging: Staging, session: Session) -> Iterator[FileState]:
    """Every file of a session as of its newest plan, in the plan's order, removals last.

    :raises SourceError: plan or failures cannot be read.
    """
    plan = staging.plan(session.plan)
    receipts = staging.receipts(plan)
    failed = staging.failures(session.failures) if session.failures is not None else ()
    failures = {f.ordinal: f"{f.code}: {f.reason}" for f in failed}
    for row in plan.rows:
        yield _state(row, receipts.get(row.ordinal), failures.get(row.ordinal, ""))
    for uri in plan.removals:
        yield FileState(uri, FileStatus.REMOVED)


def _state(row: Row, found: tuple[str, Receipt] | None, failure: str) -> FileState:
    if row.status is RowStatus.GONE:
        return FileState(row.uri, FileStatus.GONE, row.planned.token)
    if failure:
        return FileState(row.uri, FileStatus.FAILED, row.planned.token, failure=failure)
    if found is None:
        # An abandoned session's receipts are deleted: what was done is not there any more.
        done = row.status is RowStatus.DONE
        return FileState(row.uri, FileStatus.DONE if done else FileStatus.PENDING, row.planned.token)
    key, receipt = found
    return FileState(
        row.uri,
        FileStatus.DONE,
        row.planned.token,
        key,
        receipt.rows,
        tuple(output.segment for output in receipt.outputs),
    )


def session_values(session: Session) -> JsonObject:
    """A session as plain values, for JSON; times in epoch milliseconds, 0 for never."""
    return {
        "node": session.node,
        "id": session.id,
        "mode": session.mode,
        "state": session.state,
        "outcome": session.outcome,
        "retryCount": session.retry_count,
        "attempt": session.attempt,
        "createdMs": session.created_ms,
        "attemptStartedMs": session.attempt_started_ms,
        "switchMs": session.switch_ms,
        "doneMs": session.done_ms,
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
    parts = [f"{n} {what}" for what, n in counts.items() if n]
    if removals:
        parts.append(plural(removals, "removal"))
    return plural(files, "file") + (f": {', '.join(parts)}" if parts else "")
