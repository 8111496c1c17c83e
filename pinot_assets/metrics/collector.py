"""Looks at every table from time to time, and remembers: what is scraped is never read for the scrape."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version

from pinot_assets.errors import PinotAssetsError
from pinot_assets.metrics.family import PREFIX, Family, Sample, gauge
from pinot_assets.metrics.looking import Part

UP = gauge("up", "1 where the newest look at this part of the table succeeded.", "part")
ERRORS = gauge("scrape_errors_total", "Looks at this part of the table that failed.", "part")
LOOKED_AT = gauge(
    "last_look_timestamp_seconds", "When this part of the table was last looked at with success.", "part"
)
LOOK_SECONDS = gauge("look_duration_seconds", "Wall time of the newest look at this part.", "part")
BUILD_INFO = Family(f"{PREFIX}build_info", "1; the version of the collector.", ("version",))

FAMILIES = (UP, ERRORS, LOOKED_AT, LOOK_SECONDS, BUILD_INFO)

AT_A_TIME = 4
"""Tables that are looked at at the same time: a listing may hold a million files."""


@dataclass(slots=True)
class _Known:
    """What is known of one part.

    :ivar samples: of the newest look; none where it failed, since what was true may be no more.
    :ivar looked_at: seconds since the epoch of the newest success, 0 before the first.
    """

    up: bool = False
    samples: Sequence[Sample] = ()
    looked_at: float = 0.0
    seconds: float = 0.0
    errors: int = 0
    why: str = ""


@dataclass
class Collector:
    """What is known of all tables.

    :ivar told: hears of a part that cannot be read any more, once for each reason.
    """

    told: Callable[[str], None]
    clock: Callable[[], float] = time.time
    _known: dict[tuple[str, str], _Known] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self, parts: Sequence[Part]) -> None:
        """Look at each of them once. Never raises for what one of them raises."""
        with ThreadPoolExecutor(AT_A_TIME, "metrics") as pool:
            for _ in pool.map(self._look, parts):
                pass

    def look_for_ever(self, parts: Sequence[Part], every_s: float, stopped: threading.Event) -> None:
        """Until it is stopped; the pause is counted from the end of a look, so none is begun twice."""
        while not stopped.is_set():
            self.look(parts)
            stopped.wait(every_s)

    def samples(self) -> Iterator[Sample]:
        """What is known now; of a part that was not looked at yet, nothing."""
        yield BUILD_INFO.of(1, version("pinot-assets"))
        with self._lock:
            known = [*self._known.items()]
        for (table, part), what in known:
            yield UP.of(what.up, table, part)
            yield ERRORS.of(what.errors, table, part)
            yield LOOK_SECONDS.of(what.seconds, table, part)
            if what.looked_at:
                yield LOOKED_AT.of(what.looked_at, table, part)
            yield from what.samples

    def _look(self, part: Part) -> None:
        key, begun = (part.table, part.name), time.monotonic()
        before = self._known.get(key, _Known())
        try:
            samples = part.read()
        except Exception as error:
            why = error.reason if isinstance(error, PinotAssetsError) else repr(error)
            if why != before.why:
                self.told(f"{part.table}, {part.name}: {why}")
            now = _Known(looked_at=before.looked_at, errors=before.errors + 1, why=why)
        else:
            now = _Known(True, samples, self.clock(), errors=before.errors)
        now.seconds = time.monotonic() - begun
        with self._lock:
            self._known[key] = now
