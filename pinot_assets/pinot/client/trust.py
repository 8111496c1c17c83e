"""Which addresses get our credentials: one guard for controllers that lead a table, brokers and servers.

A controller tells where they are. What it tells is believed for our credentials only if the address was
configured, or if the ZooKeeper that was configured names it as an instance of the cluster: else whoever
answers in a controller's place could have a password sent anywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Final
from urllib.parse import urlsplit

from pinot_assets.core.connections import PinotConnection, may_be_loopback, origin_of
from pinot_assets.errors import PinotAssetsError, PinotError

ADDRESSES: Final = "PINOT_ADDRESSES"
"""The variable that lists addresses which get credentials, where ZooKeeper does not name them."""

LOOK_AGAIN_SECONDS: Final = 10.0
"""An instance that ZooKeeper does not name may just be joining the cluster."""


class Guard:
    """Of one connection. Reads ZooKeeper when it first has to, and again when an address is unknown."""

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
        """See that an address may be spoken to with what the connection sends along.

        :raises PinotError: it may not; says what would allow it.
        """
        if refusal := self.refusal(url):
            raise refusal

    def refusal(self, url: str) -> PinotError | None:
        """Why an address gets no credentials; None if it does, or where there are none to send."""
        if self._connection.auth is None or origin_of(url) in self._configured:
            return None
        address, host = address_of(url), urlsplit(url).hostname or ""
        controller = urlsplit(self._connection.controller_url)
        if controller.scheme == "https" and urlsplit(url).scheme != "https":
            return PinotError(
                f"Pinot's credentials are not sent to {address}",
                why="the controller speaks TLS, and this address that it names does not",
                hint=f"if it is to be trusted without TLS: add http://{address} to PINOT_BROKER_URLS, "
                "if it is a broker; of servers' gRPC, PINOT_GRPC_TLS says it",
            )
        if address in self._connection.addresses:
            return None
        hint = f"if it belongs to this Pinot, add {address} to {ADDRESSES}"
        if may_be_loopback(host) and not may_be_loopback(controller.hostname or ""):
            why = "what a controller on another machine calls itself is this machine here"
        elif self._is_named(address):
            return None
        else:
            why = self._trouble or "it was not configured, and Pinot's ZooKeeper names no such instance"
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


def address_of(url: str) -> str:
    """`host:port` of an http URL, in lower case."""
    return (origin_of(url) or "").partition("://")[2]
