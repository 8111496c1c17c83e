"""Open, renew, end and revert a table's lineage entries (W2 and W5).

The calls are Pinot's startReplaceSegments, endReplaceSegments and revertReplaceSegments.

No function here guesses: if a reply is lost, it reads the lineage to find out. Sources:
docs/design/session.md#what-became-of-a-switch, rules R1, R3, R4 and R6, and docs/design/lineage.md#races.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from pinot_assets.core.waiting import Deadline, poll_until
from pinot_assets.errors import PinotUnreachable, SwitchConflict, SwitchStateUnknown
from pinot_assets.pinot.lineage import Lineage, LineageEntry, LineageState
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.values.state import is_ours

_ANSWER_SECONDS: Final = 10.0
"""Seconds for which the lineage is read after an end without an answer."""

Start = Callable[[str, Collection[str], Collection[str]], str]


@contextmanager
def _still_unknown(what: str) -> Iterator[None]:
    """Wrap a read that finds out what became of a call: if the read fails, that stays unknown.

    :raises SwitchStateUnknown: instead of `PinotUnreachable`, which would be about the read alone.
    """
    try:
        yield
    except PinotUnreachable as error:
        raise SwitchStateUnknown(f"it is not known {what}", why=error.reason, hint=error.hint) from error


def why_self_completing(table: str, lineage: Lineage) -> SwitchConflict | None:
    """Return the error if an open entry may complete by itself, else None.

    Pinot after 1.5.1 stores such a mark with an entry. A controller may then complete it once its outputs are
    online, while a gate of ours is still shut. We never start one.
    """
    if not (entries := lineage.open_and_self_completing()):
        return None
    more = f" and {len(entries) - 1} more" if len(entries) > 1 else ""
    return SwitchConflict(
        f"{table} is paused: an open lineage entry completes itself",
        why=f"entry {entries[0].id}{more} has autoCompleteLineageEntry, so Pinot may show its segments at "
        "any moment, before any audit",
        hint="wait until it is completed, or ask its owner to revert it and to start replacements of "
        "this table without autoComplete; pinot-assets never ends or reverts it",
    )


@dataclass(frozen=True, slots=True)
class LineageEntries:
    """The lineage entries of one table.

    :ivar entry_max_age_ms: an older entry is renewed before a push under it and before its end: Pinot gives
        up entries after a time, deletes their segments first, and works from stale lists (rules R2, R3).
    :ivar starts_forced: whether every start is forced; on a REFRESH table, Pinot then deletes the generation
        before `segmentsFrom` at the start (`rollbackWindow: pinotDefault`).
    :ivar before_write: called before every write to Pinot; waits for a former owner, checks the lease (R2).
    :ivar settled: called with `start`, `end` or `revert` and the entry's id once the lineage shows that a
        call, perhaps without an answer, has happened.
    """

    table: str
    clients: TableClients
    entry_max_age_ms: int
    starts_forced: bool
    before_write: Callable[[], None]
    settled: Callable[[str, str], None]

    def fetch(self) -> Lineage:
        """Read the table's lineage from Pinot."""
        return self.clients.pinot.lineage(self.table)

    # --- start ---------------------------------------------------------------------------------------

    def open_entry(self, switch: Switch, former: str) -> str:
        """Start the replacement, or adopt the entry that an earlier driver started; returns its id.

        :param former: id of this session's entry for an earlier switch, "" if it had none.
        :raises SwitchConflict: another writer's open entry names the same segments (never forced away), or
            an open entry completes itself.
        """
        if (refusal := why_self_completing(self.table, self.fetch())) is not None:
            raise refusal
        if (twin := self.open_twin(switch)) is not None:
            return twin.id if self._is_fresh(twin) else self.renew(switch, twin.id)
        self.before_write()
        before = self.fetch()
        in_progress = before.in_state(LineageState.IN_PROGRESS)
        stale = [e for e in in_progress if e.id == former or self._is_of_ours(e, switch)]
        self._refuse_foreign([e for e in in_progress if e not in stale], switch)
        # Our entries that are still open belong to an earlier switch of this session.
        shared = [e for e in stale if not e.segments_to.isdisjoint(switch.names_to)]
        # A driver may have slept until its segments were published and replaced. Pinot refuses to revert its
        # entry until it forgets what replaced them, and the end of that entry would show nothing: leave it.
        completed = before.in_state(LineageState.COMPLETED)
        replaced = {s for e in completed for s in e.segments_from}
        ended = {s for e in completed for s in e.segments_to} - replaced
        for entry in stale:
            if entry in shared or not entry.segments_to.isdisjoint(replaced):
                continue
            if not entry.segments_to.isdisjoint(ended):
                raise SwitchConflict(
                    f"lineage entry {entry.id} of {self.table} hides segments that are published",
                    # To revert it would delete them (R1).
                    why="a start that pinot-assets sent reached Pinot late",
                    hint="the next trigger shows them again",
                )
            self.revert_entry(entry.id)  # R4: a forced start does not replace it
        pinot = self.clients.pinot
        forced = shared or self.starts_forced
        start = pinot.force_start_replace_segments if forced else pinot.start_replace_segments
        entry_id = self._start(start, switch.segments_from, switch.names_to)
        if not before.entries:
            # Another controller that also writes the node for the first time can overwrite our entry (R6).
            self.clients.sleep(self.clients.waits.first_entry)
        if self.fetch().get(entry_id) is None:
            raise SwitchStateUnknown(
                f"the lineage of {self.table} lost entry {entry_id} right after its start",
                why="another controller wrote the lineage at the same moment",
                hint="the next trigger starts it again",
            )
        return entry_id

    def renew(self, switch: Switch, entry_id: str) -> str:
        """Replace an open entry by a new one with the same names; return its id.

        The new entry is young, and an end of the former entry that still waits in a controller finds
        nothing to end. On a REFRESH table this deletes what a forced start deletes.

        :raises SwitchConflict: Pinot refused; or the former entry was ended meanwhile, and what it published
            is visible. A session that names the former entry finds it COMPLETED and records the switch.
        """
        self.before_write()
        start = self.clients.pinot.force_start_replace_segments
        new = self._start(start, switch.segments_from, switch.names_to)
        former = self.fetch().get(entry_id)
        if former is not None and former.state is LineageState.COMPLETED:
            # Pinot read the visible segments before the end and wrote after it: this is a delayed start (R1).
            self.undo_delayed_starts(switch.names_to)
            raise SwitchConflict(
                f"{self.table} has just been switched",
                why=f"the end of lineage entry {entry_id} had got no answer, and completed it while "
                f"{new} was to replace it",
                hint="the next trigger records it",
            )
        if former is not None and former.state is LineageState.IN_PROGRESS:
            raise SwitchStateUnknown(
                f"lineage entry {entry_id} of {self.table} is still open beside its successor {new}",
                why="a forced start with the same names did not replace it",
                hint="the next trigger looks again",
            )
        return new

    def open_twin(self, switch: Switch) -> LineageEntry | None:
        """Return the newest open entry with exactly our names; a dead driver may not have stored its id."""
        twins = self.fetch().find(switch.segments_from, switch.names_to)
        return next((e for e in reversed(twins) if e.state is LineageState.IN_PROGRESS), None)

    def _start(self, start: Start, segments_from: Collection[str], segments_to: Collection[str]) -> str:
        known = {entry.id for entry in self.fetch()}
        self.before_write()  # the lease may have been lost while that read waited
        try:
            return start(self.table, segments_from, segments_to)
        except SwitchStateUnknown:
            with _still_unknown(f"whether the lineage of {self.table} got a new entry"):
                twins = self.fetch().find(segments_from, segments_to)
            new = [e for e in twins if e.state is LineageState.IN_PROGRESS and e.id not in known]
            if not new:
                raise
            self.settled("start", new[-1].id)
            return new[-1].id

    def _refuse_foreign(self, entries: Collection[LineageEntry], switch: Switch) -> None:
        if foreign := [e for e in entries if e.overlaps(switch.segments_from, switch.names_to)]:
            raise SwitchConflict(
                f"{self.table} is paused: another replacement of the same segments is open",
                why=f"lineage entry {foreign[0].id} → {', '.join(sorted(foreign[0].segments_to)[:3])}",
                hint="ask its owner to end or revert it; pinot-assets never does",
            )

    # --- is it fit -----------------------------------------------------------------------------------

    def ask_if_usable(self, entry_id: str) -> bool:
        """Whether segments may be pushed under that entry, and it may be ended: IN_PROGRESS and not old."""
        entry = self.fetch().get(entry_id)
        return entry is not None and entry.state is LineageState.IN_PROGRESS and self._is_fresh(entry)

    def require_usable(self, entry_id: str) -> None:
        """Require a usable entry before a push: without it, pushed segments would be visible at once.

        :raises SwitchConflict: the entry is not IN_PROGRESS any more, or too old.
        """
        self.require_open(entry_id)
        if not self.ask_if_usable(entry_id):
            raise SwitchConflict(
                f"lineage entry {entry_id} of {self.table} cannot be used any more",
                why="it is so old that Pinot may delete it at any moment",
                hint="the next trigger renews it",
            )

    def require_open(self, entry_id: str) -> LineageEntry:
        """Require an open entry, since any other one can neither hide pushed segments nor be ended.

        :returns: the entry.
        :raises SwitchConflict: it is not IN_PROGRESS any more, or an open entry completes itself.
        """
        lineage = self.fetch()
        entry = lineage.get(entry_id)
        if entry is None or entry.state is not LineageState.IN_PROGRESS:
            state = "gone" if entry is None else entry.state.value
            raise SwitchConflict(
                f"lineage entry {entry_id} of {self.table} is lost: it is {state}",
                why="it was reverted, or Pinot gave it up after its time",
                hint="the next trigger renames what is built and starts the switch again; nothing is "
                "built again",
            )
        if (refusal := why_self_completing(self.table, lineage)) is not None:
            raise refusal
        return entry

    # --- end and revert ------------------------------------------------------------------------------

    def end(self, entry_id: str) -> None:
        """End the replacement and see it COMPLETED in the lineage.

        :raises SwitchStateUnknown: the lineage does not show the end yet; the next trigger reads it again.
        """
        self.clients.pinot.settle_brokers(self.table, seconds=self.clients.waits.broker)
        self.before_write()
        self.require_open(entry_id)  # a dead owner's revert may have landed in that wait (rule R2)
        try:
            self.clients.pinot.end_replace_segments(self.table, entry_id)
        except SwitchStateUnknown:
            self._await_completed(entry_id)

    def _await_completed(self, entry_id: str) -> None:
        def state() -> LineageState:
            # The controller continues after the call has timed out, so an open entry may complete any moment.
            try:
                entry = self.fetch().get(entry_id)
            except PinotUnreachable:  # Pinot may be back in a moment, with the switch made
                return LineageState.IN_PROGRESS
            return LineageState.REVERTED if entry is None else entry.state

        deadline = Deadline(self.clients, _ANSWER_SECONDS)
        last = poll_until(deadline, 0.5, state, lambda last: last is not LineageState.IN_PROGRESS)
        if last is LineageState.COMPLETED:
            self.settled("end", entry_id)
            return
        raise SwitchStateUnknown(
            f"it is not yet known whether {self.table} was switched",
            why=f"endReplaceSegments of entry {entry_id} gave no answer",
            hint="the next trigger reads the lineage and continues from there",
        )

    def revert_entry(self, entry_id: str) -> None:
        """Revert an unpublished entry of ours, and see that in the lineage (rules R4, R19)."""
        self.before_write()
        # It was reverted or reaped before, or the reply got lost: the lineage decides.
        with suppress(SwitchConflict, SwitchStateUnknown):
            self.clients.pinot.force_revert_replace_segments(self.table, entry_id)
        with _still_unknown(f"whether lineage entry {entry_id} of {self.table} was reverted"):
            entry = self.fetch().get(entry_id)
        if entry is not None and entry.state is not LineageState.REVERTED:
            raise SwitchConflict(
                f"lineage entry {entry_id} of {self.table} could not be reverted",
                why=f"it is {entry.state.value}",
                hint="look at the controller's log; the next trigger tries again",
            )
        self.settled("revert", entry_id)

    def undo_delayed_starts(self, published: Collection[str]) -> frozenset[str]:
        """Show published segments again that a delayed start of ours hides (rule R1).

        A revert of its entry would delete the segments. So a forced start replaces the entry, and the new
        entry is ended.

        :param published: segments that queries have to see.
        :returns: those that were hidden.
        """
        late, hidden = self._late_starts(published)
        if hidden:
            self.before_write()
            sources = frozenset[str]().union(*(e.segments_from for e in late))
            replaced = (sources & self.clients.pinot.visible_segments(self.table)).difference(published)
            start = self.clients.pinot.force_start_replace_segments
            self.end(self._start(start, sorted(replaced), sorted(hidden)))
        return hidden

    def hidden_by_delayed_starts(self, published: Collection[str]) -> frozenset[str]:
        """Return the published segments that delayed starts hide; change nothing."""
        return self._late_starts(published)[1]

    def _late_starts(self, published: Collection[str]) -> tuple[tuple[LineageEntry, ...], frozenset[str]]:
        """Return the entries of delayed starts, and the segments that they hide."""
        if not (late := self.fetch().naming(published, LineageState.IN_PROGRESS)):
            return (), frozenset()
        named = frozenset[str]().union(*(e.segments_to for e in late))
        return late, named.intersection(published) & self.clients.pinot.all_segments(self.table)

    # --- shared --------------------------------------------------------------------------------------

    def _is_fresh(self, entry: LineageEntry) -> bool:
        return self.clients.now_ms() - entry.timestamp_ms < self.entry_max_age_ms

    def _is_of_ours(self, entry: LineageEntry, switch: Switch) -> bool:
        """Whether all outputs of the entry are ours. An entry without outputs is ours if all its sources are,
        and counts if the switch replaces one of them: its start arrived after its session had been given up.
        No other writer removes our segments."""
        ours = all(is_ours(self.table, s) for s in entry.segments_to or entry.segments_from)
        return ours and (bool(entry.segments_to) or entry.overlaps(switch.segments_from, ()))
