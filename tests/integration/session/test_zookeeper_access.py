"""Users, ACLs and TLS on a real ZooKeeper that has a plain and a secure port."""

from __future__ import annotations

import itertools
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes.certificates import Authority
from fakes.tables import write_table
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import OPEN_ACL_UNSAFE

from pinot_assets.core.connections import Tls, ZooKeeperAccess
from pinot_assets.core.this_machine import find_java
from pinot_assets.errors import SessionError
from pinot_assets.local import jars, parts, processes
from pinot_assets.local.parts import Site
from pinot_assets.session.stores.clients import open_session_store
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.values.state import Owner
from pinot_assets.settings.environment import load_settings
from pinot_assets.settings.local_stack import Record
from pinot_assets.zookeeper import close_client, connect

CLUSTER = "pinot"
ME = Owner("run-1", "host", 1, 0)
ADA = ZooKeeperAccess("ada", "s3cret")
_numbers = itertools.count()


# --- the world -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Server:
    """A ZooKeeper: its two ports, and the files that a client of the secure one needs."""

    plain: str
    port: int
    files: Path

    @property
    def secure(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def tls(self) -> Tls:
        return Tls(str(self.files / "ca.pem"), True, str(self.files / "client.pem"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("secure-zookeeper")
    authority = Authority(home, "ca")
    authority.issue("server")
    authority.issue("client")
    Authority(home, "stranger").issue("impostor")

    part = parts.PINOT[0]
    site = Site(home, Record(ports={part.name: {"client": processes.free_port(())}}))
    site.data(part.name).mkdir(parents=True)
    *arguments, config = part.arguments(site)
    plain = site.port(part.name, "client")
    secure = processes.free_port((plain,))
    settings = {
        "secureClientPort": secure,
        "secureClientPortAddress": "127.0.0.1",
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": home / "server.pem",
        "ssl.keyStore.type": "PEM",
        "ssl.trustStore.location": home / "ca.pem",
        "ssl.trustStore.type": "PEM",
        "ssl.clientAuth": "need",
    }
    with Path(config).open("a") as file:
        file.writelines(f"{key}={value}\n" for key, value in settings.items())
    class_path = ":".join(map(str, jars.class_path(part.jars)))
    command = [str(find_java().executable), "-cp", class_path, *arguments, config]
    process = processes.find(processes.spawn(command, home / "zookeeper.log"))
    assert process is not None
    try:
        address = f"127.0.0.1:{plain}"
        client = connect(address, timeout_s=60)
        client.ensure_path(f"/{CLUSTER}/PROPERTYSTORE")
        close_client(client)
        yield Server(address, secure, home)
    finally:
        processes.stop_processes([process], grace=5)


@pytest.fixture
def table() -> str:
    return f"access{next(_numbers)}_OFFLINE"


@contextmanager
def client_of(hosts: str, access: ZooKeeperAccess | None = None) -> Iterator[KazooClient]:
    client = connect(hosts, access)
    try:
        yield client
    finally:
        close_client(client)


@contextmanager
def store_of(server: Server, table: str, access: ZooKeeperAccess | None = None) -> Iterator[SessionStore]:
    with client_of(server.plain, access) as client:
        yield SessionStore(client, CLUSTER, table)


# --- users ---------------------------------------------------------------------------------------


def test_only_the_user_writes_and_everybody_reads(server: Server, table: str) -> None:
    with store_of(server, table, ADA) as store:
        lease = store.take_lease(ME)
        pointer = lease.pointer
        with client_of(server.plain) as browser:
            assert browser.get(store.path)[0]
            assert set(browser.get_children(store.path)) == {"lease"}
            assert browser.get(f"{store.path}/lease")[0]
            for attempt in (
                lambda: browser.set(store.path, b"{}"),
                lambda: browser.delete(f"{store.path}/lease"),
                lambda: browser.create(f"{store.path}/cp9", b"{}"),
                lambda: browser.set_acls(store.path, OPEN_ACL_UNSAFE),
            ):
                with pytest.raises(NoAuthError):
                    attempt()
        lease.release()
    with store_of(server, table) as anybody:
        assert anybody.pointer().epoch == pointer.epoch


@pytest.mark.parametrize("access", [None, ZooKeeperAccess("ada", "wr0ng"), ZooKeeperAccess("bob", "s3cret")])
def test_another_user_is_told_so(server: Server, table: str, access: ZooKeeperAccess | None) -> None:
    with store_of(server, table, ADA) as store:
        store.take_lease(ME).release()
    with store_of(server, table, access) as store:
        with pytest.raises(SessionError, match="belong to another user") as caught:
            store.take_lease(ME)
        assert "PINOT_ZOOKEEPER_USER" in str(caught.value)
        assert "wr0ng" not in str(caught.value)


def test_what_is_above_our_nodes_stays_pinots(server: Server, table: str) -> None:
    """Minion tasks of Pinot write beside us, and are nobody."""
    with store_of(server, table, ADA) as store:
        store.take_lease(ME).release()
        above = store.path.rpartition("/")[0]
    with client_of(server.plain) as pinot:
        pinot.create(f"{above}/anotherTask", b"")
        pinot.create(f"{above.rpartition('/')[0]}/AnotherTask", b"")
        pinot.delete(f"{above}/anotherTask")


def test_nodes_of_a_time_without_a_user_become_the_users(server: Server, table: str) -> None:
    with store_of(server, table) as store:
        store.take_lease(ME).release()
        path = store.path
    with client_of(server.plain) as anybody:
        anybody.create(f"{path}/cp1", b"{}")
    with store_of(server, table, ADA) as store:
        lease = store.take_lease(ME)
        assert lease.pointer.epoch == 2
        lease.release()
    with client_of(server.plain) as anybody:
        for node in (path, f"{path}/cp1"):
            with pytest.raises(NoAuthError):
                anybody.set(node, b"")


def test_the_user_outlives_a_lost_connection(server: Server, table: str) -> None:
    with client_of(server.plain, ADA) as client:
        store = SessionStore(client, CLUSTER, table)
        lease = store.take_lease(ME)
        client._connection._socket.shutdown(socket.SHUT_RDWR)
        lease.write(pointer=lease.pointer)
        lease.release()


def test_the_password_is_in_no_log(server: Server, caplog: pytest.LogCaptureFixture, table: str) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="kazoo")  # the program's own entry silences it
    with store_of(server, table, ADA) as store:
        store.take_lease(ME).release()
    assert "Sending request" in caplog.text
    assert "s3cret" not in caplog.text
    assert "s3cret" not in repr(ADA)


# --- TLS -----------------------------------------------------------------------------------------


def test_a_table_over_tls_as_a_user_all_from_the_environment(server: Server, tmp_path: Path) -> None:
    spec = write_table(tmp_path, f"secure{next(_numbers)}")
    settings = load_settings(
        {
            "PINOT_CONTROLLER_URL": "http://127.0.0.1:9000",
            "PINOT_ZOOKEEPER": server.secure,
            "PINOT_ZOOKEEPER_USER": "ada",
            "PINOT_ZOOKEEPER_PASSWORD": "s3cret",
            "PINOT_ZOOKEEPER_CA_BUNDLE": str(server.files / "ca.pem"),
            "PINOT_ZOOKEEPER_CLIENT_CERT": str(server.files / "client.pem"),
        }
    )
    with open_session_store(spec, settings) as store:
        lease = store.take_lease(ME)
        assert store.holder() == ME
        lease.release()
    with store_of(server, spec.name_with_type) as anybody, pytest.raises(SessionError, match="another user"):
        anybody.take_lease(ME)


def test_strangers_and_wrong_names_are_refused(server: Server) -> None:
    def tls(ca: str, client: str | None) -> Tls:
        return Tls(str(server.files / ca), True, client and str(server.files / client))

    for hosts, access, why in (
        (server.secure, tls("stranger.pem", "client.pem"), "unable to get local issuer"),
        (f"localhost:{server.port}", tls("ca.pem", "client.pem"), "Hostname mismatch"),
        (server.secure, tls("ca.pem", "impostor.pem"), "ALERT"),
        (server.secure, tls("ca.pem", None), "ALERT"),
    ):
        with pytest.raises(SessionError, match=why) as caught:
            connect(hosts, ZooKeeperAccess(tls=access))
        assert "PINOT_ZOOKEEPER_CA_BUNDLE" in str(caught.value)


def test_a_missing_file_is_named_at_once(server: Server, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere.pem")
    with pytest.raises(SessionError, match=r"nowhere\.pem"):
        connect(server.secure, ZooKeeperAccess(tls=Tls(nowhere)), timeout_s=60)


def test_plaintext_on_the_secure_port_ends(server: Server) -> None:
    with pytest.raises(SessionError, match="does not answer"):
        connect(server.secure, timeout_s=2)
