"""One look at a table and everything around it: reads each thing once, takes no lease, writes nothing.

A reading is made when a check first needs it, and is remembered; so is its failure. What cannot be read fails
only the checks that need it, and is not waited for twice.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TypeVar, cast

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.errors import PinotError, SourceError
from pinot_assets.health.readings import (
    Attempts,
    Loaded,
    ReferencedObjects,
    SourceDifference,
    difference,
    still_there,
)
from pinot_assets.pinot import versions
from pinot_assets.pinot.api import PinotClient, ServerDisk
from pinot_assets.pinot.client.user_rights import NoRights
from pinot_assets.pinot.http_client import HttpPinotClient
from pinot_assets.pinot.lineage import Lineage, Replicas
from pinot_assets.session.detect.observe import Observation, judge_listing, list_source, observe
from pinot_assets.session.lineage.stale_pointer import published
from pinot_assets.session.recover.interrupted import unknown_of
from pinot_assets.session.stores.clients import open_session_store, open_source, open_staging
from pinot_assets.session.stores.session_store import KEPT_SESSIONS, SessionStore
from pinot_assets.session.stores.staging import Staging, staged
from pinot_assets.session.stores.stored_snapshots import before, revertible, snapshot_headers
from pinot_assets.session.values.hold import NO_HOLD, Hold
from pinot_assets.session.values.outdated import RebuildNeed, need_of_listing, outdated
from pinot_assets.session.values.state import Mode, ObjectRef, Outcome, Owner, Pointer, PushKind, Session
from pinot_assets.settings.environment import Settings
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.receipt import Failure, Output
from pinot_assets.source import Inventory, ObjectStore
from pinot_assets.source.readiness import Readiness
from pinot_assets.source.uris import parse_root
from pinot_assets.table_spec import TableSpec
from pinot_assets.table_spec.tables.drift import held_table_config

T = TypeVar("T")

MOST_OBJECTS = 200_000
"""Maximum of staged objects that a look lists: that takes about 40 s on an object store."""

_FAILURES = re.compile(
    r"sessions/(?P<session>[^/]+)/failures-(?P<attempt>\d+)-(?P<sha256>[0-9a-f]{64})\.json"
)


@dataclass(frozen=True, slots=True)
class Ports:
    """Opens what a look reads, when it first needs it."""

    store: Callable[[], SessionStore]
    pinot: Callable[[], PinotClient]
    source: Callable[[], ObjectStore]
    staging: Callable[[], Staging]


@contextmanager
def open_table_probe(spec: TableSpec, settings: Callable[[], Settings]) -> Iterator[TableProbe]:
    """Yield a look at a table; connections are made when first needed and closed at the end.

    :param settings: returns where Pinot is; what it raises is the result of every check that needs Pinot.
    """
    with ExitStack() as stack:
        ports = Ports(
            store=lambda: stack.enter_context(open_session_store(spec, settings())),
            pinot=lambda: stack.enter_context(HttpPinotClient(settings().pinot)),
            source=lambda: open_source(spec),
            staging=lambda: open_staging(spec),
        )
        yield TableProbe(spec, ports, time.time_ns() // 1_000_000)


def read_once(read: Callable[[TableProbe], T]) -> Callable[[TableProbe], T]:
    """A reading, which is read when it is first asked for and kept.

    What it raised is raised again, without another try.
    """
    name = read.__name__

    @wraps(read)
    def reading(probe: TableProbe) -> T:
        if name in probe.failures:
            raise probe.failures[name]
        if name not in probe.readings:
            try:
                probe.readings[name] = read(probe)
            except Exception as error:
                probe.failures[name] = error
                raise
        return cast(T, probe.readings[name])

    return reading


class TableProbe:
    """A look at one table at about one moment.

    :ivar now_ms: that moment, epoch milliseconds.
    :ivar readings: name → what was read; `failures`: name → why it could not be read.
    """

    def __init__(self, spec: TableSpec, ports: Ports, now_ms: int) -> None:
        self.spec = spec
        self.now_ms = now_ms
        self.readings: JsonObject = {}
        self.failures: dict[str, Exception] = {}
        self._ports = ports

    def ask_if_moved(self) -> bool:
        """Return whether a run has changed the session since, so that the readings do not fit together."""
        try:
            pointer = self._store().pointer()
            return (pointer, self._store().active_session(pointer)) != (self.pointer(), self.session())
        except Exception:
            return False  # the checks that need it report this

    # --- ZooKeeper -----------------------------------------------------------------------------------

    @read_once
    def _store(self) -> SessionStore:
        return self._ports.store()

    @read_once
    def pointer(self) -> Pointer:
        """The table's pointer."""
        return self._store().pointer()

    @read_once
    def session(self) -> Session | None:
        """The open session."""
        return self._store().active_session(self.pointer())

    @read_once
    def holder(self) -> Owner | None:
        """Who holds the lease."""
        return self._store().holder()

    @read_once
    def observation(self) -> Observation:
        """Pointer, session, ledger and hold together, as the sensors read them."""
        return observe(self._store(), self.staging())

    @read_once
    def newest_session(self) -> Session | None:
        """The newest session, open or closed."""
        return self._store().newest_session()

    @read_once
    def session_nodes(self) -> list[str]:
        """Names of all session nodes, oldest first."""
        return self._store().session_nodes()

    @read_once
    def kept_sessions(self) -> list[Session]:
        """The newest sessions, the open one included, oldest first."""
        return [self._store().session(node) for node in self.session_nodes()[-KEPT_SESSIONS:]]

    # --- source and staging area ---------------------------------------------------------------------

    @read_once
    def inventory(self) -> Inventory:
        """The listing of the input directory."""
        return list_source(self.spec, self._ports.source())

    @read_once
    def listing(self) -> Readiness:
        """The listing as a trigger would judge it now: files that are still being written do not count."""
        session = self.session()
        plan = self.staging().plan(session.plan) if session else None
        return judge_listing(self.spec, self.inventory(), self.snapshot(), self.hold(), plan)

    @read_once
    def difference(self) -> SourceDifference:
        """How the listing differs from the ledger."""
        snapshot = self.snapshot()
        ledger = snapshot.ledger if snapshot else {}
        published = {uri: file.fingerprint for uri, file in ledger.items()}
        return difference(published, self.listing(), self.hold())

    @read_once
    def rebuild_need(self) -> RebuildNeed:
        """The published files that the table spec would build otherwise."""
        if not outdated(self.spec, self.snapshot()).older:
            return RebuildNeed()
        difference = self.difference()
        unready = {u.uri for u in (*self.listing().later, *self.listing().waiting)}
        rewritten = (*difference.stale, *unready)
        return need_of_listing(self.spec, self.snapshot(), self.hold(), rewritten, difference.extra)

    @read_once
    def unready_since_ms(self) -> Mapping[str, int]:
        """When each file that is not ready was last written, epoch milliseconds by URI; without a file that
        has gone from a directory that is being rewritten."""
        unready = (*self.listing().later, *self.listing().waiting)
        files = self.inventory().files
        return {u.uri: files[u.uri].fingerprint.mtime_us // 1000 for u in unready if u.uri in files}

    @read_once
    def waiting_since_ms(self) -> Mapping[str, int]:
        """When each new or rewritten file was last written, epoch milliseconds by URI."""
        files = self.inventory().files
        return {uri: files[uri].fingerprint.mtime_us // 1000 for uri in self.difference().waiting}

    @read_once
    def staging(self) -> Staging:
        """The table's folder of the staging area."""
        return self._ports.staging()

    @read_once
    def snapshot(self) -> Snapshot | None:
        """The ledger.

        :raises SnapshotCorrupt: it is damaged.
        """
        ref = self.pointer().current_snapshot
        return self.staging().snapshot(ref) if ref else None

    @read_once
    def before(self) -> Snapshot | None:
        """The snapshot to which a rollback leads."""
        snapshot = self.snapshot()
        kept = before(self.staging(), snapshot) if snapshot else None
        return kept.snapshot if kept else None

    @read_once
    def hold(self) -> Hold:
        """The versions and removals that a rollback holds back."""
        hold = self.pointer().hold
        return self.staging().hold(hold) if hold else NO_HOLD

    @read_once
    def staged(self) -> Mapping[str, int]:
        """Every object of the staging area: key → bytes."""
        store = self.staging().store
        staged: dict[str, int] = {}
        if not store.exists_root():
            return staged  # nothing was ever staged
        for info in store.list():
            if len(staged) == MOST_OBJECTS:
                raise SourceError(
                    f"{store.uri} has more than {MOST_OBJECTS} objects",
                    why="the status does not list more",
                    hint="keep fewer snapshots, and run `pinot-assets gc` for the table",
                )
            staged[info.key] = info.fingerprint.size
        return staged

    @read_once
    def attempts(self) -> Attempts:
        """The failures of each attempt of the kept sessions."""
        kept = {session.id for session in self.kept_sessions()}
        by_attempt: dict[tuple[str, int], tuple[Failure, ...]] = {}
        for key in self.staged():
            match = _FAILURES.fullmatch(key)
            if match and match["session"] in kept:
                attempt = (match["session"], int(match["attempt"]))
                failures = self.staging().failures(ObjectRef(key, match["sha256"]))
                by_attempt[attempt] = by_attempt.get(attempt, ()) + failures
        return by_attempt

    @read_once
    def failing_now(self) -> tuple[Failure, ...]:
        """Failures of the open session's last attempt; without an open session, `left_out`."""
        if (session := self.session()) is None:
            return self.left_out()
        return self.staging().failures(session.failures) if session.failures else ()

    @read_once
    def left_out(self) -> tuple[Failure, ...]:
        """Files that the last session, given up or a plain push, left out, and that are still unchanged."""
        last = next(iter(self.kept_sessions()[-1:]), None)
        if self.session() is not None or last is None or last.failures is None:
            return ()
        by_plain_push = last.push is PushKind.PLAIN and last.outcome is Outcome.PUBLISHED
        if not by_plain_push and last.outcome is not Outcome.ABANDONED_RETRIES:
            return ()
        failures = self.staging().failures(last.failures)
        return still_there(failures, self.staging().plan(last.plan), self.inventory().files)

    def staging_disk(self) -> tuple[str, int, int] | None:
        """Return path, size and free bytes of a local staging area's disk; None for an object store."""
        root = parse_root(self.staging().store.uri)
        if root.scheme != "file":
            return None
        folder = Path(root.path)
        usage = shutil.disk_usage(next(p for p in (folder, *folder.parents) if p.exists()))
        return root.path, usage.total, usage.free

    # --- what must be there --------------------------------------------------------------------------

    @read_once
    def served(self) -> Mapping[str, Output]:
        """Segments that must exist and be visible, at any progress of the open session."""
        if (snapshot := self.snapshot()) is None:
            return {}
        segments = snapshot.segments
        session = self.session()
        if session is not None and session.mode is Mode.ROLLBACK and session.target is not None:
            left = self.staging().snapshot(session.target).segments
            return {name: output for name, output in segments.items() if name in left}
        if session is not None and session.end_sent and session.switch_object is not None:
            replaced = set(self.staging().switch(session.switch_object).segments_from)
            return {name: output for name, output in segments.items() if name not in replaced}
        return segments

    @read_once
    def referenced(self) -> ReferencedObjects:
        """Objects that may exist, as something refers to them."""
        session, snapshot = self.session(), self.snapshot()
        names = set(snapshot.segments) if snapshot else set()
        if session is not None and session.switch_object is not None:
            names |= set(self.staging().switch(session.switch_object).names_to)
        if session is not None and session.target is not None:
            names |= set(self.staging().snapshot(session.target).segments)
        tars = dict(snapshot.segments) if snapshot else {}
        if snapshot is not None:
            there = snapshot_headers(staged(self.staging(), "snapshots"))
            for ref in revertible(self.staging(), there, self.now_ms, versions.RENEWAL_MS):
                tars |= self.staging().snapshot(ref).segments
        return ReferencedObjects(
            has_ledger=snapshot is not None,
            segments=names,
            tars=tars,
            open_session=session.id if session else "",
        )

    @read_once
    def published_later(self) -> frozenset[str]:
        """Visible segments published after the pointer in ZooKeeper was written: a backup was restored."""
        table, visible = self.spec.name, self.lineage().visible(self.segments())
        beside = unknown_of(table, visible, frozenset(self.referenced().segments))
        return published(table, self._answering(), self.staging(), self.pointer(), beside)

    # --- Pinot ---------------------------------------------------------------------------------------

    @read_once
    def _pinot(self) -> PinotClient:
        return self._ports.pinot()

    def _answering(self) -> PinotClient:
        """Return Pinot if it answered the first call; a Pinot that is away gets no second call."""
        self.segments()
        return self._pinot()

    @read_once
    def segments(self) -> frozenset[str]:
        """Names of all segments in the table, including hidden ones."""
        return self._pinot().all_segments(self.spec.name)

    @read_once
    def lineage(self) -> Lineage:
        """Read after the segments: so a segment pushed under an entry is never seen without that entry."""
        return self._answering().lineage(self.spec.name)

    @read_once
    def revert_window_ms(self) -> int:
        """How long after a switch this Pinot allows a safe revert, in milliseconds."""
        return versions.way_back_ms(self._answering().version(), self.table_config())

    @read_once
    def entry_renewed_ms(self) -> int:
        """Age in milliseconds at which a trigger renews an entry, before this Pinot gives it up."""
        return versions.entry_renewed_ms(self._answering().version(), self.table_config())

    @read_once
    def table_config(self) -> JsonMapping:
        """See `held_table_config`."""
        return held_table_config(self.spec, self._answering())

    @read_once
    def replicas(self) -> Replicas:
        """State of every replica of the segments that must exist."""
        return self._answering().online_replicas(self.spec.name, list(self.served()))

    @read_once
    def registered_crcs(self) -> Mapping[str, int]:
        """CRC of every segment in Pinot's metadata."""
        return self._answering().segment_crcs(self.spec.name)

    @read_once
    def servers(self) -> list[str]:
        """Servers that hold a segment that must exist."""
        return sorted({server for states in self.replicas().values() for server in states})

    @read_once
    def loaded(self) -> Loaded:
        """The segments that the servers themselves have loaded."""
        answers = self._answering().crcs_on_servers(self.spec.name, self.servers())
        return Loaded(
            crcs={s: a for s, a in answers.items() if not isinstance(a, PinotError)},
            silent={
                # A refusal is mended by its own hint.
                s: a.in_one_line if isinstance(a, NoRights) else a.why or a.what
                for s, a in answers.items()
                if isinstance(a, PinotError)
            },
        )

    @read_once
    def table_bytes(self) -> int:
        """Bytes that Pinot counts against the quota."""
        return self._answering().table_bytes(self.spec.name) if self.segments() else 0

    @read_once
    def server_disks(self) -> Mapping[str, ServerDisk | PinotError]:
        """The servers' disks, or why a server did not report."""
        return self._answering().server_disks(self.servers())
