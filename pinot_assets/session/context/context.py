"""The context of a run that holds a table's lease, or only reads; every step of a session works with it.

Also here: the number of the next session, and a text about what the run has done so far.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, NoReturn

from pinot_assets.core.decision_log import log_decision
from pinot_assets.core.effects import Effect, Effects, SoFar, standing
from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.text import plural
from pinot_assets.errors import LeaseLost
from pinot_assets.pinot import versions
from pinot_assets.pinot.api import PinotClient, PushMode
from pinot_assets.printable import visible
from pinot_assets.session.lineage.stale_pointer import refuse_published
from pinot_assets.session.lineage.switch import Switcher
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.session_store import Lease
from pinot_assets.session.stores.staging import Staging, staged
from pinot_assets.session.values.hold import NO_HOLD, Hold
from pinot_assets.session.values.outdated import Request, stored_recipe
from pinot_assets.session.values.progress import Progress
from pinot_assets.session.values.state import (
    Mode,
    ObjectRef,
    Outcome,
    PushKind,
    Session,
    is_fresh,
    seq_of,
)
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef
from pinot_assets.snapshot.recipes import StoredRecipe
from pinot_assets.table_spec import TableSpec
from pinot_assets.table_spec.tables.drift import held_table_config

WRITER_VERSION = "2"
"""Part of the config fingerprint: if the writer makes other bytes, a new session starts (rule R28)."""


@dataclass
class TriggerContext:
    """A table, its clients and the lease.

    :ivar notes: notes for people about what this run did.
    :ivar effects: what this run has changed in Pinot, through `clients.pinot`.
    :ivar built: number of files that this run has built.
    :ivar stored: the open session as last read, None without one.
    :ivar asked_by: who asked for this run; "" if that is not known.
    :ivar request: what this run is asked to do with published files, None if it is not asked.
    :ivar goal: the snapshot that a person named for a rollback, "" if none was named.
    """

    spec: TableSpec
    clients: TableClients
    lease: Lease
    progress: Progress
    asked_by: str = ""
    request: Request | None = None
    notes: list[str] = field(default_factory=list)
    effects: Effects = field(default_factory=Effects)
    built: int = 0
    _read: tuple[SnapshotRef, Snapshot] | None = field(default=None, init=False, repr=False)
    stored: Session | None = field(default=None, init=False, repr=False)
    goal: str = field(default="", init=False, repr=False)
    _version: str = field(default="", init=False, repr=False)
    _config: JsonMapping | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.clients = replace(self.clients, pinot=self.effects.recorded(self.clients.pinot))
        self.effects.on_effect = self._log_effect

    def _log_effect(self, effect: Effect, outcome: str) -> None:
        said = {"effect": effect.method, "subject": effect.subject, "segments": effect.count or None}
        self.log("effect", {**said, "outcome": outcome})

    def log(self, event: str, fields: Mapping[str, object]) -> None:
        """Log a decision of this run, with its table, session and attempt, and who asked for it."""
        session, owner = self.session, self.lease.pointer.owner
        of_session = {"session": session.id, "attempt": session.attempt} if session is not None else {}
        of_run = {"run": owner.run if owner is not None else "", "asked_by": self.asked_by}
        log_decision(event, {"table": self.spec.name_with_type, **of_session, **of_run, **fields})

    @property
    def table(self) -> str:
        """The raw name, `flights`."""
        return self.spec.name

    @property
    def pinot(self) -> PinotClient:
        """The client; `effects` records its calls."""
        return self.clients.pinot

    @property
    def staging(self) -> Staging:
        """The table's folder of the staging area."""
        return self.clients.staging

    @property
    def mode(self) -> Mode:
        """The mode in the table spec."""
        return Mode(self.spec.mode.upper())

    @property
    def push(self) -> PushKind:
        """The kind of push in the table spec."""
        return PushKind(self.spec.ingestion.push_kind.upper())

    @cached_property
    def fingerprint(self) -> str:
        """The config fingerprint: a hash of all in the table spec that shapes segments (rule R28)."""
        return self.spec.config_fingerprint(WRITER_VERSION)

    @cached_property
    def recipe(self) -> StoredRecipe:
        """What the table spec builds files with, without a revision."""
        return stored_recipe(self.spec, WRITER_VERSION)

    @cached_property
    def clear_token(self) -> str:
        """A token that changes when `clearConsistentPushState` or the config fingerprint changes."""
        wish = f"{self.spec.ingestion.clear_state}|{self.fingerprint}"
        return hashlib.sha256(wish.encode()).hexdigest()[:16]

    def read_pinot_version(self) -> str:
        """The controller's version, asked once; see `pinot_assets.pinot.versions`."""
        self._version = self._version or self.pinot.version()
        return self._version

    def read_table_config(self) -> JsonMapping:
        """The table config as Pinot holds it, asked once; it may have settings that the spec lacks."""
        if self._config is None:
            self._config = held_table_config(self.spec, self.pinot)
        return self._config

    def switcher(self) -> Switcher:
        """The calls to Pinot that make a switch, with this run's settings and checks."""
        name = self.spec.ingestion.push_mode
        mode = PushMode[name] if name is not None else None
        max_age_ms = versions.entry_renewed_ms(self.read_pinot_version(), self.read_table_config())
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
        """Refuse to delete visible segments that were published, even if the pointer does not know of them.

        :raises SessionError: there are some, so the pointer is stale.
        """
        refuse_published(self.spec.name, self.clients, self.lease.pointer, names)

    def before_pinot_write(self) -> None:
        """Wait until a dead owner's last call is past its deadline, then check the lease (rule R2)."""
        self.lease.wait_out_former_owner(self.clients.sleep)
        self.lease.assert_held()

    def write_session(self, session: Session) -> Session:
        """Store the session in its node, under the lease, and return it."""
        self.lease.write(session=session)
        return session

    def active_session(self) -> Session | None:
        """The session without an outcome, as stored."""
        self.stored = self.clients.store.active_session(self.lease.pointer)
        return self.stored

    @property
    def session(self) -> Session | None:
        """The session of this run as it last wrote or read it; this reads nothing from ZooKeeper."""
        return self.lease.session or self.stored

    def current_snapshot(self) -> Snapshot | None:
        """The ledger; None only if nothing was ever published. Read once, since its object never changes.

        :raises SnapshotCorrupt: the pointer names an object that is not there (rule R18).
        """
        if (ref := self.lease.pointer.current_snapshot) is None:
            return None
        if self._read is None or self._read[0] != ref:
            self._read = ref, self.staging.snapshot(ref)
        return self._read[1]

    def hold(self) -> Hold:
        """The table's hold; an empty one if there is none."""
        ref = self.lease.pointer.hold
        return self.staging.hold(ref) if ref is not None else NO_HOLD

    def put_hold(self, hold: Hold) -> ObjectRef | None:
        """Store a changed hold; return what the pointer must name then: None if the hold is empty.

        An unchanged hold is not stored again; nor is that of a swap table, which is held as a whole until
        `resume`. The folder stays the same, so that `rebuild` finds the newest hold, even an empty one.
        """
        ref = self.lease.pointer.hold
        if ref is None or self.mode is Mode.SWAP or hold == self.hold():
            return ref
        _, session, _ = ref.key.split("/")
        stored = self.staging.put_hold(session, replace(hold, format=self.lease.pointer.format))
        return None if hold.is_empty else stored

    def note(self, text: str) -> None:
        """Show a note now and keep it for the report."""
        said = visible(text)  # foreign names of files and segments go to terminals and logs
        self.notes.append(said)
        self.progress.note(said)


class ReadOnlyLease(Lease):
    """A stand-in for the lease in a run that only reads. It has the pointer as read, and refuses every write
    to ZooKeeper. It refuses writes to Pinot, too: each of them checks the lease first (rule R2).
    """

    def _refuse(self, *_args: object, **_values: object) -> NoReturn:
        raise LeaseLost(
            f"a read-only run of {self._store.table} cannot change anything",
            why="it tried to write without a lease",
            hint="this is a defect of pinot-assets: please report it, with the command",
        )

    # `wait_out_former_owner` is refused, too: it only precedes writes.
    write = assert_held = wait_out_former_owner = prune = _refuse

    def release(self) -> None:
        """Do nothing: no lease was taken."""


def read_only_context(
    spec: TableSpec, clients: TableClients, progress: Progress, request: Request | None = None
) -> TriggerContext:
    """Return a context that cannot write, with the pointer as it is now."""
    lease = ReadOnlyLease(clients.store, clients.store.pointer(), -1, took_over_from=None)
    return TriggerContext(spec, clients, lease, progress, request=request)


# --- the number of the next session --------------------------------------------------------------

_NUMBERED: Final = re.compile(r"(?:cp|sessions/cp|snapshots/)([0-9]+)(?:-.*)?")


def next_seq(context: TriggerContext) -> int:
    """Return a number that no session of this table ever had (rule R17), even if nodes were lost.

    The staging area is searched only while the pointer is fresh: after that, `next_seq` is above its numbers.
    """
    pointer, pinot, table = context.lease.pointer, context.pinot, context.table
    names = set(pinot.all_segments(table))
    for entry in pinot.lineage(table):
        names |= entry.segments_from | entry.segments_to
    numbers = {seq for name in names if (seq := seq_of(name)) is not None}
    return max(
        pointer.next_seq, 1 + max(numbers, default=0), _beyond_stored(context) if is_fresh(pointer) else 0
    )


def beyond_all(context: TriggerContext) -> int:
    """As `next_seq`, but always search the staging area: the pointer may be stale."""
    return max(next_seq(context), _beyond_stored(context))


def _beyond_stored(context: TriggerContext) -> int:
    """Return a number above those of all session nodes, staged sessions and kept snapshots."""
    keys = (info.key for folder in ("sessions", "snapshots") for info in staged(context.staging, folder))
    named = map(_NUMBERED.fullmatch, (*context.clients.store.session_nodes(), *keys))
    return 1 + max((int(match[1]) for match in named if match), default=0)


# --- what it has done by now ---------------------------------------------------------------------

_NEXT: Final = {
    "rollback": "pinot-assets rollback {}",
    # Of a rollback that is done: the person sets the YAML file back, too.
    "apply_recipe": "pinot-assets tables apply {}",
    "resume": "pinot-assets resume {}",
    "rebuild": "pinot-assets session rebuild {}",
    "upgrade": "pinot-assets state upgrade {}",
    "clear": "pinot-assets session clear {}",
    "collect": "pinot-assets gc {} --apply",
    "forget": "pinot-assets forget {}",
}
"""The command that continues an interrupted step; `run` continues all steps that are not named here."""


def so_far(context: TriggerContext, step: str) -> SoFar:
    """Say what was done, what is unknown, what queries see, and which command continues.

    :param step: the name of the step, from `Driver.carry_out`.
    """
    built = [f"{plural(context.built, 'file')} built and staged"] if context.built else []
    done = standing(context.effects, built)
    session = context.session
    opened = session if session is not None and session.outcome is Outcome.OPEN else None
    parts = [done or "no file was built, and nothing was changed in Pinot"]
    if opened is not None:
        parts += [*_queries(context, opened), f"session {opened.id} is open ({opened.state})"]
    elif session is not None:
        parts.append(f"session {session.id} is closed ({session.outcome})")
    command = _NEXT.get(step, "pinot-assets run {}").format(context.table)
    if step == "rollback" and context.goal and (opened is None or opened.mode is not Mode.ROLLBACK):
        # No session stores the target yet. Without `--to`, the command might choose another one.
        command += f" --to {context.goal}"
    then = f"`{command}` {_goes_on(opened) if step not in _NEXT else 'does what is left'}"
    return SoFar("; ".join(parts), then, changed=bool(done) or context.lease.session is not None)


def _queries(context: TriggerContext, session: Session) -> list[str]:
    """Say what queries see, if it is certain or certainly unknown; else return nothing."""
    done, unknown = context.effects.done, context.effects.unknown
    back = session.mode is Mode.ROLLBACK and session.switch_object is None  # a rollback by revert
    shows = ("revert_replace_segments" if back else "end_replace_segments", session.lineage_entry_id)
    if any((effect.method, effect.subject) == shows for effect in done):
        return ["Pinot has made the switch, and queries see it when every broker has noticed"]
    before = context.stored if context.stored and context.stored.lineage_entry_id == shows[1] else None
    # Whether an earlier run sent that call and got no answer.
    sent = before is not None and (before.revert_sent if back else before.end_sent and not before.revert_sent)
    if sent or any((effect.method, effect.subject) == shows for effect in unknown):
        return ["it is not known whether queries see the switch: Pinot may still make it"]
    methods = {effect.method for effect in (*done, *unknown)}
    if session.push is PushKind.PLAIN or methods & _MAY_SHOW:
        return []
    return ["queries see what they saw before"]


_MAY_SHOW: Final = frozenset({"delete_segments", "end_replace_segments", "revert_replace_segments"})
"""Other calls that may change what queries see: they delete a stray or show a hidden segment again."""


def _goes_on(session: Session | None) -> str:
    if session is None:
        return "begins again"
    kept = session.push is PushKind.CONSISTENT and session.mode is not Mode.ROLLBACK
    return "continues from there with what is built" if kept else "continues from there"
