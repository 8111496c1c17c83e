"""The folders of a local stack, and the record of its ports, keys and processes.

`Record` is the content of `state.json` in the home folder; `StackState` is its view for other modules.
`Stack` saves the record before and after it starts a process, so that a crash leaves no unknown process.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from pinot_assets.errors import LocalStackError

LOOPBACK = "127.0.0.1"
CLUSTER = "pinot"
"""The Helix cluster, so that the property store lies at /pinot/PROPERTYSTORE."""

BROKERS = ("broker-1", "broker-2")
SERVERS = ("server-1", "server-2")


def default_cache() -> Path:
    """Return the folder for the jars, which are fetched once per user.

    :returns: `PINOT_ASSETS_CACHE`, else `pinot-assets` in the XDG cache folder.
    """
    if set_by_user := os.environ.get("PINOT_ASSETS_CACHE"):
        return Path(set_by_user).expanduser().resolve()
    xdg = os.environ.get("XDG_CACHE_HOME")
    return (Path(xdg) if xdg else Path.home() / ".cache") / "pinot-assets"


HOME = ".pinot-assets"
"""Folder of a project for what this program makes there."""


def default_home() -> Path:
    """Return the home folder of this project's local stack.

    :returns: `PINOT_ASSETS_HOME`, else `.pinot-assets` in the current directory.
    """
    return Path(os.environ.get("PINOT_ASSETS_HOME") or HOME).expanduser().resolve()


class ProcessRecord(BaseModel):
    """A process that the local stack started.

    :ivar pid: its process id.
    :ivar create_time: the kernel's start time, seconds since the epoch; pid and time identify one process.
    """

    pid: int
    create_time: float


class Record(BaseModel):
    """The content of `state.json`.

    :ivar stack: random name of this stack, which is part of the command line of each of its processes.
    :ivar pinot_version: version of the Pinot that ran here last, empty before the first start.
    :ivar pinot_release: the release from Apache's sites that the user named, empty for another Pinot.
    :ivar ports: port by part and purpose. They cannot change while the data exist, because the names of
        Pinot's instances contain them.
    :ivar processes: by part, the process that was started last and not stopped since.
    :ivar settled: parts that were ready at least once; their ports cannot change any more.
    :ivar segment_store: whether servers copy the segments that they commit into the deep store themselves.
    """

    stack: str = Field(default_factory=lambda: secrets.token_hex(8))
    pinot_version: str = ""
    pinot_release: str = ""
    ports: dict[str, dict[str, int]] = {}
    processes: dict[str, ProcessRecord] = {}
    settled: set[str] = set()
    segment_store: bool = False
    s3_access_key: str = Field(default_factory=lambda: secrets.token_hex(10))
    s3_secret_key: str = Field(default_factory=lambda: secrets.token_hex(20), repr=False)


@dataclass(frozen=True, slots=True)
class StackState:
    """How to reach a local stack. The fields of an optional part are None if it was not started.

    :ivar cluster: Helix cluster name.
    :ivar broker_urls: query endpoints, both brokers.
    :ivar server_grpc: `host:port` of the servers' gRPC query doors.
    :ivar server_admin_urls: the servers' HTTP endpoints, in the order of `server_grpc`.
    :ivar zookeeper: `host:port`.
    :ivar kafka_bootstrap: `host:port`.
    :ivar deep_store: folder of the deep store, the controller's data directory.
    """

    home: Path
    pinot_version: str
    cluster: str
    zookeeper: str
    controller_url: str
    broker_urls: list[str]
    server_grpc: list[str]
    server_admin_urls: list[str]
    deep_store: Path
    kafka_bootstrap: str | None = None
    s3_endpoint: str | None = None
    s3_access_key: str | None = None
    s3_secret_key: str | None = field(default=None, repr=False)


def load_state(home: Path) -> StackState | None:
    """Return how to reach the stack of `home`, None if none was started there. Reads one small file.

    :raises LocalStackError: the file is there but cannot be read.
    """
    record = load_record(home)
    return None if record is None or not record.processes else reachable(home, record)


def reachable(home: Path, record: Record) -> StackState:
    """Return how to reach the stack of a record, for other modules."""
    kafka, s3 = "kafka" in record.processes, "s3" in record.processes
    return StackState(
        home=home,
        pinot_version=record.pinot_version,
        cluster=CLUSTER,
        zookeeper=f"{LOOPBACK}:{record.ports['zookeeper']['client']}",
        controller_url=f"http://{LOOPBACK}:{record.ports['controller']['http']}",
        broker_urls=[f"http://{LOOPBACK}:{record.ports[broker]['http']}" for broker in BROKERS],
        server_grpc=[f"{LOOPBACK}:{record.ports[server]['grpc']}" for server in SERVERS],
        server_admin_urls=[f"http://{LOOPBACK}:{record.ports[server]['admin']}" for server in SERVERS],
        deep_store=home / "data" / "controller",
        kafka_bootstrap=f"{LOOPBACK}:{record.ports['kafka']['client']}" if kafka else None,
        s3_endpoint=f"http://{LOOPBACK}:{record.ports['s3']['http']}" if s3 else None,
        s3_access_key=record.s3_access_key if s3 else None,
        s3_secret_key=record.s3_secret_key if s3 else None,
    )


def load_record(home: Path) -> Record | None:
    """Return the record in `home`, None if there is none.

    :raises LocalStackError: the file is there but cannot be read.
    """
    path = home / "state.json"
    try:
        return Record.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise LocalStackError(
            f"the record of the local stack, {path}, cannot be read",
            why=str(error).splitlines()[0],
            hint="end the processes of that stack by hand, then delete the folder",
        ) from error


def save_record(home: Path, record: Record) -> None:
    """Write the record whole or not at all, readable by its owner only (it holds the S3 key)."""
    home.mkdir(parents=True, exist_ok=True)
    # `Stack` holds a lock, so there is one writer at a time. The next one replaces what a killed one left.
    new = home / ".state.new"
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(record.model_dump_json(indent=2))
    new.replace(home / "state.json")
