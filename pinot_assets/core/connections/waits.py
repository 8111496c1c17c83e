"""How long the session machine waits, and for what: one value, so that a test can make it short."""

from __future__ import annotations

from dataclasses import dataclass

from pinot_assets.core.connections.pinot import Timeouts
from pinot_assets.errors import SpecError


@dataclass(frozen=True, slots=True)
class Waits:
    """All in seconds.

    :ivar lease: ZooKeeper session time-out: a dead run holds its table for so long.
    :ivar pinot_write: longest deadline of a Pinot call that changes something. Shorter than `lease`; a new
        owner waits so long before its first write, if the owner before never let go, or left one of unknown
        end (rule R2).
    :ivar second_look: an empty source is believed only when a listing so much later agrees (edge case E2).
    :ivar first_entry: a table's first lineage entry is read back so much later: another controller that
        writes the node for the first time, too, can take it away (rule R6).
    :ivar online: how long the audit waits for servers to load what was pushed (rule R10).
    :ivar broker: how long a broker may show the old set after it was asked to rebuild its routing (R7).
    :ivar stall: a run without a sign of progress for so long lets go of its table (rule R25). Longer than
        one step of a file takes: to copy it, to write one segment of it.
    :ivar hold: and so does one that has held it for so long.
    :raises SpecError: a write to Pinot could outlive the lease.
    """

    lease: float = 30.0
    pinot_write: float = 20.0
    second_look: float = 30.0
    first_entry: float = 2.0
    online: float = 300.0
    broker: float = 60.0
    stall: float = 7200.0
    hold: float = 86400.0

    def __post_init__(self) -> None:
        if not 0 < self.pinot_write < self.lease:
            raise SpecError(
                f"a write to Pinot may take {self.pinot_write:g} s, and the lease lasts {self.lease:g} s",
                why="a run that lost its lease must not have a call under way for long (rule R2)",
                hint="let the lease last longer than the longest write",
            )

    def timeouts(self) -> Timeouts:
        """Deadlines of Pinot's calls that keep to `pinot_write`."""
        usual = Timeouts()
        return Timeouts(
            connect=min(usual.connect, self.pinot_write),
            call=min(usual.call, self.pinot_write),
            upload=self.pinot_write,
            end=min(usual.end, self.pinot_write),
        )
