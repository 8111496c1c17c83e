"""A `FakeRealtime` of two partitions whose servers consume what is sent: 500 rows make a segment.

What `fakes.realtime.kafka_table.Clicks` is for a real Pinot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fakes.realtime.kafka_table import table_config
from fakes.realtime.memory import TABLE, FakeRealtime
from fakes.realtime.orders import commit

from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.realtime.model.state import RealtimeState

PARTITIONS = 2
SEGMENT_ROWS = 500


@dataclass
class FakeClicks:
    """The table.

    :ivar sent: messages so far.
    """

    fake: FakeRealtime
    pinot: RealtimePinot
    sent: int = 0

    @property
    def table(self) -> str:
        return TABLE

    def send(self, count: int) -> None:
        """Produce messages, evenly over the partitions."""
        self.sent += count
        self.fake.stream = dict.fromkeys(range(PARTITIONS), (0, self.sent // PARTITIONS))

    @contextmanager
    def store_away(self) -> Iterator[None]:
        """The deep store can be neither written nor read."""
        self.fake.store_up = False
        try:
            yield
        finally:
            self.fake.store_up = True

    def look(self) -> RealtimeState:
        """Its state, once all that was sent is consumed."""
        while full := [name for name in self.fake.consuming if self._is_full(name)]:
            commit(self.fake, full, followed=True)
        return self.fake.look()

    def until(self, holds: Callable[[RealtimeState], bool]) -> RealtimeState:
        """Look; here all comes to pass at once."""
        state = self.look()
        assert holds(state), f"it did not come to that: {state}"
        return state

    def _is_full(self, name: str) -> bool:
        """Whether a consuming segment has all its rows, once it has taken what there is."""
        start = int(self.fake.nodes[name].fields["segment.realtime.startOffset"])
        end = min(self.fake.stream[int(name.split("__")[1])][1], start + SEGMENT_ROWS)
        self.fake.consuming[name] = dict.fromkeys(self.fake.consuming[name], ("CONSUMING", end, None))
        return end == start + SEGMENT_ROWS


@contextmanager
def fake_clicks(version: str) -> Iterator[FakeClicks]:
    """A new one."""
    fake = FakeRealtime(version)
    fake.config = {**table_config("clicks", "127.0.0.1:1"), "tableName": TABLE}
    fake.stream = dict.fromkeys(range(PARTITIONS), (0, 0))
    for partition in fake.stream:
        fake.segment(partition, 0, "IN_PROGRESS", end=0)
    with fake.pinot() as pinot:
        yield FakeClicks(fake, pinot)
