"""Make the cluster forget a process that is known to be dead, so that its successor need not wait.

ZooKeeper keeps a dead process's ephemeral nodes until its session times out, and Helix lets an instance of
the same name wait for that and a little longer: 25 seconds for every repair.
"""

from __future__ import annotations

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from pinot_assets.core.untrusted import fields_of_json
from pinot_assets.settings.local_stack import CLUSTER

_LIVE = f"/{CLUSTER}/LIVEINSTANCES"
_LEADER = f"/{CLUSTER}/CONTROLLER/LEADER"


def forget(zookeeper: str, pid: int) -> None:
    """Delete the registrations of the dead process `pid`. When ZooKeeper does not answer, time will do it.

    :param zookeeper: `host:port`.
    """
    client = KazooClient(zookeeper, timeout=5)
    try:
        client.start(timeout=5)
        names = client.get_children(_LIVE) if client.exists(_LIVE) else []
        for path in (*(f"{_LIVE}/{name}" for name in names), _LEADER):
            _forget_node(client, path, pid)
    except KazooTimeoutError:
        return
    finally:
        client.stop()
        client.close()


def _forget_node(client: KazooClient, path: str, pid: int) -> None:
    try:
        content, found = client.get(path)
        if owner_of(content).split("@")[0] == str(pid):
            client.delete(path, version=found.version)
    except (NoNodeError, ValueError):
        return


def owner_of(content: bytes) -> str:
    """The process that a node of Helix says it is of: `pid@host`.

    :param content: the node's, or a controller's answer that holds it.
    :raises ValueError: it says none.
    """
    simple = fields_of_json(content).get("simpleFields")
    owner = simple.get("LIVE_INSTANCE") if isinstance(simple, dict) else None
    if not isinstance(owner, str):
        raise ValueError("it names no process")
    return owner
