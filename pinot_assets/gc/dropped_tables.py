"""Nodes of tables that Pinot does not have any more.

Pinot 0.11 leaves them when it deletes a table. They are of no use: a table that is made again under the same
name begins anew in any case (`session/detect/former_table.py`), and numbers of sessions go on beyond those in
the staging area. What is staged for such a table stays: where it lies, only its spec knows.
"""

from __future__ import annotations

import os
import socket
import time

from pinot_assets.errors import SessionHeld
from pinot_assets.gc.orphans import Orphan, OrphanKind
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.values.state import Owner

WHY = "Pinot has no such table any more"


def nodes_of_dropped_table(store: SessionStore, now_ms: int) -> Orphan | None:
    """The nodes of a table, if it is gone and nobody works on it.

    :param now_ms: their age counts up to then.
    """
    written_ms = store.pointer_written_ms()
    if written_ms is None or store.table_made_ms() is not None or store.holder() is not None:
        return None
    return Orphan(OrphanKind.TABLE, store.table, WHY, age_ms=now_ms - written_ms)


def forget(store: SessionStore) -> bool:
    """Delete them, under the lease, unless the table was made again or somebody works on it.

    :returns: whether they are gone.
    """
    owner = Owner("pinot-assets gc", socket.gethostname(), os.getpid(), time.time_ns() // 1_000_000)
    try:
        lease = store.take_lease(owner)
    except SessionHeld:
        return False
    if store.table_made_ms() is not None:
        lease.release()
        return False
    lease.forget()
    return True
