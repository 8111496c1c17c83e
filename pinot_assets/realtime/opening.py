"""Where everything is made that an operation on a REALTIME table works with."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pinot_assets.realtime.lease import OperationsLease, OperationsStore
from pinot_assets.session.model import Owner
from pinot_assets.session.zookeeper import close, connect
from pinot_assets.settings import Settings


@contextmanager
def open_operations(settings: Settings, table: str) -> Iterator[OperationsStore]:
    """What is remembered of a table's operations; closed at the end.

    :param table: with `_REALTIME`.
    :raises SessionError: ZooKeeper does not answer.
    """
    client = connect(settings.zookeeper, settings.zookeeper_access, session_s=settings.waits.lease)
    try:
        yield OperationsStore(client, settings.cluster, table)
    finally:
        close(client)


@contextmanager
def hold_table(settings: Settings, table: str, run: str) -> Iterator[OperationsLease]:
    """Be the one that changes the table, until the end.

    :param table: with `_REALTIME`.
    :param run: who holds it, as others are told.
    :raises SessionHeld: somebody else does; says who.
    """
    owner = Owner(run, socket.gethostname(), os.getpid(), time.time_ns() // 1_000_000)
    with open_operations(settings, table) as store, store.take(owner) as lease:
        yield lease
