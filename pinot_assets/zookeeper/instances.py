"""The instances of a Pinot cluster as its ZooKeeper names them: the word of no controller."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from kazoo.exceptions import NoNodeError

from pinot_assets.core.connections import ZooKeeperAccess
from pinot_assets.core.limits import NODE_BYTES
from pinot_assets.core.untrusted import fields_of_json, whole_number
from pinot_assets.zookeeper.client import answered, close, connect, require_cluster

_KINDS: Final = ("Broker_", "Controller_", "Server_")
_PORT: Final = "port"
"""In the keys of every port of an instance: HELIX_PORT, adminPort, grpcPort, TLS_PORT."""


@dataclass(frozen=True, slots=True)
class ZooKeeperInstances:
    """`pinot_assets.core.connections.Instances` from the instance configs that Helix keeps.

    :ivar hosts: connect text of ZooKeeper.
    :ivar cluster: Helix cluster name.
    """

    hosts: str
    cluster: str
    access: ZooKeeperAccess = field(default_factory=ZooKeeperAccess)

    def addresses(self) -> frozenset[str]:
        """`host:port` of every door of every instance.

        :raises SessionError: ZooKeeper does not answer, or there is no such cluster.
        """
        client = connect(self.hosts, self.access)
        path = f"/{self.cluster}/CONFIGS/PARTICIPANT"
        try:
            with answered():
                require_cluster(client, self.cluster)
                found: set[str] = set()
                for name in client.retry(client.get_children, path):
                    try:
                        data, _ = client.retry(client.get, f"{path}/{name}")
                    except NoNodeError:
                        continue  # it left the cluster meanwhile
                    found.update(addresses_in(name, data))
                return frozenset(found)
        finally:
            close(client)


def addresses_in(name: str, record: bytes) -> Iterator[str]:
    """The addresses of one instance, in lower case.

    :param name: `Server_host_port` and the like.
    :param record: its node, Helix' ZNRecord as JSON. What is none names nothing.
    """
    try:
        simple = fields_of_json(record if len(record) <= NODE_BYTES else b"")["simpleFields"]
        host = str(simple["HELIX_HOST"])
        ports = {str(value) for key, value in simple.items() if key.lower().endswith(_PORT)}
    except (ValueError, KeyError, TypeError, AttributeError):
        return
    kind = next((kind for kind in _KINDS if name.startswith(kind)), None)
    if kind is None:
        return
    host = host.removeprefix(kind).lower()
    for port in ports:
        number = whole_number(port)
        if number is not None and host:
            yield f"{f'[{host}]' if ':' in host else host}:{number}"
