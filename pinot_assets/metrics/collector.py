"""Looks at every table from time to time and keeps the samples; a scrape never reads a table.

Each part of a table is looked at separately: if one cannot be read, the others still have their samples.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version

from pinot_assets.core.waiting import TABLES_AT_A_TIME
from pinot_assets.errors import PinotAssetsError
from pinot_assets.health.table_probe import open_table_probe
from pinot_assets.metrics.family import PREFIX, Family, Sample, gauge
from pinot_assets.metrics.health import health_samples, samples_of_probe
from pinot_assets.metrics.realtime import realtime_samples
from pinot_assets.metrics.session import samples_of_store
from pinot_assets.realtime.health.all_checks import view_of
from pinot_assets.session.stores.clients import open_session_store, open_staging
from pinot_assets.settings.environment import Settings
from pinot_assets.table_spec import AnyTableSpec, LeftOut, RealtimeTableSpec, TableSpec, label_of

UP = gauge(
    "up", "1 where the newest look at this part of the table succeeded, and no look at it is stuck.", "part"
)
ERRORS = gauge("scrape_errors_total", "Looks at this part of the table that failed.", "part")
LOOKED_AT = gauge(
    "last_look_timestamp_seconds", "When this part of the table was last read successfully.", "part"
)
LOOK_SECONDS = gauge("look_duration_seconds", "Wall time of the newest look at this part.", "part")
INTERVAL = gauge(
    "look_interval_seconds",
    "Pause between two looks at this part; absent where there is only one look.",
    "part",
)
BUILD_INFO = Family(f"{PREFIX}build_info", "1; the version of the collector.", ("version",))

HANGS_S = 900.0
"""Seconds after which a look counts as hanging, unless the interval of its part is longer."""

Key = tuple[str, str]
"""Name of the table, and of the part."""

SettingsOf = Callable[[], Settings]


@dataclass(frozen=True, slots=True)
class ScrapePart:
    """One part of a table, and how to look at it.

    :ivar table: its name, as commands take it.
    :ivar name: `session`, `health` or `realtime`; `spec` for a table whose file is wrong.
    :ivar read: looks and returns the samples; raises where the part cannot be read.
    """

    table: str
    name: str
    read: Callable[[], list[Sample]]


def left_out_parts(left_out: Iterable[LeftOut]) -> list[ScrapePart]:
    """Return one part for each table whose file is wrong: looking at it always fails, so it is reported."""
    by_name = {one.name: one for one in left_out}
    return [ScrapePart(name, "spec", partial(_raise, one)) for name, one in by_name.items()]


def _raise(one: LeftOut) -> list[Sample]:
    """:raises PinotAssetsError: always; its message is what is wrong with the file."""
    raise PinotAssetsError(f"left out: {one.in_one_line}")


def cheap_parts(specs: list[AnyTableSpec], settings: SettingsOf) -> list[ScrapePart]:
    """Return the `session` part of each OFFLINE table: a few reads of ZooKeeper and the staging area."""
    return [
        ScrapePart(label_of(spec), "session", partial(read_session, spec, settings))
        for spec in specs
        if isinstance(spec, TableSpec)
    ]


def dear_parts(specs: list[AnyTableSpec], settings: SettingsOf) -> list[ScrapePart]:
    """Return the parts that list a source or ask servers, which should not be looked at often."""
    return [
        ScrapePart(label_of(spec), "realtime", partial(read_realtime, spec, settings))
        if isinstance(spec, RealtimeTableSpec)
        else ScrapePart(label_of(spec), "health", partial(read_health, spec, settings))
        for spec in specs
    ]


def read_session(spec: TableSpec, settings: SettingsOf) -> list[Sample]:
    """:raises PinotAssetsError: ZooKeeper or the staging area cannot be read."""
    with open_session_store(spec, settings()) as store:
        return samples_of_store(spec, store, open_staging(spec))


def read_health(spec: TableSpec, settings: SettingsOf) -> list[Sample]:
    """Return the samples of every health check, and of the readings behind them."""
    with open_table_probe(spec, settings) as look:
        return samples_of_probe(look)


def read_realtime(spec: RealtimeTableSpec, settings: SettingsOf) -> list[Sample]:
    """:raises PinotAssetsError: the table cannot be read."""
    table, looked = label_of(spec), view_of(spec.name, settings)
    if looked.state is None:
        raise PinotAssetsError(f"{table} cannot be read", why=looked.answers[0].message)
    return [*realtime_samples(table, looked.state), *health_samples(table, looked.answers)]


@dataclass(slots=True)
class _KnownPart:
    """What the newest look at one part gave.

    :ivar samples: of the newest look; none where it failed, since older numbers may no longer be true.
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
    """Looks at the parts of all tables, and keeps their samples.

    :ivar warn: called with a part that can no longer be read, once for each reason.
    :ivar clock: returns seconds since the epoch.
    :ivar ticks: returns seconds that only grow.
    """

    warn: Callable[[str], None]
    clock: Callable[[], float] = time.time
    ticks: Callable[[], float] = time.monotonic
    _known: dict[Key, _KnownPart] = field(default_factory=dict)
    _every_s: dict[Key, float] = field(default_factory=dict)
    _begun: dict[Key, float] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def look(self, parts: Sequence[ScrapePart]) -> None:
        """Look at each part once. An interrupt does not wait for looks that are under way.

        :raises Exception: only what `warn` raises, never what a look raises.
        """
        left = queue.SimpleQueue[ScrapePart | None]()
        done = queue.SimpleQueue[BaseException | None]()
        for part in (*parts, *[None] * TABLES_AT_A_TIME):
            left.put(part)

        def work() -> None:
            while (part := left.get()) is not None:
                try:
                    self._look(part)
                except BaseException as error:  # the caller raises it: a failing `warn` ends the program
                    done.put(error)
                else:
                    done.put(None)

        for _ in range(TABLES_AT_A_TIME):  # no pool: the end of the program would wait for its threads
            threading.Thread(target=work, daemon=True).start()
        for _ in parts:
            if (error := done.get()) is not None:
                raise error

    def look_for_ever(self, parts: Sequence[ScrapePart], every_s: float, stopped: threading.Event) -> None:
        """Start looking at each part until `stopped` is set, and return at once.

        Each part has its own loop, so a part that hangs delays no other part. At most `TABLES_AT_A_TIME` of
        these parts are looked at at the same time, not counting those that hang.
        """
        beside = frozenset(map(_key, parts))
        with self._changed:
            self._every_s |= dict.fromkeys(beside, every_s)
        for part in parts:
            follows = partial(self._follow, part, beside, every_s, stopped)
            threading.Thread(target=follows, daemon=True).start()

    def samples(self) -> Iterator[Sample]:
        """Yield what is known now; nothing for a part that was not looked at yet."""
        yield BUILD_INFO.of(1, version("pinot-assets"))
        with self._changed:
            known = dict(self._known)
            hanging = {key: self._under_way_s(key) for key in self._begun if self._hangs(key)}
        for key in {**known, **hanging}:
            what = known.get(key, _KnownPart())
            yield UP.of(what.up and key not in hanging, *key)
            yield ERRORS.of(what.errors, *key)
            yield LOOK_SECONDS.of(hanging.get(key, what.seconds), *key)
            if key in self._every_s:
                yield INTERVAL.of(self._every_s[key], *key)
            if what.looked_at:
                yield LOOKED_AT.of(what.looked_at, *key)
            if key not in hanging:
                yield from what.samples

    def _follow(
        self, part: ScrapePart, beside: frozenset[Key], every_s: float, stopped: threading.Event
    ) -> None:
        """Look at the part again and again. The pause begins at the end of a look, so looks never overlap."""
        while not stopped.is_set():
            with self._changed:
                while sum(key in beside and not self._hangs(key) for key in self._begun) >= TABLES_AT_A_TIME:
                    self._changed.wait(1)  # a look that begins to hang notifies no waiter
                self._begun[_key(part)] = self.ticks()
            self._look(part)
            stopped.wait(every_s)

    def _look(self, part: ScrapePart) -> None:
        key = _key(part)
        with self._changed:
            self._begun.setdefault(key, self.ticks())
            before = self._known.get(key, _KnownPart())
        try:
            samples = part.read()
        except Exception as error:
            why = error.reason if isinstance(error, PinotAssetsError) else repr(error)
            if why != before.why:
                self.warn(f"{part.table}, {part.name}: {why}")
            now = _KnownPart(looked_at=before.looked_at, errors=before.errors + 1, why=why)
        else:
            now = _KnownPart(True, samples, self.clock(), errors=before.errors)
        with self._changed:
            now.seconds = self._under_way_s(key)
            self._known[key] = now
            del self._begun[key]
            self._changed.notify_all()

    def _under_way_s(self, key: Key) -> float:
        return self.ticks() - self._begun[key]

    def _hangs(self, key: Key) -> bool:
        return self._under_way_s(key) > max(HANGS_S, self._every_s.get(key, 0.0))


def _key(part: ScrapePart) -> Key:
    return part.table, part.name
