"""How to reach what is outside: addresses, credentials, TLS, and how long to wait. Values only.

Nothing here opens a socket: a connection is frozen and picklable, can be logged (secrets do not show),
compared and sent to a worker. Addresses are identities: what is one service, and what can only be this
machine.
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
"""Variables that say where S3 is; the first one that is set counts."""
_PORTS: Final = {"http": 80, "https": 443}
_SERVICES: Final = {
    **_PORTS,
    "kafka": 9092,
    "zookeeper": 2181,
    "pulsar": 6650,
    "pulsar+ssl": 6651,
    "hdfs": 8020,
}
"""What a table config can let Pinot talk to, and the usual port of each."""
_READ_DIFFERENTLY: Final = re.compile(r"[\x00-\x20\x7f\\]")
"""Of `https://one.example\\@other.example` each of two clients takes another one for the host."""


def origin_of(url: str) -> str | None:
    """`scheme://host:port` of a URL in lower case, the usual port written out; None of any other text.

    None, too, of a URL in which clients could find different hosts: one with a user, a backslash or a blank.
    """
    return _origin(url, _PORTS)


def s3_endpoint(environ: Mapping[str, str]) -> str | None:
    """Where S3 is, as AWS' own variables say it; None for AWS itself."""
    return next((environ[name] for name in S3_ENDPOINTS if environ.get(name)), None)


def service_of(url: str) -> str | None:
    """`origin_of` for the schemes of streams and file systems as well: `kafka://host:9092`."""
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
    """Whether a host can only be this machine."""
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


@dataclass(frozen=True, slots=True)
class Waits:
    """All in seconds.

    :ivar lease: ZooKeeper session time-out: a dead run holds its table for so long.
    :ivar pinot_write: longest deadline of a Pinot call that changes something. Shorter than `lease`; a new
        owner waits so long before its first write, if the owner before never let go, or left one of unknown
        end (rule R2).
    :ivar second_look: an empty source is believed only when a listing so much later agrees (edge case E2).
    :ivar first_entry: a table's first lineage entry is read back so much later: another controller that
        writes the node for the first time, too, can take it away (rule R6).
    :ivar online: how long the audit waits for servers to load what was pushed (rule R10).
    :ivar broker: how long a broker may show the old set after it was asked to rebuild its routing (R7).
    :ivar stall: a run without a sign of progress for so long lets go of its table (rule R25). Longer than
        one step of a file takes: to copy it, to write one segment of it.
    :ivar hold: and so does one that has held it for so long.
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
                why="a run that lost its lease must not have a call under way for long (rule R2)",
                hint="let the lease last longer than the longest write",
            )

    def timeouts(self) -> Timeouts:
        """Deadlines of Pinot's calls that keep to `pinot_write`."""
        usual = Timeouts()
        return Timeouts(
            connect=min(usual.connect, self.pinot_write),
            call=min(usual.call, self.pinot_write),
            upload=self.pinot_write,
            end=min(usual.end, self.pinot_write),
        )


@dataclass(frozen=True, slots=True)
class ZooKeeperAccess:
    """Who we are there.

    :ivar username: for the scheme `digest`, with `password`; None writes nodes that everybody may change.
    :ivar tls: None speaks plaintext. A client certificate's key may stand in the same file.
    """

    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: Tls | None = None
