"""How to reach other services: addresses, credentials, TLS, and how long to wait. Values only.

Nothing here opens a socket. A connection is frozen and picklable; it can be logged (secrets are hidden),
compared, and sent to a worker. Functions here also decide whether two addresses mean the same service, and
whether an address can only be this machine.
"""

from __future__ import annotations

import base64
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final, Protocol
from urllib.parse import urlsplit

from pinot_assets.errors import PinotAssetsError, SpecError

S3_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
"""Variables with the address of S3; the first one that is set counts."""
_PORTS: Final = {"http": 80, "https": 443}
_SERVICES: Final = {
    **_PORTS,
    "kafka": 9092,
    "zookeeper": 2181,
    "pulsar": 6650,
    "pulsar+ssl": 6651,
    "hdfs": 8020,
}
"""Services that a table config can make Pinot connect to, each with its usual port."""
_READ_DIFFERENTLY: Final = re.compile(r"[\x00-\x20\x7f\\]")
"""In `https://one.example\\@other.example` two clients may see two different hosts."""


def origin_of(url: str) -> str | None:
    """Return `scheme://host:port` of an http(s) URL in lower case, always with its port; else None.

    Also None if clients could see different hosts in the URL: with a user, a backslash or a blank in it.
    """
    return _origin(url, _PORTS)


def s3_endpoint(environ: Mapping[str, str]) -> str | None:
    """Return the address of S3 from AWS' own variables; None for AWS itself."""
    return next((environ[name] for name in S3_ENDPOINTS if environ.get(name)), None)


def service_of(url: str) -> str | None:
    """Like `origin_of`, also for the schemes of streams and file systems: `kafka://host:9092`."""
    return _origin(url, _SERVICES)


def _origin(url: str, ports: Mapping[str, int]) -> str | None:
    if _READ_DIFFERENTLY.search(url):
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme not in ports or not host or "@" in parts.netloc:
        return None
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port or ports[parts.scheme]}"


def is_loopback(host: str) -> bool:
    """Whether a host is certainly this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def may_be_loopback(host: str) -> bool:
    """Whether a host may be this machine: also `*.localhost`, and addresses such as 0.0.0.0."""
    try:
        return is_loopback(host) or ip_address(host).is_unspecified
    except ValueError:
        return host.endswith(".localhost")


@dataclass(frozen=True, slots=True)
class BasicAuth:
    """User name and password, for Pinot's `BasicAuthAccessControlFactory`."""

    username: str
    password: str = field(repr=False)

    @property
    def header(self) -> str:
        """Return the value of the Authorization header."""
        return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode()

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the texts that must never be shown."""
        return (self.password, self.header.removeprefix("Basic "))


@dataclass(frozen=True, slots=True)
class TokenAuth:
    """A token, sent as it is if it names its scheme (`Basic …`, as Pinot's `authToken`), else as Bearer."""

    token: str = field(repr=False)

    @property
    def header(self) -> str:
        """Return the value of the Authorization header."""
        return self.token if " " in self.token else f"Bearer {self.token}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the texts that must never be shown."""
        return (self.token, self.header.partition(" ")[2])


Auth = BasicAuth | TokenAuth


@dataclass(frozen=True, slots=True)
class Tls:
    """Which certificates to trust, and which to present, at https addresses.

    :ivar ca_bundle: PEM file of the authorities to trust; None uses the system's.
    :ivar verify: False accepts any certificate (for test clusters only).
    :ivar client_cert: PEM file of our own certificate, for mutual TLS.
    :ivar client_key: its key; None if the key is in the same file.
    """

    ca_bundle: str | None = None
    verify: bool = True
    client_cert: str | None = None
    client_key: str | None = None

    def context(self) -> ssl.SSLContext:
        """Return a new SSL context.

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
    """How to connect to the servers' gRPC query port (`pinot.server.grpc.…`, `pinot.server.grpctls.…`).

    :ivar secure: whether to use TLS there; None: if the controller's address is https.
    :ivar tls: files for this port; if one is left out, the controller's is used.
    :ivar server_name: the name in the servers' certificates, if it differs from the host in their
        instance names.
    """

    secure: bool | None = None
    tls: Tls = Tls()
    server_name: str | None = None


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Deadlines in seconds. Each is for one whole call with its retries; for a read, for each try.

    Rule R2: the ZooKeeper lease does not fence Pinot, so a call must end before another driver can get the
    lease: keep the ZooKeeper session longer than `longest_write`.

    :ivar connect: to open a connection.
    :ivar call: an ordinary call.
    :ivar upload: one upload (the controller copies the segment into the deep store before it answers).
    :ivar end: endReplaceSegments, which Pinot itself may keep running for up to an hour.
    :ivar query: a query to one server; the server gives up after 15 s unless it is configured otherwise.
    """

    connect: float = 2.0
    call: float = 8.0
    upload: float = 20.0
    end: float = 8.0
    query: float = 20.0

    @property
    def longest_write(self) -> float:
        """Return how many seconds a call that changes something may still run after its caller died."""
        return max(self.call, self.upload, self.end)


class Instances(Protocol):
    """Finds the addresses of the cluster's instances without asking a controller."""

    def addresses(self) -> frozenset[str]:
        """Return `host:port` of every port of every instance, in lower case.

        :raises PinotAssetsError: the instances cannot be read.
        """


@dataclass(frozen=True, slots=True)
class PinotConnection:
    """Where Pinot is and how to talk to it.

    :ivar controller_url: `http(s)://host:port` of a controller, or of a gateway before it.
    :ivar broker_urls: used instead of the brokers that the controller names (for brokers behind a gateway).
    :ivar grpc: how to reach the servers' query port.
    :ivar addresses: `host:port` of brokers and servers that get credentials even if `instances` lacks them.
    :ivar instances: names other addresses that get credentials; None: only configured addresses do.
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
            try:
                parts = urlsplit(url)
                _ = parts.port, (parts.hostname or "").encode("idna")  # a call reads them in the same way
            except ValueError:
                # The address is not quoted, because it may hold credentials.
                raise PinotAssetsError(
                    "an address of Pinot cannot be read", hint="write http://host:port or https://host:port"
                ) from None
            if parts.username is not None or parts.password is not None:
                raise SpecError(
                    f"the address of Pinot at {parts.hostname} contains credentials",
                    hint="set PINOT_USER and PINOT_PASSWORD, or PINOT_TOKEN, in the environment instead",
                )
            if origin_of(url) is None:
                raise PinotAssetsError(
                    f"{url} is not an http address", hint="write http://host:port or https://host:port"
                )

    @property
    def grpc_is_secure(self) -> bool:
        """Whether to use TLS at the servers' gRPC port."""
        said = self.grpc.secure
        return urlsplit(self.controller_url).scheme == "https" if said is None else said

    @property
    def grpc_tls(self) -> Tls:
        """Return the certificates to trust and to present at the servers' gRPC port."""
        own, usual = self.grpc.tls, self.tls
        shown = own if own.client_cert is not None else usual
        return Tls(own.ca_bundle or usual.ca_bundle, usual.verify, shown.client_cert, shown.client_key)

    def redact(self, text: str) -> str:
        """Return the text with every credential replaced by `***`."""
        for secret in self.auth.secrets if self.auth is not None else ():
            if secret:
                text = text.replace(secret, "***")
        return text


@dataclass(frozen=True, slots=True)
class Waits:
    """How long a driver waits, in seconds.

    :ivar lease: ZooKeeper session timeout; a dead run keeps its table for so long.
    :ivar pinot_write: longest deadline of a Pinot call that changes something; shorter than `lease`. A new
        owner waits so long before its first write, if the owner before did not release the lease, or left a
        call whose outcome is unknown (rule R2).
    :ivar second_look: an empty source counts only if a listing so much later is empty, too (edge case E2).
    :ivar first_entry: a table's first lineage entry is read back after so long: another controller that also
        writes the node for the first time can overwrite it (rule R6).
    :ivar online: how long the audit waits for servers to load the pushed segments (rule R10).
    :ivar broker: how long a broker may show the old segments after the request to rebuild its routing (R7).
    :ivar stall: a run without progress for so long releases its table (rule R25). It must be longer than one
        step of a file: to copy it, or to write one segment of it.
    :ivar hold: a run that has held its table for so long releases it, too.
    :raises SpecError: a write to Pinot could outlive the lease.
    """

    lease: float = 30.0
    pinot_write: float = 20.0
    second_look: float = 30.0
    first_entry: float = 2.0
    online: float = 300.0
    broker: float = 60.0
    stall: float = 7200.0
    hold: float = 86400.0

    def __post_init__(self) -> None:
        if not 0 < self.pinot_write < self.lease:
            raise SpecError(
                f"a write to Pinot may take {self.pinot_write:g} s, and the lease lasts {self.lease:g} s",
                why="a run that lost its lease must not wait long for a call (rule R2)",
                hint="set the lease longer than the longest write",
            )

    def timeouts(self) -> Timeouts:
        """Return deadlines for calls to Pinot, none longer than `pinot_write` for a call that writes."""
        usual = Timeouts()
        return Timeouts(
            connect=min(usual.connect, self.pinot_write),
            call=min(usual.call, self.pinot_write),
            upload=self.pinot_write,
            end=min(usual.end, self.pinot_write),
        )


@dataclass(frozen=True, slots=True)
class ZooKeeperAccess:
    """Our credentials for ZooKeeper.

    :ivar username: for the scheme `digest`, with `password`; with None we write nodes that all may change.
    :ivar tls: None means no TLS. The client certificate's key may be in the same file.
    """

    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: Tls | None = None
