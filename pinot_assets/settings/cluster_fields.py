"""Define each setting for reaching Pinot and ZooKeeper, and for waiting, once, with its variable.

Each field of these models is also a field of the Dagster resource `pinot`, a variable of the environment,
and a line of docs/reference/configuration.md.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from pinot_assets.core.connections import Waits

DEFAULT_CLUSTER: Final = "pinot"
MOST_SECONDS: Final = 3600
MOST: Final = 10_000
"""The largest number of minutes, and of hours, that a setting may have."""

SECRET: Final = "secret"
PEM: Final = "path of a PEM file"
BOOLEAN: Final = "`true` or `false`"
_WAITS: Final = Waits()
_SEE: Final = re.compile(r"see \[[^]]+\]\(\.\./([\w./-]+)[^)]*\)")
_LINK: Final = re.compile(r"\[([^]]+)\]\([^)]+\)")
T = TypeVar("T")
_VARIABLE: Final = re.compile(r"`PINOT_([A-Z_]+)`")


class Variable(NamedTuple):
    """One variable of the environment, as docs/reference/configuration.md describes it.

    :ivar kind: type of the value.
    :ivar unit: unit of the value, if it is a number.
    :ivar default: the value if the variable is not set; empty for none.
    """

    name: str
    kind: str
    meaning: str
    default: str = ""
    unit: str = ""


def _field(name: str, kind: str, meaning: str, default: str = "", unit: str = "") -> str:
    return _field_of(name, kind, meaning, default, unit, empty="")


def _field_of(name: str, kind: str, meaning: str, default: str = "", unit: str = "", *, empty: T) -> T:
    """Return a model field that carries its variable, for `variables_of`.

    :param empty: the field's value if nothing is set.
    """
    variable = Variable(name, kind, meaning, default, unit)
    return Field(
        default=empty,
        description=_as_field(variable, "0" if type(empty) is int else "empty"),
        repr=kind != SECRET,
        json_schema_extra={"variable": variable._asdict()},
    )


def _as_field(variable: Variable, unset: str) -> str:
    """Return the description for Dagster: links become plain text, as they do not work there, and variables
    become field names."""
    default = f"; {unset}: {variable.default} {variable.unit}".rstrip() if variable.default else ""
    said = _LINK.sub(r"\1", _SEE.sub(r"see docs/\1", f"{variable.meaning} ({variable.kind}{default})"))
    return _VARIABLE.sub(lambda match: f"`{match[1].lower()}`", said)


def _wait(name: str, unit: str, highest: int, usual: float, meaning: str) -> int:
    return _field_of(name, f"1 to {highest}", meaning, f"{usual:g}", unit, empty=0)


def variables_of(fields: type[BaseModel]) -> dict[str, Variable]:
    """Return the variable of each field, by the field's name."""
    extra = {name: field.json_schema_extra for name, field in fields.model_fields.items()}
    return {
        name: Variable(**{key: str(value) for key, value in variable.items()})
        for name, said in extra.items()
        if isinstance(said, dict) and isinstance(variable := said.get("variable"), dict)
    }


class _Fields(BaseModel):
    model_config = ConfigDict(defer_build=True)  # a command that reads the environment needs no validator


class PinotFields(_Fields):
    """How to reach Pinot's controllers, brokers and servers."""

    controller_url: str = _field(
        "PINOT_CONTROLLER_URL",
        "URL",
        "URL of a controller, or of a proxy before it. Without it and `PINOT_ZOOKEEPER`, the "
        "profile `local` uses the local stack.",
    )
    broker_urls: list[str] = _field_of(
        "PINOT_BROKER_URLS",
        "URLs, separated by commas",
        "Brokers to query instead of those that the controller names.",
        empty=[],
    )
    addresses: list[str] = _field_of(
        "PINOT_ADDRESSES",
        "`host:port`, separated by commas",
        "Brokers and servers that get credentials, besides those that ZooKeeper names; see "
        "[security](../security.md#who-gets-pinots-credentials).",
        empty=[],
    )
    cluster: str = _field("PINOT_CLUSTER", "name", "Name of the Helix cluster.", DEFAULT_CLUSTER)
    username: str = _field("PINOT_USER", "text", "User of basic authentication, with `PINOT_PASSWORD`.")
    password: str = _field("PINOT_PASSWORD", SECRET, "Its password.")
    token: str = _field(
        "PINOT_TOKEN",
        SECRET,
        "A token instead of user and password; sent as Bearer unless it names its scheme (`Basic …`).",
    )
    ca_bundle: str = _field(
        "PINOT_CA_BUNDLE", PEM, "Certificates of the authorities to trust.", "the system's"
    )
    client_cert: str = _field("PINOT_CLIENT_CERT", PEM, "Client certificate for mutual TLS.")
    client_key: str = _field(
        "PINOT_CLIENT_KEY", PEM, "Key of the client certificate, if it is not in the same file."
    )
    grpc_tls: str = _field(
        "PINOT_GRPC_TLS",
        BOOLEAN,
        "Whether the connection to servers' gRPC port uses TLS (`pinot.server.grpctls`); the "
        "[audit](../guides/audit.md)'s assertions are queried there. The next three imply "
        "`true`; the profile `production` refuses `false` unless HTTP is allowed.",
        "whether the controller's address is https",
    )
    grpc_ca_bundle: str = _field(
        "PINOT_GRPC_CA_BUNDLE",
        PEM,
        "Certificates of the authorities to trust for gRPC. There is no TLS without verification.",
        "`PINOT_CA_BUNDLE`",
    )
    grpc_client_cert: str = _field(
        "PINOT_GRPC_CLIENT_CERT", PEM, "Client certificate for gRPC.", "`PINOT_CLIENT_CERT`"
    )
    grpc_client_key: str = _field(
        "PINOT_GRPC_CLIENT_KEY", PEM, "Key of that certificate, if it is not in the same file."
    )
    grpc_server_name: str = _field(
        "PINOT_GRPC_SERVER_NAME",
        "host",
        "Name in the servers' certificates, if it is not the host in their instance names.",
    )
    allow_http: bool = _field_of(
        "PINOT_ASSETS_ALLOW_HTTP",
        BOOLEAN,
        "Let the profile `production` connect to another machine over plaintext HTTP.",
        "false",
        empty=False,
    )


class ZooKeeperFields(_Fields):
    """How to reach Pinot's ZooKeeper."""

    zookeeper: str = _field("PINOT_ZOOKEEPER", "`host:port[,host:port…][/chroot]`", "Pinot's ZooKeeper.")
    zookeeper_username: str = _field(
        "PINOT_ZOOKEEPER_USER",
        "text",
        "A user of ZooKeeper's scheme `digest`; see [ZooKeeper with a "
        "user](../deploy.md#zookeeper-with-a-user).",
    )
    zookeeper_password: str = _field("PINOT_ZOOKEEPER_PASSWORD", SECRET, "Its password.")
    allow_open_zookeeper: bool = _field_of(
        "PINOT_ASSETS_ALLOW_OPEN_ZOOKEEPER",
        BOOLEAN,
        "Let the profile `production` work without a user of ZooKeeper.",
        "false",
        empty=False,
    )
    zookeeper_tls: bool = _field_of(
        "PINOT_ZOOKEEPER_TLS",
        BOOLEAN,
        "Use TLS, and trust the system's authorities. The next three imply it.",
        "false",
        empty=False,
    )
    zookeeper_ca_bundle: str = _field(
        "PINOT_ZOOKEEPER_CA_BUNDLE", PEM, "Certificates of the authorities to trust, besides the system's."
    )
    zookeeper_client_cert: str = _field(
        "PINOT_ZOOKEEPER_CLIENT_CERT", PEM, "Client certificate for mutual TLS."
    )
    zookeeper_client_key: str = _field(
        "PINOT_ZOOKEEPER_CLIENT_KEY", PEM, "Key of the client certificate, if it is not in the same file."
    )


class WaitFields(_Fields):
    """How long to wait; these settings apply to the local stack, too."""

    lease_seconds: int = _wait(
        "PINOT_ASSETS_LEASE_SECONDS",
        "seconds",
        MOST_SECONDS,
        _WAITS.lease,
        "How long a dead run keeps the lease of its table: ZooKeeper's session time-out, which "
        "ZooKeeper's own `maxSessionTimeout` bounds. It must be the same for every process.",
    )
    write_seconds: int = _wait(
        "PINOT_ASSETS_WRITE_SECONDS",
        "seconds",
        MOST_SECONDS,
        _WAITS.pinot_write,
        "The longest upload of one segment into Pinot. It must be shorter than the lease. After "
        "a run died, the next run waits this long before it changes Pinot.",
    )
    stall_minutes: int = _wait(
        "PINOT_ASSETS_STALL_MINUTES",
        "minutes",
        MOST,
        _WAITS.stall / 60,
        "A run releases the lease and fails when it shows no sign of progress for this long (a "
        "finished file, rows read, a segment written, a write to Pinot). It must be longer than "
        "it takes to copy the largest file, or to build one segment.",
    )
    hold_hours: int = _wait(
        "PINOT_ASSETS_HOLD_HOURS",
        "hours",
        MOST,
        _WAITS.hold / 3600,
        "A run also releases the lease when it has held it for this long. What it has built is kept.",
    )


class ClusterFields(WaitFields, ZooKeeperFields, PinotFields):
    """All settings of a cluster: waits, ZooKeeper and Pinot."""
