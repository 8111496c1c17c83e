"""Push hidden (W3), delete, and read back whether a switch happened (W5).

`session/lineage/entries.py` starts and ends the entry (`LineageEntries.open_entry`, W2, and
`LineageEntries.end`, W5). None of these functions guesses (docs/design/session.md#the-switch-w1-to-w6).
`session/commit` decides what to write to ZooKeeper between them; after a driver's death,
`session/recover/interrupted.py` does.

The lease fences ZooKeeper, not Pinot: a call that an owner sent just before it lost its lease must be over
before the next owner writes (rule R2). So a batch of tars must go out in a part of that time, as measured on
the batch before. The first batch is a single segment. The rest goes in batches of equal size: a call is
expensive even for a few segments, so a small last batch would waste time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pinot_assets.core.check_result import some
from pinot_assets.core.text import plural
from pinot_assets.core.waiting import Deadline, poll_until
from pinot_assets.errors import PinotError, PinotUnreachable, SwitchConflict, SwitchStateUnknown
from pinot_assets.pinot.api import PushMode, PushReport
from pinot_assets.pinot.lineage import LineageState
from pinot_assets.pinot.push.upload_loop import missing
from pinot_assets.session.lineage.entries import LineageEntries
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.staging import Switch
from pinot_assets.snapshot.receipt import Output


@dataclass(frozen=True, slots=True)
class Switcher(LineageEntries):
    """Pinot's side of one table's switch.

    :ivar push_mode: the push mode; None tries what works.
    :ivar before_delete: called with the segments to delete; raises if they are published.
    """

    push_mode: PushMode | None
    before_delete: Callable[[frozenset[str]], None]

    def delete(self, names: Iterable[str]) -> None:
        """Delete those of our segments that exist: strays, and what a failed switch has left.

        Pinot after 1.5.1 refuses a whole call if a lineage entry locks one of its names. Then the others are
        deleted by a second call.

        :raises SessionError: some are visible and published, and the pointer does not know of it.
        :raises SwitchConflict: lineage entries lock some of them; the others are deleted.
        """
        if present := self.clients.pinot.all_segments(self.table).intersection(names):
            self.before_write()
            self.before_delete(present)
            self.before_write()  # that check may have taken long
            try:
                self.clients.pinot.delete_segments(self.table, sorted(present))
            except (PinotUnreachable, SwitchStateUnknown):
                raise
            except PinotError as error:
                if not (locked := self.fetch().locked() & present):
                    raise
                self._delete_beside(locked, present - locked, error)

    def _delete_beside(self, locked: frozenset[str], free: frozenset[str], refusal: PinotError) -> None:
        """Delete `free` after a refusal of all of them; raise an error that names those that stay."""
        if free:
            self.before_write()
            self.clients.pinot.delete_segments(self.table, sorted(free))
        holding = sorted(e.id for e in self.fetch() if not e.locked.isdisjoint(locked))
        kept = f"{plural(len(locked), 'segment')} that should be deleted: {some(sorted(locked))}"
        raise SwitchConflict(
            f"{self.table} keeps {kept}",
            why=f"lineage entry {', '.join(holding)} locks them; {len(free):,} others are deleted. "
            f"Pinot: {refusal.reason}",
            hint="an open entry ends with its owner's replacement, and Pinot removes a completed one after "
            "its period; the next trigger deletes the rest",
        ) from refusal

    # --- W3 ------------------------------------------------------------------------------------------

    def push(
        self, switch: Switch, entry_id: str, on_pushed: Callable[[int], None] = lambda _: None
    ) -> PushReport:
        """Push what Pinot does not have yet, hidden by the entry.

        :param on_pushed: called with the number of segments that Pinot has by now.
        :raises PushRefused: Pinot refuses a segment, or has other content under its name.
        """
        return push_missing(
            self.clients,
            self.table,
            switch.segments_to,
            self.push_mode,
            self.before_write,
            lambda: self._before_upload(entry_id),
            on_pushed,
        )

    def _before_upload(self, entry_id: str) -> None:
        self.require_usable(entry_id)
        self.before_write()  # last: nothing slow may come between this and the upload

    # --- W5 ------------------------------------------------------------------------------------------

    def ask_if_published(self, switch: Switch, entry_id: str, end_issued: str) -> bool:
        """Whether the switch happened, by Pinot alone (docs/design/session.md#what-became-of-a-switch)."""
        lineage = self.fetch()
        entry = lineage.get(entry_id) if entry_id else None
        if entry is not None:
            return entry.state is LineageState.COMPLETED
        if not end_issued or end_issued != entry_id:
            return False
        # The entry is gone after its end was sent. Pinot deletes the outputs of an entry that it gives up. So
        # an output that is visible, or that somebody replaced, proves that the entry was completed and then
        # reaped. One output is enough: time retention or a person may have deleted others since.
        visible = self.clients.pinot.visible_segments(self.table)
        if switch.segments_to:
            later = (e.segments_from for e in lineage.in_state(LineageState.COMPLETED))
            return not visible.union(*later).isdisjoint(switch.names_to)
        return visible.isdisjoint(switch.segments_from)

    def confirm_visible(self, names_to: Sequence[str], names_from: Sequence[str]) -> None:
        """See that the lineage and every broker show all new segments and no old one (rule R7).

        :raises SwitchStateUnknown: the lineage or a broker shows something else.
        """
        visible = self.clients.pinot.visible_segments(self.table)
        self._require(visible, names_to, names_from, "the lineage")
        for broker in self.clients.pinot.brokers(self.table):
            self._confirm_broker(broker, names_to, names_from)

    def _confirm_broker(self, broker: str, names_to: Sequence[str], names_from: Sequence[str]) -> None:
        pinot = self.clients.pinot
        pinot.rebuild_routing(broker, self.table)

        def look() -> frozenset[str] | PinotError:
            try:
                return pinot.broker_visible_segments(broker, self.table)
            except PinotUnreachable:
                raise
            except PinotError as error:
                return error  # it may route to segments that servers just dropped (Pinot's 235)

        def is_right(shown: frozenset[str] | PinotError) -> bool:
            if isinstance(shown, PinotError):
                return False
            return shown.issuperset(names_to) and shown.isdisjoint(names_from)

        shown = poll_until(Deadline(self.clients, self.clients.waits.broker), 0.2, look, is_right)
        if isinstance(shown, PinotError):
            raise shown
        self._require(shown, names_to, names_from, f"broker {broker}")

    def _require(
        self, shown: frozenset[str], names_to: Sequence[str], names_from: Sequence[str], where: str
    ) -> None:
        absent, stale = set(names_to) - shown, shown & set(names_from)
        if absent or stale:
            raise SwitchStateUnknown(
                f"{where} does not show the new set of {self.table} yet",
                why=f"{len(absent):,} of {len(names_to):,} new segments are missing, {len(stale):,} "
                "old ones are still visible",
                hint="the next trigger looks again and finishes",
            )


# --- W3, a batch at a time ---------------------------------------------------------------------------

MOST = 500
"""Largest batch, in segments. A larger one saves no more: 7 ms a segment, no ideal state write (measured)."""

SHARE = 0.25
"""Part of the deadline that a batch may take; the rest is reserve, as a store may get slower."""


@dataclass(frozen=True, slots=True)
class BatchSizer:
    """The size that the next batch may have.

    :ivar segments: number of segments.
    :ivar bytes: tar bytes, which Pinot copies before it answers; None before the first measurement.
    :ivar first: segments and seconds of the first push.
    """

    segments: int = 1
    bytes: int | None = None
    first: tuple[int, float] | None = None

    def next_of(self, outputs: Sequence[Output]) -> Sequence[Output]:
        """Return the first of these outputs, as many as one batch may hold; at least one."""
        calls = max(1, math.ceil(len(outputs) / min(self.segments, MOST)))
        count = size = 0
        for output in outputs[: math.ceil(len(outputs) / calls)]:
            size += output.tar_bytes
            if count and self.bytes is not None and size > self.bytes:
                break
            count += 1
        return outputs[:count]

    def after(self, outputs: Sequence[Output], report: PushReport, deadline: float) -> BatchSizer:
        """Return the sizer after a push of these outputs; the same one if nothing had to be sent.

        A call costs much even for one segment. The first push shows how much, and from the second one on this
        part is not counted for every segment.

        :param deadline: seconds within which an upload has to be over.
        """
        names = frozenset(report.pushed)
        sent = [output for output in outputs if output.segment in names]
        if not sent:
            return self
        count, seconds = len(sent), max(report.seconds, 1e-3)
        first = self.first or (count, seconds)
        of_call = 0.0
        if count > first[0] and seconds > first[1]:
            each = (seconds - first[1]) / (count - first[0])
            of_call = min(max(0.0, seconds - count * each), seconds / 2)  # small ones may follow a large one
        share = max(0.0, SHARE * deadline - of_call) / (seconds - of_call)
        return BatchSizer(max(1, int(count * share)), int(sum(o.tar_bytes for o in sent) * share), first)


def push_missing(
    clients: TableClients,
    table: str,
    outputs: Sequence[Output],
    mode: PushMode | None,
    before_write: Callable[[], None],
    before_upload: Callable[[], None],
    on_pushed: Callable[[int], None] = lambda _: None,
) -> PushReport:
    """Push the segments that the table does not have yet, in batches.

    :param table: raw name.
    :param mode: the push mode; None tries what works.
    :param before_write: called before each batch (rule R2).
    :param before_upload: called before each upload.
    :param on_pushed: called with the number of segments that the table has by now, after each batch.
    :returns: what was uploaded; its mode is `mode` until a push has found one that works.
    :raises PushRefused: Pinot refuses a segment, or has other content under its name.
    """
    before_write()  # after this, no call of a former owner can still arrive
    left = missing(clients.pinot, table, outputs)
    report, sizer = PushReport((), (), mode, None, 0, 0.0), BatchSizer()
    while left:
        on_pushed(len(outputs) - len(left))
        before_write()  # stop a driver that slept past its lease
        batch = sizer.next_of(left)
        # The first batch finds the push mode that works; the others use it.
        uploaded = clients.pinot.push(
            table, batch, staged=clients.staging, mode=report.mode, before_upload=before_upload
        )
        sizer = sizer.after(batch, uploaded, clients.waits.pinot_write)
        report, left = report.then(uploaded), left[len(batch) :]
    return report
