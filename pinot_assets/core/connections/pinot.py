"""How to reach a Pinot cluster: addresses, credentials, TLS and deadlines, as one frozen picklable value.

Nothing here opens a socket: a connection can be logged (secrets do not show), compared and sent to a worker.
"""

from __future__ import annotations

import base64
import ssl
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

from pinot_assets.core.addresses import origin_of
from pinot_assets.errors import PinotAssetsError, SpecError


@dataclass(frozen=True, slots=True)
class BasicAuth:
    """User name and password, for Pinot's `BasicAuthAccessControlFactory`."""

    username: str
    password: str = field(repr=False)

    @property
    def header(self) -> str:
        """Value of the Authorization header."""
        return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode()

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that must never be shown."""
        return (self.password, self.header.removeprefix("Basic "))


@dataclass(frozen=True, slots=True)
class TokenAuth:
    """A token: sent as it is if it names its scheme (`Basic …`, as Pinot's `authToken`), else as Bearer."""

    token: str = field(repr=False)

    @property
    def header(self) -> str:
        """Value of the Authorization header."""
        return self.token if " " in self.token else f"Bearer {self.token}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that must never be shown."""
        return (self.token, self.header.partition(" ")[2])


Auth = BasicAuth | TokenAuth


@dataclass(frozen=True, slots=True)
class Tls:
    """What to trust and what to show on https addresses.

    :ivar ca_bundle: PEM file of the authorities to trust; None takes the system's.
    :ivar verify: False accepts any certificate (a test cluster only).
    :ivar client_cert: PEM file of our own certificate, for mutual TLS.
    :ivar client_key: its key, None when it stands in the same file.
    """

    ca_bundle: str | None = None
    verify: bool = True
    client_cert: str | None = None
    client_key: str | None = None

    def context(self) -> ssl.SSLContext:
        """A fresh SSL context.

        :raises SpecError: a file is missing or holds no certificate.
        """
        try:
            context = ssl.create_default_context(cafile=self.ca_bundle)
            if self.client_cert is not None:
                context.load_cert_chain(self.client_cert, self.client_key)
        except (OSError, ssl.SSLError) as error:
            files = [f for f in (self.ca_bundle, self.client_cert, self.client_key) if f is not None]
            raise SpecError(
                f"the TLS files for Pinot cannot be used ({', '.join(files)})",
                why=str(error),
                hint="name readable PEM files",
            ) from error
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


@dataclass(frozen=True, slots=True)
class GrpcDoor:
    """How servers are spoken to at their gRPC query door (`pinot.server.grpc.…`, `pinot.server.grpctls.…`).

    :ivar secure: whether TLS is spoken there; None: where the controller's address is https.
    :ivar tls: files of its own; those that are left out are the controller's.
    :ivar server_name: what servers' certificates are made out to, where that is not the host in their
        instance names.
    """

    secure: bool | None = None
    tls: Tls = Tls()
    server_name: str | None = None


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Deadlines in seconds, each for one whole call with its retries; of a read, for each of its tries.

    Rule R2: the ZooKeeper lease does not fence Pinot, so a call must be over before the lease can pass to
    somebody else: keep the ZooKeeper session longer than `longest_write`.

    :ivar connect: to open a connection.
    :ivar call: an ordinary call.
    :ivar upload: one segment (the controller copies it into the deep store before it answers).
    :ivar end: endReplaceSegments, which Pinot itself may hold for up to an hour.
    :ivar query: a query that a server answers by itself; it gives up after 15 s, unless it is set otherwise.
    """

    connect: float = 2.0
    call: float = 8.0
    upload: float = 20.0
    end: float = 8.0
    query: float = 20.0

    @property
    def longest_write(self) -> float:
        """How long a call that changes something may still be on its way after its caller died."""
        return max(self.call, self.upload, self.end)


class Instances(Protocol):
    """Names the cluster's instances without asking a controller."""

    def addresses(self) -> frozenset[str]:
        """`host:port` of every door of every instance, in lower case.

        :raises PinotAssetsError: they cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class PinotConnection:
    """Where Pinot is and how to talk to it.

    :ivar controller_url: `http(s)://host:port` of a controller or of what stands before it.
    :ivar broker_urls: take these instead of what the controller says (for brokers behind a gateway).
    :ivar grpc: the query door of the servers.
    :ivar addresses: `host:port` of brokers and servers that get credentials whatever `instances` says.
    :ivar instances: names those that get them, too; None: only what is configured does.
    """

    controller_url: str
    auth: Auth | None = None
    tls: Tls = Tls()
    timeouts: Timeouts = Timeouts()
    broker_urls: tuple[str, ...] = ()
    grpc: GrpcDoor = GrpcDoor()
    addresses: tuple[str, ...] = ()
    instances: Instances | None = None

    def __post_init__(self) -> None:
        for url in (self.controller_url, *self.broker_urls):
            _check_url(url)

    @property
    def grpc_is_secure(self) -> bool:
        """Whether TLS is spoken at servers' gRPC door."""
        said = self.grpc.secure
        return urlsplit(self.controller_url).scheme == "https" if said is None else said

    @property
    def grpc_tls(self) -> Tls:
        """What to trust and to show there."""
        own, usual = self.grpc.tls, self.tls
        shown = own if own.client_cert is not None else usual
        return Tls(own.ca_bundle or usual.ca_bundle, usual.verify, shown.client_cert, shown.client_key)

    def redact(self, text: str) -> str:
        """The text without credentials."""
        for secret in self.auth.secrets if self.auth is not None else ():
            if secret:
                text = text.replace(secret, "***")
        return text


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        _ = parts.port, (parts.hostname or "").encode("idna")  # as they are read when it is called
    except ValueError:
        # Not quoted: it may hold credentials.
        raise PinotAssetsError(
            "an address of Pinot cannot be read", hint="write http://host:port or https://host:port"
        ) from None
    if parts.username is not None or parts.password is not None:
        raise SpecError(
            f"the address of Pinot at {parts.hostname} holds credentials",
            hint="set PINOT_USER and PINOT_PASSWORD, or PINOT_TOKEN, in the environment instead",
        )
    if origin_of(url) is None:
        raise PinotAssetsError(
            f"not an http address: {url}", hint="write http://host:port or https://host:port"
        )
