"""How long one tick of a sensor may write: Dagster stores 8 to 30 events a second; a tick has 60 s."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from dagster._grpc.utils import default_sensor_grpc_timeout

from pinot_assets.core.waiting import Late, Patience

TICK_S = 15.0
"""What a tick may spend on it, beside its look at source and session."""

LISTING_S = 20.0
"""What a tick may spend on listing; with what it writes and compares it stays below Dagster's 60 s."""

LOOK_S = default_sensor_grpc_timeout() - TICK_S - 5
"""How long a tick waits for what it looks at. Clients of what is silent give up after a minute, or one after
the other; Dagster has ended the tick by then and keeps nothing of it."""

LATE_HINT = (
    "is it up, and does the network let requests through? Where a look takes longer by itself, set "
    "DAGSTER_SENSOR_GRPC_TIMEOUT_SECONDS for code server and daemon (docs/scale.md)"
)

T = TypeVar("T")


class Budget:
    """Time for all that is written with it. Runs and the command line have as much as they need.

    :param seconds: from now on.
    :ivar exhausted: something was left undone.
    """

    def __init__(self, seconds: float = math.inf) -> None:
        self._end = time.monotonic() + seconds
        self.exhausted = False

    @property
    def is_spent(self) -> bool:
        """Whether there is no time left."""
        return time.monotonic() >= self._end

    def spend_on(self, items: Iterable[T]) -> Iterator[T]:
        """Items while there is time, but always the first: whatever is late, the next tick gets further."""
        for number, item in enumerate(items):
            if number and self.is_spent:
                self.exhausted = True
                return
            yield item


def look_in_time(patience: Patience, name: str, look: Callable[[], T], blind: Callable[[str, str], T]) -> T:
    """What a look at a table comes to: a tick that Dagster ends leaves every check as green as it was.

    :param blind: what takes its place when it is late, by reason and next step.
    """
    try:
        return patience.wait_for(look, LOOK_S)
    except Late as late:
        return blind(f"the look at {name} does not come to its end ({late})", LATE_HINT)
