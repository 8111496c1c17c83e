"""Where everything is made that an operation on a REALTIME table works with."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pinot_assets.errors import SessionError
from pinot_assets.realtime.lease import OperationsLease, OperationsStore
from pinot_assets.session.values.state import Owner
from pinot_assets.settings.environment import Settings
from pinot_assets.zookeeper import cluster_client

MOST_APART_S: Final = 60.0
"""How much the clocks of this machine and of ZooKeeper may differ: Pinot leaves a commit 300 s."""


@contextmanager
def open_operations(settings: Settings, table: str) -> Iterator[OperationsStore]:
    """What is remembered of a table's operations; closed at the end.

    :param table: with `_REALTIME`.
    :raises SessionError: ZooKeeper does not answer, or has no such cluster.
    """
    access, lease = settings.zookeeper_access, settings.waits.lease
    with cluster_client(settings.zookeeper, settings.cluster, access, session_s=lease) as client:
        yield OperationsStore(client, settings.cluster, table)


@contextmanager
def hold_table(settings: Settings, table: str, run: str) -> Iterator[OperationsLease]:
    """Be the one that changes the table, until the end.

    :param table: with `_REALTIME`.
    :param run: who holds it, as others are told.
    :raises SessionHeld: somebody else does; says who.
    :raises SessionError: this machine's clock is wrong: by it we tell what is old enough to be mended.
    """
    owner = Owner(run, socket.gethostname(), os.getpid(), time.time_ns() // 1_000_000)
    with open_operations(settings, table) as store, store.take(owner) as lease:
        _know_the_time(lease)
        yield lease


def _know_the_time(lease: OperationsLease) -> None:
    """It has only just been taken."""
    ahead_s = (time.time_ns() // 1_000_000 - lease.taken_ms()) / 1000
    if abs(ahead_s) > MOST_APART_S:
        raise SessionError(
            f"nothing of {lease.table} is changed from this machine",
            why=f"its clock is {abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'} ZooKeeper's",
            hint="set the clock: whether a commit still goes on is told by the age of its node",
        )
