"""Decides which addresses get our credentials, and keeps one client for each of them.

A controller names the addresses of brokers, servers and a table's lead. An address gets our credentials only
if it was configured, or if the configured ZooKeeper names it as an instance of the cluster. Otherwise anyone
who answers in the controller's place could make us send a password anywhere.

If there are several controllers, uploads go to the lead, which writes the table's ideal state anyway. Another
controller writes it, too, but competes with the lead for every write. We use the lead only after we saw that
it works on the same ZooKeeper: a controller's own address may mean another machine from here (`localhost`),
or none.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from threading import Lock
from typing import Final
from urllib.parse import urlsplit

import httpx

from pinot_assets.core.connections import PinotConnection, may_be_loopback, origin_of
from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.untrusted import whole_number
from pinot_assets.errors import PinotAssetsError, PinotError
from pinot_assets.pinot.client.http import CallKind, HttpCall, HttpClient, quoted

ADDRESSES: Final = "PINOT_ADDRESSES"
"""The variable that lists addresses which get credentials although ZooKeeper does not name them."""

LOOK_AGAIN_SECONDS: Final = 10.0
"""How soon ZooKeeper is read again: an instance that it does not name may just be joining the cluster."""


class Guard:
    """Checks addresses for one connection. Reads ZooKeeper only for an address that it does not know yet."""

    def __init__(self, connection: PinotConnection, clock: Callable[[], float] = time.monotonic) -> None:
        self._connection = connection
        self._clock = clock
        self._lock = Lock()
        self._named: frozenset[str] = frozenset()
        self._looked: float | None = None
        self._trouble = ""
        configured = (connection.controller_url, *connection.broker_urls)
        self._configured = {origin for url in configured if (origin := origin_of(url)) is not None}

    def require(self, url: str) -> None:
        """Check that the connection may send its credentials to an address.

        :raises PinotError: it may not; the hint names the setting that would allow it.
        """
        if refusal := self.refusal(url):
            raise refusal

    def refusal(self, url: str) -> PinotError | None:
        """Return why an address gets no credentials; None if it may, or if there are none to send."""
        if self._connection.auth is None or origin_of(url) in self._configured:
            return None
        address, host = (origin_of(url) or "").partition("://")[2], urlsplit(url).hostname or ""
        controller = urlsplit(self._connection.controller_url)
        if controller.scheme == "https" and urlsplit(url).scheme != "https":
            return PinotError(
                f"Pinot's credentials are not sent to {address}",
                why="the controller uses TLS, and this address that it names does not",
                hint=f"if you trust it without TLS: add http://{address} to PINOT_BROKER_URLS, if it "
                "is a broker; for servers' gRPC, set PINOT_GRPC_TLS",
            )
        if address in self._connection.addresses:
            return None
        hint = f"if it belongs to this Pinot, add {address} to {ADDRESSES}"
        if may_be_loopback(host) and not may_be_loopback(controller.hostname or ""):
            why = (
                "the controller is on another machine, and the name that it gives itself means this "
                "machine here"
            )
        elif self._is_named(address):
            return None
        else:
            why = self._trouble or "it was not configured, and Pinot's ZooKeeper has no such instance"
        return PinotError(f"Pinot's credentials are not sent to {address}", why=why, hint=hint)

    def _is_named(self, address: str) -> bool:
        instances = self._connection.instances
        with self._lock:
            looked = self._looked is not None and self._clock() - self._looked < LOOK_AGAIN_SECONDS
            if address not in self._named and not looked and instances is not None:
                try:
                    self._named, self._trouble = instances.addresses(), ""
                except PinotAssetsError as error:
                    self._trouble = f"Pinot's ZooKeeper, which would name it, cannot be read: {error.what}"
                self._looked = self._clock()
            return address in self._named


class ClientPool:
    """One client for each base URL, made at its first use. Thread-safe.

    :ivar guard: decides which addresses get the connection's credentials; the others get no client.
    """

    def __init__(self, connection: PinotConnection, transport: httpx.BaseTransport | None = None) -> None:
        self.connection = connection
        self.guard = Guard(connection)
        self._transport = transport
        self._clients: dict[str, HttpClient] = {}
        self._lock = Lock()

    def at(self, base_url: str) -> HttpClient:
        """Return the client of that address.

        :raises PinotError: the address may not get the connection's credentials.
        """
        with self._lock:
            if base_url not in self._clients:
                self.guard.require(base_url)
                self._clients[base_url] = HttpClient(base_url, self.connection, self._transport)
            return self._clients[base_url]

    def close(self) -> None:
        """Close all clients."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()


TRY_AGAIN_SECONDS = 60.0
"""A lead that could not be used may just be starting; each trial may take `Timeouts.connect` seconds."""


class LeadControllers:
    """Finds a table's lead; remembers whether there are several controllers, and which can be used."""

    def __init__(self, clients: ClientPool, clock: Callable[[], float] = time.monotonic) -> None:
        self._clients = clients
        self._clock = clock
        self._several: bool | None = None
        self._usable: set[str] = set()
        self._refused: dict[str, float] = {}

    def of(self, table: str) -> str:
        """Return the base URL for uploads: the table's lead, or the configured one if that cannot be used."""
        configured = self._clients.connection.controller_url
        try:
            if self._several is None:
                names = self._clients.at(configured).get_fields("/instances")["instances"]
                self._several = sum(name.startswith("Controller_") for name in names) > 1
            if not self._several:
                return configured
            reply = self._clients.at(configured).get_fields(f"/leader/tables/{quoted(table)}")
            url = lead_of(reply, urlsplit(configured).scheme)
        except PinotError:
            return configured
        return url if url is not None and self._ask_if_usable(url, table) else configured

    def _ask_if_usable(self, url: str, table: str) -> bool:
        """Whether we may call that address: every call carries our credentials."""
        connection = self._clients.connection
        if url in self._usable:
            return True
        here, host = urlsplit(connection.controller_url).hostname or "", urlsplit(url).hostname or ""
        # A controller's loopback address is its own machine, not ours.
        is_its_own = may_be_loopback(host) and not may_be_loopback(here)
        if url == connection.controller_url or is_its_own or self._clients.guard.refusal(url) is not None:
            return False
        if self._clock() - self._refused.get(url, -math.inf) < TRY_AGAIN_SECONDS:
            return False
        if same_cluster(self._clients, connection.controller_url, url, table):
            self._usable.add(url)
            return True
        self._refused[url] = self._clock()
        return False


def lead_of(reply: JsonMapping | None, scheme: str) -> str | None:
    """Return the address in an answer of `/leader/tables/<table>`; None if no controller leads."""
    for entry in ((reply or {}).get("leadControllerEntryMap") or {}).values():
        host, _, port = str(entry.get("leadControllerId") or "").removeprefix("Controller_").rpartition("_")
        if host and whole_number(port) is not None:
            return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
    return None


def same_cluster(clients: ClientPool, known: str, other: str, table: str) -> bool:
    """Whether both controllers show the same creation of the table's node in ZooKeeper, which two clusters
    never share. Also False if one of them does not show it."""
    try:
        cluster = clients.at(known).get_fields("/cluster/info")["clusterName"]
        path = f"/{cluster}/IDEALSTATES/{table}_OFFLINE"
        here = clients.at(known).get_fields("/zk/stat", path=path)
        # A short deadline, because an address may lead nowhere from here.
        short = clients.connection.timeouts.connect
        call = HttpCall("GET", "/zk/stat", CallKind.READ, short, params={"path": path})
        there = clients.at(other).send_fields(call)
        return all(here[key] and here[key] == there[key] for key in ("czxid", "ctime"))
    except (PinotError, KeyError, TypeError):
        return False
