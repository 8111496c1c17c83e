"""What is looked at for the metrics, each part on its own: one that cannot be read takes no other with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from pinot_assets.errors import PinotAssetsError
from pinot_assets.health.table_probe import open_table_probe
from pinot_assets.metrics.family import Sample
from pinot_assets.metrics.health import health_samples, samples_of_probe
from pinot_assets.metrics.realtime import realtime_samples
from pinot_assets.metrics.session import samples_of_store
from pinot_assets.realtime.health.checks import look as look_at_stream_table
from pinot_assets.session.connect import open_session_store, open_staging
from pinot_assets.settings.environment import Settings
from pinot_assets.table_spec import AnyTableSpec, LeftOut, RealtimeTableSpec, TableSpec, label_of

SettingsOf = Callable[[], Settings]


@dataclass(frozen=True, slots=True)
class ScrapePart:
    """One thing that is looked at.

    :ivar table: as commands take it.
    :ivar name: `session`, `health` or `realtime`; `spec` of a table whose file is wrong.
    :ivar read: looks; raises where nothing can be said.
    """

    table: str
    name: str
    read: Callable[[], list[Sample]]


def left_out_parts(left_out: Iterable[LeftOut]) -> list[ScrapePart]:
    """Tables whose files are wrong, each once: none can be looked at, and each is told of."""
    by_name = {one.name: one for one in left_out}
    return [ScrapePart(name, "spec", partial(_raise, one)) for name, one in by_name.items()]


def _raise(one: LeftOut) -> list[Sample]:
    """:raises PinotAssetsError: always; says what is wrong with the file."""
    raise PinotAssetsError(f"left out: {one.in_one_line}")


def cheap_parts(specs: list[AnyTableSpec], settings: SettingsOf) -> list[ScrapePart]:
    """What a few reads of ZooKeeper and of the staging area tell."""
    return [
        ScrapePart(label_of(spec), "session", partial(read_session, spec, settings))
        for spec in specs
        if isinstance(spec, TableSpec)
    ]


def dear_parts(specs: list[AnyTableSpec], settings: SettingsOf) -> list[ScrapePart]:
    """What lists a source and asks servers, so that it is not looked at often."""
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
    """Every standing check, and what their readings tell besides."""
    with open_table_probe(spec, settings) as look:
        return samples_of_probe(look)


def read_realtime(spec: RealtimeTableSpec, settings: SettingsOf) -> list[Sample]:
    """:raises PinotAssetsError: the table cannot be read."""
    table, looked = label_of(spec), look_at_stream_table(spec.name, settings)
    if looked.state is None:
        raise PinotAssetsError(f"{table} cannot be read", why=looked.answers[0].message)
    return [*realtime_samples(table, looked.state), *health_samples(table, looked.answers)]
