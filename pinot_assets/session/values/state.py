"""What ZooKeeper remembers of a table: the pointer and its sessions (docs/design/session.md#zookeeper).

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
from pinot_assets.core.stored_format import FIRST, RELEASES, Marks, Open, Stored, since, structured
from pinot_assets.core.untrusted import read_json
from pinot_assets.session.values import znrecord
from pinot_assets.snapshot.manifest import SnapshotRef


class State(StrEnum):
    """How far a session is: StarTree's four states (docs/design/session.md#f13)."""

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

    :ivar waits: nothing was found wrong with what was built; servers still load, say. Not a retry (R10).
    :ivar of_data: the rows of the files failed it; those of a file that was rewritten since may pass.
    :ivar checks: every check that was made; empty in a receipt of a release that did not keep them.
    :ivar policy: digest of what the table spec asked for (`Audit.digest`); empty likewise.
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
        """Whether it failed, and the next look may pass though nobody changed anything: servers were down."""
        return not self.passed and self.waits and not self.of_data


@dataclass(frozen=True, slots=True)
class Pointer(Stored):
    """The one node where races are decided.

    :ivar epoch: grows by one with each owner; fences every write.
    :ivar hold: object with the versions that a rollback took back (rule R23).
    :ivar format: the table's: what a new session writes is of it.
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

    :ivar id: `cp<seq>-<nonce>`; the nonce keeps a dropped and re-created table from meeting old names (R17).
    :ivar attempt: grows with every reconcile; stands in segment names (R16).
    :ivar switch: number of the newest switch written, 0 before the first.
    :ivar switch_attempt: the attempt whose plan that switch publishes; while it is not `attempt`, the plan
        has moved on and the switch must not be ended.
    :ivar end_issued: the lineage entry whose `endReplaceSegments` was sent (R3).
    :ivar revert_issued: the one whose `revertReplaceSegments` was sent.
    :ivar stalls: attempts in a row that neither failed nor came further: an end without an answer, a build
        without a new receipt. Two such ends count as one failure, two such builds are trouble (rule R10).
    :ivar target: the snapshot that a ROLLBACK session restores.
    :ivar counts: files by status.
    :ivar trouble_since_ms: since when each attempt met only trouble that passes by itself (`trouble.py`): in
        its build or, in SWITCH, with its servers; 0 without any. Not written in format 1, whose release drops
        it: there the clock begins anew with each attempt.
    :ivar push: what it shows at one instant; stored, since a change of the table spec must not change what
        a session that has begun to publish may do.
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

    @property
    def node(self) -> str:
        """Name of its ZNode, `cp<seq>`."""
        return f"cp{self.seq}"

    @property
    def has_blocking_failures(self) -> bool:
        """Whether files that failed keep back all the others."""
        alone = self.push is PushKind.PLAIN and self.outcome is not Outcome.ABANDONED_RETRIES
        return self.failures is not None and not alone

    @property
    def refused_without_switch(self) -> bool:
        """Whether its audit failed where nothing was to be switched: no segment came or went."""
        return self.state is State.IN_PROGRESS and self.audit is not None and not self.audit.passed

    @property
    def passed_without_switch(self) -> bool:
        """Whether its audit, looked at again, passed where nothing is to be switched."""
        return self.state is State.IN_PROGRESS and self.audit is not None and self.audit.passed

    @property
    def end_sent(self) -> bool:
        """Whether the end of its lineage entry was sent: it may complete at any moment."""
        return bool(self.end_issued) and self.end_issued == self.lineage_entry_id

    @property
    def revert_sent(self) -> bool:
        """Whether a revert of its lineage entry was sent: it may happen at any moment, however long the
        answer has been overdue, so that entry must never be ended."""
        return bool(self.revert_issued) and self.revert_issued == self.lineage_entry_id

    @property
    def gate_open(self) -> bool:
        """Whether the audit passed for exactly the switch that stands now."""
        return (
            self.audit is not None
            and self.audit.passed
            and self.switch_object is not None
            and self.audit.switch == self.switch
            and self.audit.switch_sha256 == self.switch_object.sha256
        )

    def gate_open_by(self, policy: str) -> bool:
        """Whether it passed all that is asked for now: a table spec may have become stricter since."""
        return self.gate_open and self.audit is not None and self.audit.policy == policy


def given_up(last: Session | None) -> Session | None:
    """The newest session, if its one run ended with nothing published: it was closed at once (E16).

    :param last: the newest session, which is not open; None where there is none that can be read.
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


def new_session_id(seq: int) -> str:
    """`cp<seq>-<six random hex digits>` (rule R17)."""
    return f"cp{seq}-{secrets.token_hex(3)}"


_OURS = re.compile(r"(?P<table>.+)__cp(?P<seq>[0-9]+)-[0-9a-f]{6}_[0-9]+_[0-9]+_[0-9]+")


def is_ours(table: str, segment: str) -> bool:
    """Whether a segment name was given by this project to this (raw) table."""
    return table_of(segment) == table


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
"""Stands behind the epoch of a pointer that is not of format 1: release 0.1.0, which knows no formats, cannot
read the number then, stops before it does anything, and shows this text as the reason."""

_LATER = frozenset({"failures", "switch_object", "revert_issued", "audit", "stalls", "target", "push"})
"""Fields of a session that the first ones did not have, or that are empty in most."""


def pointer_to_bytes(pointer: Pointer) -> bytes:
    """The pointer as a ZNRecord."""
    data = znrecord.to_bytes(pointer, "consistentPush", lists=("history",))
    if pointer.format == FIRST:
        return data
    record = read_json(data)
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
    """The session as a ZNRecord; `state` and `retryCount` are where StarTree has them.

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
    """The one that opened the gate for a snapshot. None of a rollback, which tells there what it went back
    from: what it shows was audited when it was new.

    :param values: as the snapshot's header holds them; what an earlier rollback left may stand there, too.
    """
    try:
        return structured(AuditReceipt, values, "the receipt of an audit") if "passed" in values else None
    except ValueError:
        return None  # for people alone: what is published does not hang on it


def close(session: Session, outcome: Outcome, now_ms: int) -> Session:
    """The session with its outcome written; DONE only for those that reached it."""
    state = State.DONE if outcome in (Outcome.PUBLISHED, Outcome.NOOP) else session.state
    return replace(session, state=state, outcome=outcome, done_ms=now_ms, trouble_since_ms=0)
