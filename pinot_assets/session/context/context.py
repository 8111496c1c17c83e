"""One run that holds a table's lease: what every step of the machine works with."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property

from pinot_assets.core.effects import Effects
from pinot_assets.core.json_object import JsonMapping
from pinot_assets.pinot import versions
from pinot_assets.pinot.api import PushMode
from pinot_assets.printable import visible
from pinot_assets.session.lineage.stale_pointer import refuse_published
from pinot_assets.session.lineage.switch import Switcher
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.session_store import Lease
from pinot_assets.session.values.hold import NO_HOLD, Hold
from pinot_assets.session.values.report import Progress
from pinot_assets.session.values.state import Mode, ObjectRef, PushKind, Session
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef
from pinot_assets.table_spec import TableSpec
from pinot_assets.table_spec.tables.apply import held_table_config

WRITER_VERSION = "2"
"""Part of the config fingerprint: a writer that makes other bytes starts a new session (rule R28)."""


@dataclass
class TriggerContext:
    """A table, its clients and the lease.

    :ivar notes: what this run did that a person should know.
    :ivar effects: what it has changed in Pinot, through `clients.pinot`.
    :ivar built: how many files it has built.
    :ivar found: the open session as it was last read, None without one.
    :ivar goal: the snapshot that a rollback was asked to lead to, "" where none was named.
    """

    spec: TableSpec
    clients: TableClients
    lease: Lease
    progress: Progress
    notes: list[str] = field(default_factory=list)
    effects: Effects = field(default_factory=Effects)
    built: int = 0
    _read: tuple[SnapshotRef, Snapshot] | None = field(default=None, init=False, repr=False)
    found: Session | None = field(default=None, init=False, repr=False)
    goal: str = field(default="", init=False, repr=False)

    def __post_init__(self) -> None:
        self.clients = replace(self.clients, pinot=self.effects.recorded(self.clients.pinot))

    @property
    def mode(self) -> Mode:
        """What the table spec asks for."""
        return Mode(self.spec.mode.upper())

    @property
    def push(self) -> PushKind:
        """What the table spec wants shown at one instant."""
        return PushKind(self.spec.ingestion.push_kind.upper())

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything in the table spec that shapes a session's outputs (rule R28)."""
        return self.spec.config_fingerprint(WRITER_VERSION)

    @cached_property
    def clear_token(self) -> str:
        """Changes whenever the part of the spec changes that can ask for a clear."""
        wish = f"{self.spec.ingestion.clear_state}|{self.fingerprint}"
        return hashlib.sha256(wish.encode()).hexdigest()[:16]

    @cached_property
    def pinot_version(self) -> str:
        """What the controller says of itself, asked once; see `pinot_assets.pinot.versions`."""
        return self.clients.pinot.version()

    @cached_property
    def table_config(self) -> JsonMapping:
        """The table config as Pinot holds it, asked once: it may say more than the spec."""
        return held_table_config(self.spec, self.clients.pinot)

    @cached_property
    def switcher(self) -> Switcher:
        """Pinot's side of the switch."""
        wanted = self.spec.ingestion.push_mode
        mode = PushMode[wanted] if wanted is not None else None
        max_age_ms = versions.entry_renewed_ms(self.pinot_version, self.table_config)
        return Switcher(
            table=self.spec.name,
            clients=self.clients,
            entry_max_age_ms=max_age_ms,
            starts_forced=self.spec.ingestion.rollback_window == "pinotDefault",
            before_write=self.before_pinot_write,
            settled=self.effects.settled,
            push_mode=mode,
            before_delete=self.refuse_published,
        )

    def refuse_published(self, names: frozenset[str]) -> None:
        """Nothing that queries see and that was published may be deleted, whatever the pointer knows of it.

        :raises SessionError: some of it is; the pointer is behind.
        """
        refuse_published(self.spec.name, self.clients, self.lease.pointer, names)

    def before_pinot_write(self) -> None:
        """Hold the lease, and let a dead owner's last call reach its deadline (rule R2)."""
        self.lease.wait_out_former_owner(self.clients.sleep)
        self.lease.assert_held()

    def active_session(self) -> Session | None:
        """The session without an outcome, as stored."""
        self.found = self.clients.store.active_session(self.lease.pointer)
        return self.found

    @property
    def opened(self) -> Session | None:
        """The session that this run works on, as it last wrote or read it; nothing is asked."""
        return self.lease.session or self.found

    def current_snapshot(self) -> Snapshot | None:
        """The ledger; None only when nothing was ever published. Read once: its object never changes.

        :raises SnapshotCorrupt: the pointer names an object that is not there (rule R18).
        """
        ref = self.lease.pointer.current_snapshot
        if ref is None:
            return None
        if self._read is None or self._read[0] != ref:
            self._read = ref, self.clients.staging.snapshot(ref)
        return self._read[1]

    def hold(self) -> Hold:
        """What a rollback took back."""
        ref = self.lease.pointer.hold
        return self.clients.staging.hold(ref) if ref is not None else NO_HOLD

    def put_hold(self, hold: Hold) -> ObjectRef | None:
        """What the pointer is to name of a hold that has changed; what it names already where it has not.

        It lies beside the one before, where it is found again once the pointer is lost (`rebuild`): an empty
        one, too, though nothing names that. A swap table is held as a whole, and until `resume`.
        """
        ref = self.lease.pointer.hold
        if ref is None or self.mode is Mode.SWAP or hold == self.hold():
            return ref
        _, session, _ = ref.key.split("/")
        stored = self.clients.staging.put_hold(session, replace(hold, format=self.lease.pointer.format))
        return None if hold.is_empty else stored

    def note(self, text: str) -> None:
        """Say it now and keep it for the report."""
        said = visible(text)  # it goes to terminals and logs, and names files and segments of others
        self.notes.append(said)
        self.progress.note(said)
