"""The invariants, held at every effect: docs/design/session.md#invariants.

What is seen that must not be is kept in `violations`, with its invariant.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import cast

from fakes.pinot.memory import BROKERS, FakePinot
from fakes.zookeeper.memory import FakeClient, FakeZooKeeper, Write
from model.world.builder import ROWS
from model.world.oracle import Files, Ledger, Names, Work, rows_of

from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.pinot import LineageEntry, LineageState
from pinot_assets.session.values.state import is_ours
from pinot_assets.snapshot.receipt import Output


@dataclass
class Actor:
    """Who does something: one driver's process.

    :ivar mode: of the table spec that it goes by, as is `max_retries`.
    :ivar listing: the last that it saw.
    :ivar session: id of the session that it last wrote.
    :ivar strays: what was out of place when it began; its trigger takes that away.
    :ivar lawless: writes to Pinot since it lost its lease.
    :ivar planned: whether it wrote a plan or spent a retry.
    """

    client: FakeClient
    mode: str
    max_retries: int
    listing: Files | None = None
    session: str = ""
    strays: set[str] | None = None
    lawless: int = 0
    planned: bool = False


@dataclass
class Truth:
    """See the module docstring.

    :ivar ledger: what is published.
    :ivar lagging: what brokers may still show, until the switch is recorded (R7).
    :ivar works: session id → its files.
    :ivar promises: what an entry replaces by what → its session, and what is published once it is COMPLETED.
    :ivar completed: entries that were seen COMPLETED, with what was published before them.
    :ivar stray: segments pushed by somebody who had lost the table; gone within one trigger (R2).
    :ivar belated: entries that were opened by who had lost the table, or had given the call up.
    :ivar delivering: a call arrives whose caller does not wait for it any more.
    """

    table: str
    zookeeper: FakeZooKeeper
    pinot: FakePinot
    ledger: Ledger = field(default_factory=dict)
    lagging: list[Ledger] = field(default_factory=list)
    works: dict[str, Work] = field(default_factory=dict)
    promises: dict[Names, tuple[str, Ledger | None]] = field(default_factory=dict)
    completed: dict[str, Ledger] = field(default_factory=dict)
    stray: set[str] = field(default_factory=set)
    belated: set[str] = field(default_factory=set)
    delivering: bool = False
    violations: list[str] = field(default_factory=list)
    _sessions: dict[str, dict[str, str]] = field(default_factory=dict)
    _before_belated: set[str] | None = None
    _foreign: dict[str, LineageEntry] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.path = f"/pinot/PROPERTYSTORE/MINION_TASK_METADATA/{self.table}_OFFLINE/FileIngestionTask/"
        self.path += "consistentPush"

    def violated(self, invariant: str, what: str) -> None:
        """Keep it: raised here, the product might swallow it."""
        self.violations.append(f"{invariant}: {what}")

    # --- the source and the builder --------------------------------------------------------------

    def listed(self, actor: Actor, files: Files) -> None:
        """A driver lists the source."""
        actor.listing = files
        if actor.strays is not None:
            self.stray -= actor.strays

    def listing_failed(self, actor: Actor) -> None:
        """Its driver planned nothing and spent nothing (I12)."""
        if actor.listing is None and actor.planned:
            self.violated("I12", f"{actor.session} was planned anew, and its source was not listed")

    def ordered(self, build_spec: BuildSpec, task: FileTask) -> None:
        """A file is to be built."""
        work = self.works.get(build_spec.session)
        if work is not None and task.ordinal in work.kept:
            self.violated("I13", f"{task.file.uri} of {build_spec.session} is built again, and has a receipt")

    def built(self, build_spec: BuildSpec, task: FileTask, content: bytes) -> None:
        """A receipt was written."""
        name = task.file.uri.rpartition("/")[2]
        self._work(build_spec.session).built(task.ordinal, build_spec.attempt, name, content)

    def _work(self, session: str) -> Work:
        return self.works.setdefault(session, Work())

    # --- ZooKeeper -------------------------------------------------------------------------------

    def stored(self, actor: Actor, write: Write) -> None:
        """A driver changed something in ZooKeeper."""
        released = f"delete {self.path}/lease" in write.paths
        if actor.strays is None:
            actor.strays = set(self.stray)
        if f"set {self.path}" in write.paths and not released and not self._holds(actor):
            self.violated("I11", f"{write.paths} without the lease")
        sessions = self.sessions
        if len([s for s in sessions.values() if not s["outcome"]]) > 1:
            self.violated("I3", f"open: {[s['id'] for s in sessions.values() if not s['outcome']]}")
        for node, session in sessions.items():
            before = self._sessions.get(node, {})
            if session != before:
                self._session_stored(actor, before, session)
        self._sessions = sessions

    def _session_stored(self, actor: Actor, before: dict[str, str], session: dict[str, str]) -> None:
        actor.session = session["id"]
        if int(session["retryCount"]) > int(before.get("retryCount", "0")):
            if int(session["retryCount"]) > actor.max_retries:
                self.violated("I5", f"retry {session['retryCount']} of {actor.max_retries}")
            if int(session["retryCount"]) != int(before["retryCount"]) + 1:
                self.violated("I5", "more than one retry in one write")
        if session["mode"] == "ROLLBACK":
            return
        work = self._work(session["id"])
        if session["plan"] != before.get("plan") or session["retryCount"] != before.get("retryCount"):
            actor.planned = True
        if session["plan"] != before.get("plan") and actor.listing is not None:
            work.mode = session["mode"].lower()
            work.planned(actor.listing)
        if session["outcome"] and not before.get("outcome"):
            self._closed(work, session)

    def _closed(self, work: Work, session: dict[str, str]) -> None:
        if session["outcome"] == "PUBLISHED":
            if session["lineageEntryId"] not in self.completed:
                self.violated("I4", f"{session['id']} is PUBLISHED, its entry was never COMPLETED")
            self.lagging.clear()
            self.look()
        elif session["outcome"] == "NOOP":
            after = work.promise(self.ledger)
            if after is None or rows_of(after) != rows_of(self.ledger):
                self.violated("I1", f"{session['id']} is NOOP, and there is something to do")
            else:
                self.ledger = after

    def _holds(self, actor: Actor) -> bool:
        node = self.zookeeper.nodes.get(f"{self.path}/lease")
        return node is not None and node.owner == actor.client.client_id[0]

    @property
    def sessions(self) -> dict[str, dict[str, str]]:
        """Node → fields of each session that is stored."""
        paths = (p for p in self.zookeeper.nodes if p.startswith(f"{self.path}/cp"))
        return {path: json.loads(self.zookeeper.nodes[path].data)["simpleFields"] for path in paths}

    @property
    def open_session(self) -> str:
        """Id of the session without an outcome."""
        return next((s["id"] for s in self.sessions.values() if not s["outcome"]), "")

    # --- Pinot -----------------------------------------------------------------------------------

    def writes(self, actor: Actor, name: str, args: tuple[object, ...]) -> None:
        """A driver's call that changes something in Pinot arrives."""
        lawless = self.delivering or not self._holds(actor)
        if lawless and not self.delivering and name != "rebuild_routing":
            actor.lawless += 1
            if actor.lawless > 1:
                self.violated("I11", f"{name}: write {actor.lawless} to Pinot after the lease was lost")
        if name == "push" and lawless:
            outputs = cast("Sequence[Output]", args[1])
            self.stray |= {o.segment for o in outputs} - self.pinot._tables[self.table].segments.keys()
        if name in ("start_replace_segments", "force_start_replace_segments"):
            names_from, names_to = cast("Sequence[Collection[str]]", args[1:3])
            self._starts(actor, frozenset(names_from), frozenset(names_to))
            if lawless:
                self._before_belated = set(self.pinot._tables[self.table].entries)

    def _starts(self, actor: Actor, names_from: frozenset[str], names_to: frozenset[str]) -> None:
        session = actor.session or self.open_session
        work = self._work(session)
        self.promises[names_from, names_to] = session, work.promise(self.ledger)
        foreign = {s for s in names_from if not is_ours(self.table, s)}
        if foreign and work.mode != "swap":
            self.violated("E21", f"{work.mode} replaces foreign segments: {sorted(foreign)}")
        if any(not is_ours(self.table, s) for s in names_to):
            self.violated("E21", "foreign names among the outputs")

    def foreign_entry(self, entry_id: str) -> None:
        """Somebody else's entry stands open: it is nobody's but theirs (E22)."""
        self._foreign[entry_id] = self.pinot._tables[self.table].entries[entry_id]

    def forget_foreign(self) -> list[str]:
        """Their owners do something with them now."""
        entries = list(self._foreign)
        self._foreign.clear()
        return entries

    def reaped(self) -> None:
        """Pinot's retention has been at work, on theirs too."""
        entries = self.pinot._tables[self.table].entries
        self._foreign = {id: entry for id, entry in self._foreign.items() if id in entries}

    def look(self) -> None:
        """What do queries see? (I1, I2, E22)"""
        table = self.pinot._tables[self.table]
        if self._before_belated is not None:
            self.belated |= table.entries.keys() - self._before_belated
            self._before_belated = None
        for entry in table.entries.values():
            if entry.id in self._foreign:
                continue
            if entry.state is LineageState.COMPLETED and entry.id not in self.completed:
                self._completed(entry)
        for known in self._foreign.values():
            if table.entries.get(known.id) != known:
                self.violated("E22", f"foreign entry {sorted(known.segments_to)} was touched")
        outputs = {s for e in table.entries.values() if e.id in self.completed for s in e.segments_to}
        self._see("the lineage", table.visible, [self.ledger], outputs)
        for broker in BROKERS:
            shown = table.routing.get(broker, frozenset())
            self._see(broker, shown, [self.ledger, *self.lagging], outputs)

    def _completed(self, entry: LineageEntry) -> None:
        self.completed[entry.id] = self.ledger
        session, after = self.promises.get((entry.segments_from, entry.segments_to), ("", None))
        newest = self._work(session).promise(self.ledger)
        if newest is not None and (after is None or rows_of(newest) == rows_of(after)):
            after = newest  # a later plan with the same segments knows more files without rows
        if after is None:
            self.violated("I1", f"switched to {sorted(entry.segments_to)}, which was never promised")
            return
        self.lagging.append(self.ledger)
        self.ledger = after

    def _see(self, where: str, shown: Collection[str], allowed: list[Ledger], outputs: set[str]) -> None:
        metadata = self.pinot._tables[self.table].metadata
        ours = [s for s in shown if s in metadata and is_ours(self.table, s)]
        mine = (s for s in ours if s not in self.stray - outputs)
        rows = Counter(row for s in mine for row in metadata[s].custom[ROWS].split())  # a pack has several
        if all(rows != rows_of(ledger) for ledger in allowed):
            expected = " or ".join(str(sorted(rows_of(ledger).elements())) for ledger in allowed)
            self.violated("I1", f"{where} shows {sorted(rows.elements())}, not {expected}")
