"""Connect to ZooKeeper: the client, its credentials, its TLS, and the instances of a cluster.

`session.stores` has what a session stores there. ZooKeeper's digest scheme never refuses a wrong password:
the client then counts as another user, who may not write. SASL is not supported: kazoo needs one more
package for it, and ZooKeeper's own `DIGEST-MD5` is obsolete.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from kazoo import exceptions
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.hosts import collect_hosts
from kazoo.protocol.serialization import Auth
from kazoo.retry import KazooRetry
from kazoo.security import ACL, make_acl, make_digest_acl

from pinot_assets.core.connections import Tls, Waits, ZooKeeperAccess
from pinot_assets.core.untrusted import NODE_BYTES, fields_of_json, whole_number
from pinot_assets.errors import SessionError, SpecError

_USUAL = Waits()


class _NoCredentials(logging.Filter):
    """Drop log records with credentials: at DEBUG, kazoo logs also the request with the password."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (isinstance(record.args, tuple) and any(isinstance(arg, Auth) for arg in record.args))


_LOG = logging.getLogger("kazoo.pinot_assets")
_LOG.addFilter(_NoCredentials())


def acl_of(access: ZooKeeperAccess) -> list[ACL] | None:
    """Return the ACL of new nodes: this user may do everything, and all may read (as Pinot's browser does).

    Returns None when no user is set: then everybody may do everything.
    """
    if access.username is None:
        return None
    ours = make_digest_acl(access.username, access.password or "", all=True)
    return [ours, make_acl("world", "anyone", read=True)]


def connect(
    hosts: str,
    access: ZooKeeperAccess | None = None,
    *,
    timeout_s: float = 10.0,
    session_s: float = _USUAL.lease,
) -> KazooClient:
    """Return a started client.

    :param hosts: ZooKeeper connect text, `host:port[,host:port…][/chroot]`.
    :param session_s: session time-out to request, in seconds; ephemeral nodes outlive a dead client by it.
    :raises SessionError: no server answers within `timeout_s`, the address cannot be read, or the TLS files
        cannot be used.
    """
    access = access or ZooKeeperAccess()
    try:
        client = _client(hosts, access, session_s)
    except ValueError as error:
        raise SessionError(
            f"{hosts} is not an address of ZooKeeper",
            why=str(error),
            hint="write host:port[,host:port…][/chroot], in PINOT_ZOOKEEPER",
        ) from None
    if access.tls is not None:
        _check_tls(hosts, access.tls)
    try:
        client.start(timeout=timeout_s)
    except KazooTimeoutError as error:
        close_client(client)
        raise SessionError(
            f"ZooKeeper at {hosts} does not answer",
            why=f"no connection within {timeout_s:.0f} s",
            hint="check PINOT_ZOOKEEPER, or start the local stack with `pinot-assets local up`",
        ) from error
    return client


def close_client(client: KazooClient) -> None:
    """Stop the client and free its sockets."""
    client.stop()
    client.close()


@contextlib.contextmanager
def answered() -> Iterator[None]:
    """Raise a `SessionError` when ZooKeeper does not answer or does not authorize the client."""
    try:
        yield
    except NoAuthError as error:
        raise SessionError(
            "ZooKeeper refuses the access of this run",
            why="the table's nodes belong to another user",
            hint="set PINOT_ZOOKEEPER_USER and PINOT_ZOOKEEPER_PASSWORD to those of the runs before",
        ) from error
    except KazooException as error:
        raise SessionError(
            "ZooKeeper does not answer",
            why=zookeeper_words(error),
            hint="is it up? What is stored is kept: run the table again when ZooKeeper is up",
        ) from error


_WORDS: Final = (
    (exceptions.NoNodeError, "the node is gone: the ZooKeeper session ended, or somebody deleted the node"),
    (exceptions.BadVersionError, "another run has written the node since"),
    (exceptions.NodeExistsError, "another run has made the node meanwhile"),
    (exceptions.NoAuthError, "the node belongs to another user of ZooKeeper"),
    (exceptions.AuthFailedError, "ZooKeeper does not accept this user"),
    (exceptions.ConnectionClosedError, "the connection to ZooKeeper is closed"),
    (exceptions.SessionExpiredError, "the ZooKeeper session ended"),
    (exceptions.SessionMovedError, "the ZooKeeper session moved to another server"),
    (exceptions.ConnectionLoss, "the connection to ZooKeeper was lost"),
    (exceptions.OperationTimeoutError, "ZooKeeper did not answer in time"),
)


def zookeeper_words(error: BaseException) -> str:
    """Return what an error of kazoo says, which mostly has no text: its class is what it says."""
    known = next((words for kind, words in _WORDS if isinstance(error, kind)), None)
    return known or f"ZooKeeper's error is {type(error).__name__}" + (f": {error}" if str(error) else "")


def _client(hosts: str, access: ZooKeeperAccess, session_s: float) -> KazooClient:
    tls = access.tls
    return KazooClient(
        hosts=hosts,
        timeout=session_s,
        connection_retry=KazooRetry(max_tries=-1, max_delay=2.0),
        command_retry=KazooRetry(max_tries=5, delay=0.2, max_delay=2.0),
        auth_data=[("digest", f"{access.username}:{access.password}")] if access.username else None,
        default_acl=acl_of(access),
        logger=_LOG,
        use_ssl=tls is not None,
        ca=tls and tls.ca_bundle,
        certfile=tls and tls.client_cert,
        keyfile=tls and (tls.client_key or tls.client_cert),
        check_hostname=tls is not None,
    )


def _check_tls(hosts: str, tls: Tls) -> None:
    """Try the TLS handshake before kazoo: it would retry for ever, hide the reason and leak sockets.

    :raises SessionError: the files cannot be used, or every server of `hosts` refuses the handshake.
    """
    try:
        context = tls.context()
    except SpecError as error:
        files = [name for name in (tls.ca_bundle, tls.client_cert, tls.client_key) if name]
        raise SessionError(
            f"the TLS files for ZooKeeper cannot be used ({', '.join(files)})", why=error.why, hint=error.hint
        ) from None
    refusals = []
    for address in collect_hosts(hosts)[0]:
        if (refusal := _refused_handshake(address, context)) is None:
            return
        refusals.append(refusal)
    raise SessionError(
        f"ZooKeeper at {hosts} and this machine do not trust each other",
        why=refusals[0],
        hint="check PINOT_ZOOKEEPER_CA_BUNDLE, PINOT_ZOOKEEPER_CLIENT_CERT, and that the server's "
        "certificate contains the name used here",
    )


def _refused_handshake(address: tuple[str, int], context: ssl.SSLContext) -> str | None:
    """Return why the handshake fails; None if it succeeds or nothing answers, which kazoo reports itself."""
    try:
        with (
            socket.create_connection(address, timeout=2) as plain,
            context.wrap_socket(plain, server_hostname=address[0]) as safe,
        ):
            # A server that does not accept our certificate says so only with its first answer.
            safe.sendall(b"srvr")
            safe.recv(1)
    except ssl.SSLError as error:
        return error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else str(error.reason)
    except OSError:
        pass
    return None


@contextlib.contextmanager
def cluster_client(
    hosts: str,
    cluster: str,
    access: ZooKeeperAccess,
    *,
    timeout_s: float = 10.0,
    session_s: float = _USUAL.lease,
) -> Iterator[KazooClient]:
    """Yield a client for the nodes of one Pinot cluster, then close it; other arguments as in `connect`.

    :raises SessionError: as `connect`, or the cluster does not exist. Without this check no nodes would be
        found below its name, and a table with many rows would look as if it had never been published.
    """
    client = connect(hosts, access, timeout_s=timeout_s, session_s=session_s)
    try:
        with answered():
            require_cluster(client, cluster)
        yield client
    finally:
        close_client(client)


def require_cluster(client: KazooClient, cluster: str) -> None:
    """Check that ZooKeeper has a Pinot cluster with this name.

    :raises SessionError: it has none; names the clusters that it has.
    """
    if _is_cluster(client, cluster):
        return
    others = [name for name in sorted(client.retry(client.get_children, "/")) if _is_cluster(client, name)]
    if others:
        why = f"it has {' and '.join(others)}"
        fix = f"set PINOT_CLUSTER to {' or '.join(others)}"
        fix += ", the one of the controller" if len(others) > 1 else ""
    else:
        why = f"/{cluster}/PROPERTYSTORE does not exist, and ZooKeeper has no other cluster of Pinot"
        fix = (
            "check the address and the chroot in PINOT_ZOOKEEPER, and set PINOT_CLUSTER to the controller's "
            "controller.helix.cluster.name"
        )
    raise SessionError(f"there is no Pinot cluster {cluster} in this ZooKeeper", why=why, hint=fix)


def _is_cluster(client: KazooClient, name: str) -> bool:
    return client.retry(client.exists, f"/{name}/PROPERTYSTORE") is not None


_KINDS: Final = ("Broker_", "Controller_", "Server_")
_PORT: Final = "port"
"""How the key of each port of an instance ends: HELIX_PORT, adminPort, grpcPort, TLS_PORT."""


@dataclass(frozen=True, slots=True)
class ZooKeeperInstances:
    """Implements `pinot_assets.core.connections.Instances` with the instance configs that Helix stores.

    :ivar hosts: connect text of ZooKeeper.
    :ivar cluster: Helix cluster name.
    """

    hosts: str
    cluster: str
    access: ZooKeeperAccess = field(default_factory=ZooKeeperAccess)

    def addresses(self) -> frozenset[str]:
        """Return `host:port` for each port of each instance.

        :raises SessionError: ZooKeeper does not answer, or there is no such cluster.
        """
        path = f"/{self.cluster}/CONFIGS/PARTICIPANT"
        addresses: set[str] = set()
        with cluster_client(self.hosts, self.cluster, self.access) as client, answered():
            for name in client.retry(client.get_children, path):
                with contextlib.suppress(NoNodeError):  # the instance has left the cluster meanwhile
                    data, _ = client.retry(client.get, f"{path}/{name}")
                    addresses.update(addresses_in(name, data))
        return frozenset(addresses)


def addresses_in(name: str, record: bytes) -> Iterator[str]:
    """Yield the addresses of one instance as `host:port`, in lower case.

    :param name: `Server_host_port` and the like; other kinds of instances yield nothing.
    :param record: the content of its node, Helix' ZNRecord as JSON. Anything else yields nothing.
    """
    try:
        simple = fields_of_json(record if len(record) <= NODE_BYTES else b"")["simpleFields"]
        host = str(simple["HELIX_HOST"])
        ports = {str(value) for key, value in simple.items() if key.lower().endswith(_PORT)}
    except (ValueError, KeyError, TypeError, AttributeError):
        return
    if (kind := next((kind for kind in _KINDS if name.startswith(kind)), None)) is None:
        return
    host = host.removeprefix(kind).lower()
    for port in ports:
        number = whole_number(port)
        if number is not None and host:
            yield f"{f'[{host}]' if ':' in host else host}:{number}"
