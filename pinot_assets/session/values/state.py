"""What ZooKeeper stores for a table: the pointer and the sessions (docs/design/session.md#zookeeper).

Both are stored as Helix ZNRecords (`znrecord`), so that Pinot's own ZooKeeper browser shows them.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.stored_format import FIRST, RELEASES, Marks, Open, Stored, added, since, structured
from pinot_assets.core.untrusted import fields_of_json
from pinot_assets.session.values import znrecord
from pinot_assets.snapshot.manifest import SnapshotRef


class State(StrEnum):
    """The progress of a session: StarTree's four states (docs/design/session.md#f13)."""

    INIT = "INIT"
    IN_PROGRESS = "IN_PROGRESS"
    SWITCH = "SWITCH"
    DONE = "DONE"


class Mode(StrEnum):
    """What a session does with the table's visible segments.

    Source: docs/design/session.md#modes-and-kinds-of-push.
    """

    APPEND = "APPEND"
    SYNC = "SYNC"
    SWAP = "SWAP"
    ROLLBACK = "ROLLBACK"


class PushKind(StrEnum):
    """What becomes visible at one instant (docs/design/session.md#kinds-of-push)."""

    CONSISTENT = "CONSISTENT"
    """All files of a session, however many runs they take."""
    ATOMIC = "ATOMIC"
    """All files of one run, or none."""
    PLAIN = "PLAIN"
    """Each file on its own."""


class Outcome(StrEnum):
    """How a session ended; OPEN while it has not."""

    OPEN = ""
    PUBLISHED = "PUBLISHED"
    NOOP = "NOOP"
    ABANDONED_RETRIES = "ABANDONED_RETRIES"
    ABANDONED_CONFIG = "ABANDONED_CONFIG"
    ABANDONED_AUDIT = "ABANDONED_AUDIT"
    CLEARED = "CLEARED"


@dataclass(frozen=True, slots=True)
class Owner(Open):
    """Who holds the lease."""

    run: str
    host: str
    pid: int
    since_ms: int

    def __str__(self) -> str:
        return f"{self.run} on {self.host} (pid {self.pid}) since {utc_text(self.since_ms)}"


@dataclass(frozen=True, slots=True)
class ObjectRef(Open):
    """An immutable object of the staging area, named by key and content."""

    key: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Checked(Open):
    """The numbers of one check of an audit, for dashboards; its sentence is in the summary."""

    name: str
    passed: bool
    expected: int | float
    found: int | float


@dataclass(frozen=True, slots=True)
class AuditReceipt(Open):
    """The proof that opens the gate, bound to one switch by number *and* content (rule R8).

    :ivar waits: no finding blames a built file; for example, servers still load. It spends no retry (R10).
    :ivar of_data: the audit failed because of rows in the files; it may pass once such a file is rewritten.
    :ivar checks: every check that was made; empty in receipts of releases that did not store them.
    :ivar policy: digest of the table spec's audit settings (`Audit.digest`); "" in such old receipts.
    """

    switch: int
    switch_sha256: str
    passed: bool
    at_ms: int
    summary: str
    waits: bool = False
    of_data: bool = False
    checks: tuple[Checked, ...] = ()
    policy: str = ""

    @property
    def may_pass(self) -> bool:
        """Whether the audit failed and may pass next time without any change: servers were down."""
        return not self.passed and self.waits and not self.of_data


@dataclass(frozen=True, slots=True)
class Pointer(Stored):
    """The one node that decides races between drivers.

    :ivar epoch: grows by one with each owner; fences every write.
    :ivar hold: the object that stores the hold of a rollback (rule R23).
    :ivar format: the table's format; a new session writes it.
    """

    active_session: str = ""
    epoch: int = 0
    owner: Owner | None = None
    next_seq: int = 1
    history: tuple[str, ...] = ()
    current_snapshot: SnapshotRef | None = None
    clear_token: str = ""
    hold: ObjectRef | None = None


@dataclass(frozen=True, slots=True)
class Session(Stored):
    """One consistent-push session.

    :ivar id: `cp<seq>-<nonce>`; with the nonce, a dropped and re-created table never repeats old names (R17).
    :ivar attempt: grows with every reconcile; part of segment names (R16).
    :ivar switch: number of the newest switch written, 0 before the first.
    :ivar switch_attempt: the attempt whose plan that switch publishes; if it is not `attempt`, there is a
        newer plan, and the switch must not be ended.
    :ivar end_issued: the lineage entry whose `endReplaceSegments` was sent (R3).
    :ivar revert_issued: the lineage entry whose `revertReplaceSegments` was sent.
    :ivar stalls: attempts in a row that neither failed nor made progress: an end without an answer, a build
        without a new receipt. Two such ends count as one failure, two such builds are trouble (rule R10).
    :ivar target: the snapshot that a ROLLBACK session restores.
    :ivar counts: files by status.
    :ivar trouble_since_ms: since when every attempt met only trouble that passes (`trouble.py`): in its build
        or, in SWITCH, with its servers; 0 without trouble. Format 1 does not store it, since its release
        drops it: there, the time starts again with each attempt.
    :ivar push: the kind of push; stored, since a change of the table spec must not change the rules for a
        session that has begun to publish.
    :ivar asked_by: who asked for its newest attempt: a person, a sensor, a schedule; "" if not known.
    """

    id: str
    seq: int
    mode: Mode
    config_fingerprint: str
    created_ms: int
    plan: ObjectRef
    state: State = State.INIT
    outcome: Outcome = Outcome.OPEN
    retry_count: int = 0
    attempt: int = 0
    attempt_started_ms: int = 0
    failures: ObjectRef | None = None
    switch: int = 0
    switch_object: ObjectRef | None = None
    switch_attempt: int = 0
    switch_ms: int = 0
    lineage_entry_id: str = ""
    end_issued: str = ""
    revert_issued: str = ""
    audit: AuditReceipt | None = None
    stalls: int = 0
    target: SnapshotRef | None = None
    done_ms: int = 0
    last_error: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    push: PushKind = PushKind.CONSISTENT
    trouble_since_ms: int = field(default=0, metadata=since(2))
    asked_by: str = field(default="", metadata=added(2))

    @property
    def node(self) -> str:
        """Name of its ZNode, `cp<seq>`."""
        return f"cp{self.seq}"

    @property
    def has_blocking_failures(self) -> bool:
        """Whether failed files keep all other files from being published."""
        alone = self.push is PushKind.PLAIN and self.outcome is not Outcome.ABANDONED_RETRIES
        return self.failures is not None and not alone

    @property
    def refused_without_switch(self) -> bool:
        """Whether its audit failed and it has nothing to switch: no segment is added or removed."""
        return self.state is State.IN_PROGRESS and self.audit is not None and not self.audit.passed

    @property
    def passed_without_switch(self) -> bool:
        """Whether its repeated audit passed and it has nothing to switch."""
        return self.state is State.IN_PROGRESS and self.audit is not None and self.audit.passed

    @property
    def end_sent(self) -> bool:
        """Whether the end of its lineage entry was sent: Pinot may complete the entry at any moment."""
        return bool(self.end_issued) and self.end_issued == self.lineage_entry_id

    @property
    def revert_sent(self) -> bool:
        """Whether a revert of its lineage entry was sent. Even without an answer for a long time, Pinot may
        carry it out at any moment, so that entry must never be ended."""
        return bool(self.revert_issued) and self.revert_issued == self.lineage_entry_id

    @property
    def gate_open(self) -> bool:
        """Whether the audit passed for exactly the session's newest switch."""
        return (
            self.audit is not None
            and self.audit.passed
            and self.switch_object is not None
            and self.audit.switch == self.switch
            and self.audit.switch_sha256 == self.switch_object.sha256
        )

    def gate_open_by(self, policy: str) -> bool:
        """Whether the gate is open and the audit used this policy: the spec may be stricter by now."""
        return self.gate_open and self.audit is not None and self.audit.policy == policy


def given_up(last: Session | None) -> Session | None:
    """Return an atomic or plain session whose run published nothing and closed it (E16); else None.

    :param last: the newest session, which is not open; None if there is none or it cannot be read.
    """
    if last is None or last.push is PushKind.CONSISTENT or last.failures is None:
        return None
    return last if last.outcome is Outcome.ABANDONED_RETRIES else None


def utc_text(ms: int) -> str:
    """Epoch milliseconds for people."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(ms / 1000))
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms, which is no time of this calendar"


def utc_iso(ms: int | None) -> str | None:
    """Return epoch milliseconds as ISO 8601 for other programs, `2026-11-24T10:00:00Z`; None for 0, for None
    and for no time of the calendar."""
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ms / 1000)) if ms else None
    except (OverflowError, ValueError, OSError):
        return None


def new_session_id(seq: int) -> str:
    """`cp<seq>-<six random hex digits>` (rule R17)."""
    return f"cp{seq}-{secrets.token_hex(3)}"


_OURS = re.compile(r"(?P<table>.+)__cp(?P<seq>[0-9]+)-[0-9a-f]{6}_[0-9]+_[0-9]+_[0-9]+")


def is_ours(table: str, segment: str) -> bool:
    """Whether a segment name was given by this project to this (raw) table."""
    return table_of(segment) == table


def is_fresh(pointer: Pointer) -> bool:
    """Whether the pointer was never set: a new table, a dropped and re-created one, or a lost node."""
    return pointer.current_snapshot is None and pointer.next_seq == 1 and not pointer.history


def ours_of(table: str, segments: Iterable[str]) -> frozenset[str]:
    """Those of these segments whose names this project gave to this (raw) table."""
    return frozenset(name for name in segments if is_ours(table, name))


def table_of(segment: str) -> str | None:
    """Raw table name in one of our segment names, None for a foreign name."""
    match = _OURS.fullmatch(segment)
    return match["table"] if match else None


def seq_of(segment: str) -> int | None:
    """Session number in one of our segment names, None for a foreign name."""
    match = _OURS.fullmatch(segment)
    return int(match["seq"]) if match else None


# --- as ZNodes -----------------------------------------------------------------------------------

EPOCH_NEEDS = " (needs pinot-assets {} or newer)"
"""Text after the epoch of a pointer that is not of format 1. Release 0.1.0 does not know formats: it cannot
read such a number, stops before it does anything, and shows this text as the reason."""

_LATER = frozenset({"failures", "switch_object", "revert_issued", "audit", "stalls", "target", "push"})
"""Fields that the first sessions did not have, or that are empty in most sessions."""


def pointer_to_bytes(pointer: Pointer) -> bytes:
    """The pointer as a ZNRecord."""
    data = znrecord.to_bytes(pointer, "consistentPush", lists=("history",))
    if pointer.format == FIRST:
        return data
    record = fields_of_json(data)
    record["simpleFields"]["epoch"] += EPOCH_NEEDS.format(RELEASES[pointer.format])
    return json.dumps(record, indent=2).encode()


def pointer_from_bytes(data: bytes, what: str = "a consistent-push pointer") -> Pointer:
    """Inverse of `pointer_to_bytes`.

    :param what: its address, for errors.
    :raises NeedsNewerRelease: it is of a format that this release does not know.
    :raises ValueError: the node does not hold a pointer.
    """
    record = znrecord.record_of(data)
    texts = record["simpleFields"]
    if Marks.of(texts).require_known(what) != FIRST and isinstance(texts.get("epoch"), str):
        texts["epoch"] = texts["epoch"].partition(" ")[0]
        data = json.dumps(record).encode()
    return znrecord.from_bytes(Pointer, data, what, lists=("history",))


def session_to_bytes(session: Session) -> bytes:
    """The session as a ZNRecord; `state` and `retryCount` are the fields that StarTree uses.

    Source: docs/design/session.md#f13.
    """
    return znrecord.to_bytes(session, session.node, dump=partial(json.dumps, sort_keys=True))


def session_from_bytes(data: bytes, what: str = "a consistent-push session") -> Session:
    """Inverse of `session_to_bytes`.

    :param what: its address, for errors.
    :raises NeedsNewerRelease: it is of a format that this release does not know.
    :raises ValueError: the node does not hold a session.
    """
    return znrecord.from_bytes(Session, data, what, later=_LATER)


def published_audit(values: JsonMapping) -> AuditReceipt | None:
    """Return the audit receipt that opened the gate for a snapshot. A rollback's snapshot has none: it stores
    what it left there instead, and its segments were audited when they were new.

    :param values: `audit` of the snapshot's header; it may also name what an earlier rollback left.
    """
    try:
        return structured(AuditReceipt, values, "the receipt of an audit") if "passed" in values else None
    except ValueError:
        return None  # only people read it: publishing does not depend on it


def ended(session: Session, outcome: Outcome, now_ms: int) -> Session:
    """Return the session with its outcome; its state becomes DONE only for PUBLISHED and NOOP."""
    state = State.DONE if outcome in (Outcome.PUBLISHED, Outcome.NOOP) else session.state
    return replace(session, state=state, outcome=outcome, done_ms=now_ms, trouble_since_ms=0)
