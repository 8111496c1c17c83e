"""What is looked at for the metrics, each part on its own: one that cannot be read takes no other with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from pinot_assets.errors import PinotAssetsError
from pinot_assets.health import examine, rollback
from pinot_assets.health.table_probe import TableProbe, open_table_probe
from pinot_assets.metrics.family import Sample
from pinot_assets.metrics.health import health_samples, rollback_sample
from pinot_assets.metrics.realtime import realtime_samples
from pinot_assets.metrics.session import Seen, session_samples
from pinot_assets.metrics.source import LEFT_OUT, source_samples
from pinot_assets.realtime.health.checks import look as look_at_stream_table
from pinot_assets.session.detect.observe import kept_sessions
from pinot_assets.session.stores.clients import open_session_store, open_staging
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.hold import NO_HOLD
from pinot_assets.session.values.state import Session
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


def samples_of_store(spec: TableSpec, store: SessionStore, staging: Staging) -> list[Sample]:
    """What stands in ZooKeeper, and in the staging area behind it.

    :raises PinotAssetsError: a node, or the object that it names, cannot be read.
    """
    seen = see(store, staging)
    return [*session_samples(label_of(spec), seen, spec.ingestion.max_retries, spec.dagster.freshness_hours)]


def see(store: SessionStore, staging: Staging) -> Seen:
    """Without lease, and without the rows of the snapshot, of which there may be a million."""
    pointer = store.pointer()
    return Seen(
        session=store.active_session(pointer),
        sessions=tuple(s for s in reversed(kept_sessions(store)) if isinstance(s, Session)),
        holder=store.holder(),
        header=staging.header(pointer.current_snapshot) if pointer.current_snapshot else None,
        hold=staging.hold(pointer.hold) if pointer.hold else NO_HOLD,
    )


def read_health(spec: TableSpec, settings: SettingsOf) -> list[Sample]:
    """Every standing check, and what their readings tell besides."""
    with open_table_probe(spec, settings) as look:
        return samples_of_probe(look)


def samples_of_probe(probe: TableProbe) -> list[Sample]:
    """What one look tells; a reading that failed is told by the checks that need it."""
    answers = examine(probe)
    samples = [*health_samples(label_of(probe.spec), answers)]
    with suppress(PinotAssetsError):
        samples += _source(probe)
    with suppress(PinotAssetsError):
        samples.append(LEFT_OUT.of(len(probe.left_out), label_of(probe.spec)))
    if any(answer.name == rollback.NAME and answer.found > 0 for answer in answers):
        samples.append(_way_back(probe))
    return samples


def _source(probe: TableProbe) -> Iterator[Sample]:
    published_ms = probe.snapshot.published_ms if probe.snapshot else None
    waiting_ms, unready_ms = probe.waiting_since_ms, probe.unready_since_ms
    return source_samples(label_of(probe.spec), probe.difference, waiting_ms, unready_ms, published_ms)


def _way_back(probe: TableProbe) -> Sample:
    """Of a look whose check found time left, so that all of this was read."""
    assert probe.snapshot is not None
    entry = probe.lineage.get(probe.snapshot.lineage_entry_id)
    switched_ms = entry.timestamp_ms if entry else probe.snapshot.published_ms
    return rollback_sample(label_of(probe.spec), switched_ms, probe.revert_window_ms)


def read_realtime(spec: RealtimeTableSpec, settings: SettingsOf) -> list[Sample]:
    """:raises PinotAssetsError: the table cannot be read."""
    table, looked = label_of(spec), look_at_stream_table(spec.name, settings)
    if looked.state is None:
        raise PinotAssetsError(f"{table} cannot be read", why=looked.answers[0].message)
    return [*realtime_samples(table, looked.state), *health_samples(table, looked.answers)]
