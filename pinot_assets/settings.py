"""Where this installation finds Pinot, ZooKeeper and its tables.

From the environment, else from the local stack that was started in this project.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pinot_assets.errors import PinotAssetsError
from pinot_assets.local import default_home, load_state
from pinot_assets.pinot.connection import PinotConnection, Tls, auth_from_env

DEFAULT_CLUSTER = "pinot"
DEFAULT_TABLES = "tables"


@dataclass(frozen=True, slots=True)
class Settings:
    """One Pinot cluster.

    :ivar zookeeper: connect text, `host:port[,host:port…][/chroot]`.
    :ivar cluster: Helix cluster name, the first element of every Pinot path in ZooKeeper.
    """

    pinot: PinotConnection
    zookeeper: str
    cluster: str


def tables_directory(environ: Mapping[str, str] | None = None) -> Path:
    """Where the table specs lie: PINOT_ASSETS_TABLES, else `tables` in the working directory."""
    env = os.environ if environ is None else environ
    return Path(env.get("PINOT_ASSETS_TABLES") or DEFAULT_TABLES).resolve()


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Read the environment; without an address there, take the local stack's.

    PINOT_CONTROLLER_URL, PINOT_ZOOKEEPER, PINOT_CLUSTER, PINOT_BROKER_URLS, PINOT_CA_BUNDLE, and PINOT_TOKEN
    or PINOT_USER with PINOT_PASSWORD.

    :raises PinotAssetsError: neither is there, or one half is missing.
    """
    env = os.environ if environ is None else environ
    controller, zookeeper = env.get("PINOT_CONTROLLER_URL"), env.get("PINOT_ZOOKEEPER")
    if controller and zookeeper:
        brokers = tuple(b.strip() for b in env.get("PINOT_BROKER_URLS", "").split(",") if b.strip())
        tls = Tls(ca_bundle=env.get("PINOT_CA_BUNDLE") or None)
        connection = PinotConnection(controller, auth=auth_from_env(env), tls=tls, broker_urls=brokers)
        return Settings(connection, zookeeper, env.get("PINOT_CLUSTER") or DEFAULT_CLUSTER)
    if controller or zookeeper:
        missing = "PINOT_ZOOKEEPER" if controller else "PINOT_CONTROLLER_URL"
        raise PinotAssetsError(
            f"{missing} is not set",
            why="Pinot needs both: the controller's address and its ZooKeeper's",
            hint=f"export {missing}=…, or unset the other to use the local stack",
        )
    stack = load_state(default_home())
    if stack is None:
        raise PinotAssetsError(
            "no Pinot to talk to",
            why="PINOT_CONTROLLER_URL is not set, and no local stack runs here",
            hint="start one with `pinot-assets local up`, or export PINOT_CONTROLLER_URL and PINOT_ZOOKEEPER",
        )
    return Settings(PinotConnection(stack.controller_url), stack.zookeeper, stack.cluster)
