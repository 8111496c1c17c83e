"""The doors that a look goes through, each opened when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from pinot_assets.pinot.api import PinotClient
from pinot_assets.pinot.http_client import HttpPinotClient
from pinot_assets.session.stores.clients import open_session_store, open_source, open_staging
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.settings.environment import Settings
from pinot_assets.source import ObjectStore
from pinot_assets.table_spec import TableSpec


@dataclass(frozen=True, slots=True)
class Ports:
    """Opens what a look needs, when it needs it."""

    store: Callable[[], SessionStore]
    pinot: Callable[[], PinotClient]
    source: Callable[[], ObjectStore]
    staging: Callable[[], Staging]


@contextmanager
def open_ports(spec: TableSpec, settings: Callable[[], Settings]) -> Iterator[Ports]:
    """The real ones; what was opened is closed at the end.

    :param settings: where Pinot is; what it raises comes out of the doors to ZooKeeper and Pinot.
    """
    with ExitStack() as stack:
        yield Ports(
            store=lambda: stack.enter_context(open_session_store(spec, settings())),
            pinot=lambda: stack.enter_context(HttpPinotClient(settings().pinot)),
            source=lambda: open_source(spec),
            staging=lambda: open_staging(spec),
        )
