"""The switch itself: open a lineage entry, push hidden, audit, end, see it at every broker.

One function for each effect on Pinot (W2 to W5 of spec/session.md section 4). None of them guesses: a lost
reply is looked up in the lineage. What to write to ZooKeeper between them is the driver's affair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pinot_assets.audit import (
    Finding,
    crc_as_built,
    replicas_online,
    rows_as_built,
    sources_unchanged,
)
from pinot_assets.errors import SwitchConflict, SwitchStateUnknown
from pinot_assets.pinot.lineage import LineageEntry, LineageState
from pinot_assets.pinot.port import PushMode
from pinot_assets.session.edges import Edges
from pinot_assets.session.model import is_ours
from pinot_assets.session.staging import Switch

BATCH = 4
"""Segments between two looks at lease and entry: no more than go out within the time that a new owner waits
before its first write (rule R2)."""


@dataclass(frozen=True, slots=True)
class Pushed:
    """What W3 did.

    :ivar segments: how many were uploaded; the others were there already.
    :ivar mode: how, or how it would have been done; None when the switch only removes.
    :ivar fallback: why METADATA push was given up for whole tars, None if it was not.
    """

    segments: int
    mode: PushMode | None
    fallback: str | None


@dataclass(frozen=True, slots=True)
class Switcher:
    """Pinot's side of one table's switch.

    :ivar push_mode: how tars get into Pinot; None tries.
    :ivar entry_max_age_ms: an older entry is opened anew before anything is pushed under it or ended: Pinot
        gives up entries after a time, segments first, and works from stale lists (rules R2, R3).
    :ivar before_write: called before every write to Pinot: lease held, former owner waited out (rule R2).
    """

    table: str
    edges: Edges
    push_mode: PushMode | None
    entry_max_age_ms: int
    before_write: Callable[[], None]

    # --- W2 ------------------------------------------------------------------------------------------

    def open_entry(self, switch: Switch, former: str) -> str:
        """Start the replacement, or adopt the entry that an earlier driver started; returns its id.

        :param former: id of this session's entry for an earlier switch, "" if it had none.
        :raises SwitchConflict: somebody else's entry names the same segments; it is never forced away.
        """
        adopted = self.open_twin(switch)
        if adopted is not None:
            return adopted.id
        self.before_write()
        pinot, names_from, names_to = self.edges.pinot, switch.segments_from, switch.names_to
        in_progress = pinot.lineage(self.table).in_state(LineageState.IN_PROGRESS)
        stale = [e for e in in_progress if e.id == former or self._is_our_entry(e)]
        foreign = [e for e in in_progress if e not in stale and e.overlaps(names_from, names_to)]
        if foreign:
            raise SwitchConflict(
                f"{self.table} is paused: another replacement of the same segments is open",
                why=f"lineage entry {foreign[0].id} → {', '.join(sorted(foreign[0].segments_to)[:3])}",
                hint="let its owner end or revert it; it is never forced away from here",
            )
        # Entries of ours that are still open belong to an earlier switch of this session.
        shared = [e for e in stale if not e.segments_to.isdisjoint(names_to)]
        for entry in stale:
            if entry not in shared:
                self.revert_entry(entry.id)  # R4: a forced start would leave it alive
        start = pinot.force_start_replace_segments if shared else pinot.start_replace_segments
        try:
            entry_id = start(self.table, names_from, names_to)
        except SwitchStateUnknown:
            found = self.open_twin(switch)
            if found is None:
                raise
            return found.id
        if pinot.lineage(self.table).get(entry_id) is None:
            raise SwitchStateUnknown(
                f"the lineage of {self.table} lost entry {entry_id} right after its start",
                why="another controller wrote the lineage at the same moment",
                hint="the next trigger starts it again",
            )
        return entry_id

    def open_twin(self, switch: Switch) -> LineageEntry | None:
        """An IN_PROGRESS entry with exactly our names: a driver died between start and its write."""
        found = self.edges.pinot.lineage(self.table).find(switch.segments_from, switch.names_to)
        return next((e for e in found if self._is_usable(e)), None)

    def revert_entry(self, entry_id: str) -> None:
        """Revert an entry of ours that is not published, and read that back (rules R4, R19)."""
        self.before_write()
        # Reverted or reaped before, or the reply got lost: what stands there now decides.
        with suppress(SwitchConflict, SwitchStateUnknown):
            self.edges.pinot.force_revert_replace_segments(self.table, entry_id)
        entry = self.edges.pinot.lineage(self.table).get(entry_id)
        if entry is not None and entry.state is not LineageState.REVERTED:
            raise SwitchConflict(
                f"lineage entry {entry_id} of {self.table} could not be reverted",
                why=f"it is {entry.state.value}",
                hint="look at the controller's log; the next trigger tries again",
            )

    def delete(self, names: Iterable[str]) -> None:
        """Delete segments of ours, as far as they are there."""
        present = self.edges.pinot.all_segments(self.table).intersection(names)
        if present:
            self.before_write()
            self.edges.pinot.delete_segments(self.table, sorted(present))

    # --- W3 ------------------------------------------------------------------------------------------

    def push(self, switch: Switch, entry_id: str) -> Pushed:
        """Push what Pinot does not have yet, hidden by the entry."""
        staging, pushed, mode, fallback = self.edges.staging, 0, self.push_mode, None
        for start in range(0, len(switch.segments_to), BATCH):
            self.before_write()
            self.require_usable(entry_id)
            report = self.edges.pinot.push(
                self.table,
                switch.segments_to[start : start + BATCH],
                read=lambda uri: staging.store.read(staging.key_of(uri)),
                mode=mode,
            )
            # The first batch finds the mode that works; the others are told.
            mode, pushed, fallback = report.mode, pushed + len(report.pushed), fallback or report.fallback
        return Pushed(pushed, mode, fallback)

    def is_usable(self, entry_id: str) -> bool:
        """Whether segments may be pushed under that entry, and it may be ended: IN_PROGRESS and not old."""
        entry = self.edges.pinot.lineage(self.table).get(entry_id)
        return entry is not None and self._is_usable(entry)

    def require_usable(self, entry_id: str) -> None:
        """Segments pushed without their entry would be visible at once.

        :raises SwitchConflict: the entry is not IN_PROGRESS any more, or too old.
        """
        entry = self.edges.pinot.lineage(self.table).get(entry_id)
        if entry is None or not self._is_usable(entry):
            state = "gone" if entry is None else entry.state.value
            raise SwitchConflict(
                f"lineage entry {entry_id} of {self.table} cannot be used: it is {state}",
                why="it was reverted or reaped, or it is so old that Pinot may reap it any moment",
                hint="the next trigger starts the switch again",
            )

    # --- W4 ------------------------------------------------------------------------------------------

    def audit(self, switch: Switch) -> tuple[Finding, ...]:
        """Look at what the servers loaded; waits for them first."""
        pinot, outputs = self.edges.pinot, switch.segments_to
        online = self._wait_online(switch)
        return (
            online,
            crc_as_built(outputs, pinot.segment_crcs(self.table)),
            rows_as_built(outputs, pinot.rows_on_servers(self.table, switch.names_to)),
            sources_unchanged(switch.segments_from, pinot.visible_segments(self.table)),
        )

    def _wait_online(self, switch: Switch) -> Finding:
        left = self.edges.waits.online
        while True:
            replicas = self.edges.pinot.online_replicas(self.table, switch.names_to)
            finding = replicas_online(switch.segments_to, replicas)
            failed = any(state == "ERROR" for states in replicas.values() for state in states.values())
            if finding.passed or failed or left <= 0:
                return finding
            self.edges.sleep(0.5)
            left -= 0.5

    # --- W5 ------------------------------------------------------------------------------------------

    def end(self, entry_id: str) -> None:
        """End the replacement and see it COMPLETED in the lineage.

        :raises SwitchStateUnknown: it still cannot be told; the next trigger looks again.
        """
        self.before_write()
        try:
            self.edges.pinot.end_replace_segments(self.table, entry_id)
        except SwitchStateUnknown:
            self._await_completed(entry_id)

    def _await_completed(self, entry_id: str) -> None:
        # The controller goes on when the caller has gone, so an IN_PROGRESS entry may complete any moment.
        for _ in range(20):
            entry = self.edges.pinot.lineage(self.table).get(entry_id)
            if entry is None or entry.state is LineageState.REVERTED:
                break
            if entry.state is LineageState.COMPLETED:
                return
            self.edges.sleep(0.5)
        raise SwitchStateUnknown(
            f"it cannot be told yet whether {self.table} was switched",
            why=f"endReplaceSegments of entry {entry_id} gave no answer",
            hint="the next trigger reads the lineage and goes on from there",
        )

    def is_published(self, switch: Switch, entry_id: str, end_issued: str) -> bool:
        """W5's table: whether the switch happened, read from Pinot alone."""
        entry = self.edges.pinot.lineage(self.table).get(entry_id) if entry_id else None
        if entry is not None:
            return entry.state is LineageState.COMPLETED
        if not end_issued or end_issued != entry_id:
            return False
        # Gone after its end was sent. Pinot deletes the outputs of an entry that it gives up, so one that is
        # in sight says: completed and reaped. Some may have been deleted since, by time retention or by hand.
        visible = self.edges.pinot.visible_segments(self.table)
        if switch.segments_to:
            return not visible.isdisjoint(switch.names_to)
        return visible.isdisjoint(switch.segments_from)

    def confirm_visible(self, names_to: Sequence[str], names_from: Sequence[str]) -> None:
        """Under the whole lineage, and at every broker, all of the new and none of the old (rule R7).

        :raises SwitchStateUnknown: lineage or a broker shows something else.
        """
        visible = self.edges.pinot.visible_segments(self.table)
        self._require(visible, names_to, names_from, "the lineage")
        for broker in self.edges.pinot.brokers(self.table):
            self._confirm_broker(broker, names_to, names_from)

    def _confirm_broker(self, broker: str, names_to: Sequence[str], names_from: Sequence[str]) -> None:
        pinot, left = self.edges.pinot, self.edges.waits.broker
        pinot.rebuild_routing(broker, self.table)
        while True:
            shown = pinot.broker_visible_segments(broker, self.table)
            if shown.issuperset(names_to) and shown.isdisjoint(names_from):
                return
            if left <= 0:
                self._require(shown, names_to, names_from, f"broker {broker}")
            self.edges.sleep(0.2)
            left -= 0.2

    def _require(
        self, shown: frozenset[str], names_to: Sequence[str], names_from: Sequence[str], where: str
    ) -> None:
        missing, stale = set(names_to) - shown, shown & set(names_from)
        if missing or stale:
            raise SwitchStateUnknown(
                f"{where} does not show the new set of {self.table} yet",
                why=f"{len(missing)} of {len(names_to)} new segments missing, {len(stale)} old ones in sight",
                hint="the next trigger looks again and finishes",
            )

    # --- shared --------------------------------------------------------------------------------------

    def _is_usable(self, entry: LineageEntry) -> bool:
        return (
            entry.state is LineageState.IN_PROGRESS
            and self.edges.now_ms() - entry.timestamp_ms < self.entry_max_age_ms
        )

    def _is_our_entry(self, entry: LineageEntry) -> bool:
        return bool(entry.segments_to) and all(is_ours(self.table, s) for s in entry.segments_to)
