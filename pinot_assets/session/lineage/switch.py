"""What a switch does beside its lineage entry: push hidden (W3), delete, read back whether it happened (W5).

The entry is started and ended in `session/lineage/entries.py` (`LineageEntries.open_entry`, W2, and
`LineageEntries.end`, W5). None of these functions guesses (docs/design/session.md#the-switch-w1-to-w6). What
to write to ZooKeeper between them is decided in `session/commit`, and after a death in
`session/recover/interrupted.py`.

The lease fences ZooKeeper, not Pinot: what an owner sent just before it lost its lease has to be over before
the next one writes (rule R2). So a batch of tars is as large as goes out in a part of that time, as measured
on the batch before. The first one is a single segment. What is left goes in batches of one size: a call costs
much even for a few segments, so a small remainder would be dear.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pinot_assets.core.waiting import Deadline, poll_until
from pinot_assets.errors import PinotError, PinotUnreachable, SwitchStateUnknown
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

    :ivar push_mode: how tars get into Pinot; None tries.
    :ivar before_delete: called with what is about to be deleted; raises where that is published.
    """

    push_mode: PushMode | None
    before_delete: Callable[[frozenset[str]], None]

    def delete(self, names: Iterable[str]) -> None:
        """Delete segments of ours, as far as they are there: strays, and what a switch that failed has left.

        :raises SessionError: some of them are visible and published, and the pointer does not know of it.
        """
        if present := self.clients.pinot.all_segments(self.table).intersection(names):
            self.before_write()
            self.before_delete(present)
            self.before_write()  # that look may have taken long
            self.clients.pinot.delete_segments(self.table, sorted(present))

    # --- W3 ------------------------------------------------------------------------------------------

    def push(self, switch: Switch, entry_id: str) -> PushReport:
        """Push what Pinot does not have yet, hidden by the entry.

        :raises PushRefused: Pinot does not take one, or has another content under its name.
        """
        return push_missing(
            self.clients,
            self.table,
            switch.segments_to,
            self.push_mode,
            self.before_write,
            lambda: self._before_upload(entry_id),
        )

    def _before_upload(self, entry_id: str) -> None:
        self.require_usable(entry_id)
        self.before_write()  # nothing that may take long lies between this and the upload

    # --- W5 ------------------------------------------------------------------------------------------

    def ask_if_published(self, switch: Switch, entry_id: str, end_issued: str) -> bool:
        """Whether the switch happened, by Pinot alone (docs/design/session.md#what-became-of-a-switch)."""
        lineage = self.fetch()
        entry = lineage.get(entry_id) if entry_id else None
        if entry is not None:
            return entry.state is LineageState.COMPLETED
        if not end_issued or end_issued != entry_id:
            return False
        # Gone after its end was sent. Pinot deletes the outputs of an entry that it gives up, so one that is
        # in sight, or that somebody replaced, says: completed and reaped. Some may have been deleted since,
        # by time retention or by hand.
        visible = self.clients.pinot.visible_segments(self.table)
        if switch.segments_to:
            later = (e.segments_from for e in lineage.in_state(LineageState.COMPLETED))
            return not visible.union(*later).isdisjoint(switch.names_to)
        return visible.isdisjoint(switch.segments_from)

    def confirm_visible(self, names_to: Sequence[str], names_from: Sequence[str]) -> None:
        """Under the whole lineage, and at every broker, all of the new and none of the old (rule R7).

        :raises SwitchStateUnknown: lineage or a broker shows something else.
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
                return error  # it may still route to what servers dropped a moment ago (Pinot's 235)

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
                why=f"{len(absent)} of {len(names_to)} new segments missing, {len(stale)} old ones in sight",
                hint="the next trigger looks again and finishes",
            )


# --- W3, a batch at a time ---------------------------------------------------------------------------

MOST = 500
"""Beyond that a batch saves nothing more: 7 ms a segment, and no write of the ideal state (measured)."""

SHARE = 0.25
"""Part of the deadline that a batch should take: a store may get slower from one batch to the next."""


@dataclass(frozen=True, slots=True)
class BatchSizer:
    """What the next batch may hold.

    :ivar segments: how many.
    :ivar bytes: tar bytes, which Pinot copies before it answers; None while nothing is known.
    """

    segments: int = 1
    bytes: int | None = None

    def next_of(self, outputs: Sequence[Output]) -> Sequence[Output]:
        """The first of these, as many as may go together; at least one."""
        calls = max(1, math.ceil(len(outputs) / min(self.segments, MOST)))
        count = size = 0
        for output in outputs[: math.ceil(len(outputs) / calls)]:
            size += output.tar_bytes
            if count and self.bytes is not None and size > self.bytes:
                break
            count += 1
        return outputs[:count]

    def after(self, outputs: Sequence[Output], report: PushReport, deadline: float) -> BatchSizer:
        """What is right after a push of these; the same, if nothing had to be sent.

        :param deadline: seconds within which an upload has to be over.
        """
        names = frozenset(report.pushed)
        sent = [output for output in outputs if output.segment in names]
        if not sent:
            return self
        share = SHARE * deadline / max(report.seconds, 1e-3)
        return BatchSizer(max(1, int(len(sent) * share)), int(sum(o.tar_bytes for o in sent) * share))


def push_missing(
    clients: TableClients,
    table: str,
    outputs: Sequence[Output],
    mode: PushMode | None,
    before_write: Callable[[], None],
    before_upload: Callable[[], None],
) -> PushReport:
    """Push what the table does not have yet.

    :param table: raw name.
    :param mode: how tars get into Pinot; None tries.
    :param before_write: called before each batch (rule R2).
    :param before_upload: called before each upload.
    :returns: what was uploaded; its mode is the one asked for as long as none is found out.
    :raises PushRefused: Pinot does not take one, or has another content under its name.
    """
    before_write()  # what a former owner sent has landed by then, or is seen to be under way
    left = missing(clients.pinot, table, outputs)
    report, sizer = PushReport((), (), mode, None, 0, 0.0), BatchSizer()
    while left:
        before_write()  # one that slept past its lease goes no further
        batch = sizer.next_of(left)
        # The first batch finds the mode that works; the others are told.
        uploaded = clients.pinot.push(
            table, batch, staged=clients.staging, mode=report.mode, before_upload=before_upload
        )
        sizer = sizer.after(batch, uploaded, clients.waits.pinot_write)
        report, left = report.then(uploaded), left[len(batch) :]
    return report
