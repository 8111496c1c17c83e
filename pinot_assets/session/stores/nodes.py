"""Nodes of ours in ZooKeeper: who may write them, who holds a lease, which tables have any."""

from __future__ import annotations

import contextlib
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError, RolledBackError, RuntimeInconsistency
from kazoo.security import OPEN_ACL_UNSAFE

from pinot_assets.core.stored_format import structured
from pinot_assets.core.untrusted import read_json, reading
from pinot_assets.errors import NodeUnreadable
from pinot_assets.session.values.state import Owner

_LEASE_HINT: Final = "no release of this project writes that: find out what wrote it, and delete the node"


def make_own_path(client: KazooClient, path: str) -> None:
    """Make a node of ours. With a ZooKeeper user, only that user may write to it and to its children.

    Our nodes from a time without a user get the new ACL. The nodes above stay open: they belong to Pinot,
    whose tasks write there, too.
    """
    client.ensure_path(path.rpartition("/")[0], acl=OPEN_ACL_UNSAFE)
    client.ensure_path(path)
    ours = client.default_acl
    if not ours or client.get_acls(path)[0] == ours:
        return
    for child in client.get_children(path):
        with contextlib.suppress(NoNodeError):  # a lease that was let go meanwhile
            client.set_acls(f"{path}/{child}", ours)
    client.set_acls(path, ours)  # last: if a run dies before this, the next one repeats all


def remove_empty_parents(client: KazooClient, path: str) -> None:
    """Delete the two nodes above a node of ours that is gone, unless they hold something else. Never raises.

    They are the table's in Pinot's record of tasks; whoever needs them makes them again.
    """
    of_task = path.rpartition("/")[0]
    with contextlib.suppress(KazooException):
        client.retry(client.delete, of_task)
        client.retry(client.delete, of_task.rpartition("/")[0])


def lease_holder(client: KazooClient, path: str) -> Owner | None:
    """Return the owner of the lease below that node, None if the lease is free.

    :raises NodeUnreadable: the lease node does not hold an owner.
    """
    try:
        data, _ = client.retry(client.get, f"{path}/lease")
    except NoNodeError:
        return None
    with reading(f"the lease {path}/lease", NodeUnreadable, hint=_LEASE_HINT):
        return structured(Owner, read_json(data), "the owner of a lease")


def ask_if_lease_is_ours(client: KazooClient, path: str) -> bool:
    """Whether this client's ZooKeeper session took the lease below that node."""
    stat = client.retry(client.exists, f"{path}/lease")
    return stat is not None and stat.ephemeralOwner == client.client_id[0]


def tables_with_sessions(client: KazooClient, cluster: str) -> list[str]:
    """Return the tables (names with type) that have nodes of this project, sorted."""
    path = f"/{cluster}/PROPERTYSTORE/MINION_TASK_METADATA"
    names = sorted(children(client, path))
    ours = "FileIngestionTask/consistentPush"
    return [name for name in names if client.retry(client.exists, f"{path}/{name}/{ours}") is not None]


def children(client: KazooClient, path: str) -> list[str]:
    """Return the names of a node's children; an empty list if there is no such node."""
    try:
        names: list[str] = client.retry(client.get_children, path)
    except NoNodeError:
        return []
    return names


def first_error(results: list[object]) -> Exception | None:
    """Return the error that made a transaction fail; None if all of it was done."""
    # The operations around the failed one answer RolledBackError and RuntimeInconsistency.
    errors = [r for r in results if isinstance(r, Exception)]
    real = [e for e in errors if not isinstance(e, RolledBackError | RuntimeInconsistency)]
    return next(iter(real or errors), None)
