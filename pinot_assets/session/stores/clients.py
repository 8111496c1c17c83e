"""All clients of a session in one place, so that a test can count, cut off and kill its calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from kazoo.client import KazooClient

from pinot_assets.core.connections import Waits
from pinot_assets.core.outages import Service
from pinot_assets.core.this_machine import take_memory_from_system
from pinot_assets.errors import SpecError
from pinot_assets.ingest.contract.builder import Builder
from pinot_assets.pinot.api import PinotClient
from pinot_assets.session.stores.nodes import tables_with_sessions
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.settings.environment import Settings
from pinot_assets.source import open_store
from pinot_assets.source.notifications import SqsHints
from pinot_assets.source.object_store import ObjectStore
from pinot_assets.source.uris import parse_root
from pinot_assets.table_spec import TableSpec
from pinot_assets.zookeeper import cluster_client


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class TableClients:
    """The clients of one table.

    :ivar source: the input directory.
    :ivar staging: the table's folder of the staging area.
    :ivar now_ms: the clock, epoch milliseconds.
    :ivar sleep: waits; seconds.
    :ivar services: what a run asks while it makes no progress; those first that others depend on.
    """

    store: SessionStore
    pinot: PinotClient
    source: ObjectStore
    staging: Staging
    builder: Builder
    now_ms: Callable[[], int] = _now_ms
    sleep: Callable[[float], None] = time.sleep
    services: Sequence[Service] = ()

    @property
    def waits(self) -> Waits:
        """The times for which this driver waits."""
        return self.store.waits


# --- the one place where they are made ---------------------------------------------------------------


def open_source(spec: TableSpec) -> ObjectStore:
    """Open the table's source (its input directory)."""
    take_memory_from_system()  # a million listed files are Arrow columns
    return open_store(spec.input_uri(), spec.ingestion.input_props, spec.policy)


def open_hints(spec: TableSpec) -> SqsHints | None:
    """Open the table's notification queue; None if the table spec names none."""
    queue = spec.ingestion.notification_queue
    if not queue:
        return None
    return SqsHints(queue, parse_root(spec.input_uri()), spec.ingestion.input_props, spec.policy)


def open_staging(spec: TableSpec) -> Staging:
    """Open the table's own folder of the staging area."""
    root = f"{spec.staging_uri()}/{spec.name_with_type}"
    return Staging(open_store(root, spec.ingestion.output_props, spec.policy))


@contextmanager
def open_session_store(spec: TableSpec, settings: Settings) -> Iterator[SessionStore]:
    """Open the table's nodes in ZooKeeper.

    :raises SessionError: ZooKeeper does not answer, or has no such cluster.
    """
    with _client(settings) as client:
        yield SessionStore(client, settings.cluster, spec.name_with_type, settings.waits)


@contextmanager
def open_session_stores(specs: Iterable[TableSpec], settings: Settings) -> Iterator[dict[str, SessionStore]]:
    """Open the nodes of several tables by one client; by raw table name.

    :raises SessionError: as `open_session_store`.
    """
    with _client(settings) as client:
        yield {
            spec.name: SessionStore(client, settings.cluster, spec.name_with_type, settings.waits)
            for spec in specs
        }


@contextmanager
def open_known_stores(settings: Settings) -> Iterator[list[SessionStore]]:
    """Open the nodes of every table that has some in this ZooKeeper, even without a table spec.

    :raises SessionError: as `open_session_store`.
    """
    with _client(settings) as client:
        tables = tables_with_sessions(client, settings.cluster)
        yield [SessionStore(client, settings.cluster, table, settings.waits) for table in tables]


def _client(settings: Settings) -> AbstractContextManager[KazooClient]:
    access, lease = settings.zookeeper_access, settings.waits.lease
    return cluster_client(settings.zookeeper, settings.cluster, access, session_s=lease)


@contextmanager
def open_clients(spec: TableSpec, settings: Settings, builder: Builder) -> Iterator[TableClients]:
    """Open all clients that a driver of this table needs; they are closed at the end.

    :raises SpecError: a call to Pinot may take longer than a new owner of the lease waits (rule R2).
    """
    # Imported here: the HTTP client takes a fifth of the start of a command, and many ask no Pinot.
    from pinot_assets.pinot.http_client import HttpPinotClient

    if settings.pinot.timeouts.longest_write > settings.waits.pinot_write:
        raise SpecError(
            f"a write to Pinot may take {settings.pinot.timeouts.longest_write:.0f} s",
            why=f"after a run died, the next one waits {settings.waits.pinot_write:.0f} s for its last write",
            hint="lower the time-outs of the Pinot connection",
        )
    with open_session_store(spec, settings) as store, HttpPinotClient(settings.pinot) as pinot:
        source, staging = open_source(spec), open_staging(spec)
        lost = settings.waits.lease + 5  # by then, ZooKeeper or its absence has ended the lease
        yield TableClients(
            store=store,
            pinot=pinot,
            source=source,
            staging=staging,
            builder=builder,
            services=(
                Service(f"ZooKeeper at {settings.zookeeper}", store.pointer_written_ms, lost),
                Service(f"Pinot's controller at {settings.pinot.controller_url}", pinot.version),
                Service(f"the staging area {staging.store.uri}", staging.store.exists_root),
                Service(f"the source {source.uri}", source.exists_root),
            ),
        )
