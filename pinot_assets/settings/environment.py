"""Read where this installation finds Pinot, ZooKeeper and its tables.

The settings come from the environment, or from a Dagster resource with the same fields. Only the profile
`local` works without them: it uses the local stack that was started in this project.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pinot_assets.core.connections import (
    Auth,
    BasicAuth,
    GrpcDoor,
    PinotConnection,
    Tls,
    TokenAuth,
    Waits,
    ZooKeeperAccess,
    is_loopback,
)
from pinot_assets.core.decision_log import LOG_FORMAT, LogFormat
from pinot_assets.errors import PinotAssetsError
from pinot_assets.settings.cluster_fields import (
    DEFAULT_CLUSTER,
    MOST,
    MOST_SECONDS,
    ClusterFields,
    WaitFields,
    variables_of,
)
from pinot_assets.settings.local_stack import default_home, load_state
from pinot_assets.zookeeper import ZooKeeperInstances

TABLES: Final = "PINOT_ASSETS_TABLES"
DEFAULT_TABLES: Final = "tables"

PROFILE: Final = "PINOT_ASSETS_PROFILE"

FIELDS: Final = {field: variable.name for field, variable in variables_of(ClusterFields).items()}
"""The environment variable of each field."""

_ADDRESS: Final = ("controller_url", "zookeeper")
_PAIRS: Final = (
    ("username", "password"),
    ("password", "username"),
    ("zookeeper_username", "zookeeper_password"),
    ("zookeeper_password", "zookeeper_username"),
    ("client_key", "client_cert"),
    ("grpc_client_key", "grpc_client_cert"),
    ("zookeeper_client_key", "zookeeper_client_cert"),
)
"""Pairs of a field and another field that the first one needs."""


class Profile(StrEnum):
    """What kind of installation this is."""

    LOCAL = "local"
    """One machine: without addresses, the local stack is meant."""

    STAGING = "staging"
    """Somebody's Pinot: nothing is guessed."""

    PRODUCTION = "production"
    """The same, and no credentials or data over plaintext HTTP unless that is allowed."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One Pinot cluster.

    :ivar zookeeper: connect text, `host:port[,host:port…][/chroot]`.
    :ivar cluster: Helix cluster name, the first element of every Pinot path in ZooKeeper.
    """

    pinot: PinotConnection
    zookeeper: str
    cluster: str
    zookeeper_access: ZooKeeperAccess = field(default_factory=ZooKeeperAccess)
    waits: Waits = field(default_factory=Waits)


def tables_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of the table specs: PINOT_ASSETS_TABLES, else `tables` in the working directory."""
    return Path(environ.get(TABLES) or DEFAULT_TABLES).resolve()


def load_profile(environ: Mapping[str, str] = os.environ, name: str = "") -> Profile:
    """Return the profile of that name; without a name, that of PINOT_ASSETS_PROFILE, else local.

    :raises PinotAssetsError: there is no such profile.
    """
    name = name or environ.get(PROFILE) or Profile.LOCAL.value
    if name not in set(Profile):
        raise PinotAssetsError(
            f"there is no profile {name}", hint=f"set {PROFILE} to {' or '.join(Profile)}, or unset it"
        )
    return Profile(name)


def load_log_format(environ: Mapping[str, str] = os.environ) -> LogFormat:
    """Return the format of PINOT_ASSETS_LOG_FORMAT, else text.

    :raises PinotAssetsError: there is no such format.
    """
    name = environ.get(LOG_FORMAT) or LogFormat.TEXT.value
    if name not in set(LogFormat):
        raise PinotAssetsError(f"{LOG_FORMAT} is {name}", hint=f"set it to {' or '.join(LogFormat)}")
    return LogFormat(name)


def load_settings(environ: Mapping[str, str] = os.environ, profile: Profile | None = None) -> Settings:
    """Read the settings from the environment; without addresses, the profile `local` uses the local stack.

    :param profile: if None, the profile in PINOT_ASSETS_PROFILE.
    :raises PinotAssetsError: no Pinot is configured, something is missing, or two settings contradict.
    """
    named = named_settings(environ, profile)
    return _local_stack(_waits(_values(environ), FIELDS.__getitem__)) if named is None else named


def named_settings(env: Mapping[str, str], profile: Profile | None = None) -> Settings | None:
    """As `load_settings`, but None if the local stack is to be used; it does not check whether one runs.

    :raises PinotAssetsError: something is missing, or two settings contradict.
    """
    profile = profile or load_profile(env)
    values = _values(env)
    if profile is Profile.LOCAL and not any(values[key] for key in _ADDRESS):
        # The local stack needs no credentials. But if some are set, and only half of them, it is a mistake.
        _refuse_half(values, FIELDS.__getitem__)
        _waits(values, FIELDS.__getitem__)
        return None
    return settings_of(values, profile, FIELDS.__getitem__)


def unused_settings(env: Mapping[str, str]) -> list[str]:
    """Return the variables that are set but have no effect, because the local stack is used."""
    if any(env.get(FIELDS[key]) for key in _ADDRESS):
        return []
    return [name for key, name in FIELDS.items() if env.get(name) and key not in WaitFields.model_fields]


def _values(env: Mapping[str, str]) -> dict[str, str]:
    return {key: env.get(name, "") for key, name in FIELDS.items()}


def settings_of(values: Mapping[str, str], profile: Profile, name_of: Callable[[str], str]) -> Settings:
    """Check the fields of `FIELDS` and return the clients' settings.

    :param values: all fields; an empty text means not set.
    :param name_of: returns the name of a field for error messages.
    :raises PinotAssetsError: something is missing (names all of it), contradictory or not allowed.
    """
    _refuse_missing(values, profile, name_of)
    _refuse_half(values, name_of)
    if "://" in values["zookeeper"] or "@" in values["zookeeper"]:
        # The client would not detect it: with a URL, it tries to resolve a host `http` for ten seconds.
        raise PinotAssetsError(
            f"{name_of('zookeeper')} is not an address of ZooKeeper",  # not shown: it may hold a password
            why="an address has hosts and ports, without a scheme and without a user",
            hint="write host:port[,host:port…][/chroot]",
        )
    if values["token"] and values["username"]:
        raise PinotAssetsError(
            f"both {name_of('token')} and {name_of('username')} are set",
            hint=f"keep one kind of credentials for Pinot: unset {name_of('token')}, or "
            f"{name_of('username')} and {name_of('password')}",
        )
    brokers = tuple(url.strip() for url in values["broker_urls"].split(",") if url.strip())
    if profile is Profile.PRODUCTION and not _flag(values, "allow_http", name_of):
        for url in (values["controller_url"], *brokers):
            _refuse_plaintext(url, name_of("allow_http"))
    access = ZooKeeperAccess(
        username=values["zookeeper_username"] or None,
        password=values["zookeeper_password"] or None,
        tls=_zookeeper_tls(values, name_of),
    )
    cluster = values["cluster"] or DEFAULT_CLUSTER
    waits = _waits(values, name_of)
    connection = PinotConnection(
        values["controller_url"],
        auth=_auth(values),
        tls=_tls(values, ""),
        timeouts=waits.timeouts(),
        broker_urls=brokers,
        grpc=_grpc(values, profile, name_of),
        addresses=_addresses(values, name_of),
        instances=ZooKeeperInstances(values["zookeeper"], cluster, access),
    )
    if profile is Profile.PRODUCTION:
        _refuse_open_zookeeper(values, name_of)
    return Settings(connection, values["zookeeper"], cluster, access, waits)


def _refuse_missing(values: Mapping[str, str], profile: Profile, name_of: Callable[[str], str]) -> None:
    """Raise an error if an address is missing; the error also names everything else that is missing."""
    if not (missing := [name_of(key) for key in _ADDRESS if not values[key]]):
        return
    missing += [name_of(lacking) for _, lacking in _halves(values)]
    stack = "" if profile is not Profile.LOCAL else "; with no address at all, the local stack is used"
    raise PinotAssetsError(
        f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set",
        why=f"the profile {profile} needs the addresses of Pinot's controller and of its ZooKeeper, "
        "and complete credentials",
        hint=f"set {' and '.join(missing)}{stack}",
    )


def _refuse_half(values: Mapping[str, str], name_of: Callable[[str], str]) -> None:
    for given, lacking in _halves(values):
        raise PinotAssetsError(
            f"{name_of(lacking)} is not set",
            why=f"{name_of(given)} is set, and has no use without it",
            hint=f"set {name_of(lacking)}, or unset {name_of(given)}",
        )


def _halves(values: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the pairs of `_PAIRS` whose first field is set and whose second one is not."""
    return [(given, lacking) for given, lacking in _PAIRS if values[given] and not values[lacking]]


def _refuse_open_zookeeper(values: Mapping[str, str], name_of: Callable[[str], str]) -> None:
    if values["zookeeper_username"] or _flag(values, "allow_open_zookeeper", name_of):
        return
    user, password = name_of("zookeeper_username"), name_of("zookeeper_password")
    raise PinotAssetsError(
        f"{user} is not set",
        why="without a user, everyone who can connect to ZooKeeper may change what is published, and "
        "the profile production creates no node that everyone can write",
        hint=f"set {user} and {password}; or, if nothing else can connect to ZooKeeper, set "
        f"{name_of('allow_open_zookeeper')} to true",
    )


def _addresses(values: Mapping[str, str], name_of: Callable[[str], str]) -> tuple[str, ...]:
    written = [one.strip() for one in values["addresses"].split(",") if one.strip()]
    for one in written:
        if not re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+):[0-9]{1,5}", one):
            raise PinotAssetsError(
                f"{name_of('addresses')} contains {one!r}, which is not an address",
                hint="write host:port,host:port…",
            )
    return tuple(one.lower() for one in written)


def _auth(values: Mapping[str, str]) -> Auth | None:
    if values["token"]:
        return TokenAuth(values["token"])
    return BasicAuth(values["username"], values["password"]) if values["username"] else None


def _tls(values: Mapping[str, str], prefix: str) -> Tls:
    """:param prefix: prefix of the TLS fields' names."""
    return Tls(
        ca_bundle=values[f"{prefix}ca_bundle"] or None,
        client_cert=values[f"{prefix}client_cert"] or None,
        client_key=values[f"{prefix}client_key"] or None,
    )


def _grpc(values: Mapping[str, str], profile: Profile, name_of: Callable[[str], str]) -> GrpcDoor:
    """Return the gRPC settings: TLS as for the controller, unless set, or implied by another gRPC field."""
    tls, name = _tls(values, "grpc_"), values["grpc_server_name"] or None
    said = _flag(values, "grpc_tls", name_of) if values["grpc_tls"] else None
    if said is False and (tls != Tls() or name is not None):
        raise PinotAssetsError(
            f"{name_of('grpc_tls')} is false, and there are settings for TLS at servers' gRPC door",
            hint=f"unset {name_of('grpc_tls')}, or {name_of('grpc_ca_bundle')} and the like",
        )
    if said is False and profile is Profile.PRODUCTION and not _flag(values, "allow_http", name_of):
        raise PinotAssetsError(
            "pinot-assets would query Pinot's servers by gRPC without TLS",
            why="the profile production sends neither credentials nor data in plaintext",
            hint=f"unset {name_of('grpc_tls')}, or set {name_of('allow_http')} to true on a network that you "
            "trust",
        )
    return GrpcDoor(True if tls != Tls() or name is not None else said, tls, name)


def _zookeeper_tls(values: Mapping[str, str], name_of: Callable[[str], str]) -> Tls | None:
    """Return ZooKeeper's TLS settings if TLS is on or one of its files is set; otherwise None."""
    tls = _tls(values, "zookeeper_")
    return tls if _flag(values, "zookeeper_tls", name_of) or tls != Tls() else None


def _flag(values: Mapping[str, str], key: str, name_of: Callable[[str], str]) -> bool:
    value = values[key].lower()
    if value not in ("", "true", "false"):
        raise PinotAssetsError(f"{name_of(key)} is neither true nor false", hint="write true or false")
    return value == "true"


def _waits(values: Mapping[str, str], name_of: Callable[[str], str]) -> Waits:
    usual = Waits()

    def read(key: str, default: float, highest: int) -> float:
        return _number(values[key], name_of(key), key.rpartition("_")[2], highest) if values[key] else default

    return Waits(
        lease=read("lease_seconds", usual.lease, MOST_SECONDS),
        pinot_write=read("write_seconds", usual.pinot_write, MOST_SECONDS),
        stall=60 * read("stall_minutes", usual.stall / 60, MOST),
        hold=3600 * read("hold_hours", usual.hold / 3600, MOST),
    )


def _number(text: str, name: str, unit: str, highest: int) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 1 <= number <= highest:
        raise PinotAssetsError(f"{name} is not a number of {unit}", hint=f"write 1 to {highest}")
    return number


def _refuse_plaintext(url: str, allow: str) -> None:
    parts = urlsplit(url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise PinotAssetsError(
            f"pinot-assets would connect to Pinot at {parts.hostname} without TLS",
            why="the profile production sends neither credentials nor segments over plaintext HTTP",
            hint=f"use https://, or set {allow} to true on a network that you trust",
        )


def _local_stack(waits: Waits) -> Settings:
    if (stack := load_state(default_home())) is None:
        raise PinotAssetsError(
            "there is no Pinot to connect to",
            why="PINOT_CONTROLLER_URL is not set, and no local stack runs here",
            hint="start one with `pinot-assets local up`, or export PINOT_CONTROLLER_URL and PINOT_ZOOKEEPER",
        )
    connection = PinotConnection(stack.controller_url, timeouts=waits.timeouts())
    return Settings(connection, stack.zookeeper, stack.cluster, waits=waits)
