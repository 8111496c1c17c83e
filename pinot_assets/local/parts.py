"""All parts of the local stack: their class paths and ports, their configuration, and how to see them ready.

All ports listen on 127.0.0.1, except two of a Pinot server, which bind to all interfaces whatever its config
says: the query port (`QueryServer` calls `bind(port)`) and the gRPC port (`NettyServerBuilder.forPort`).
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx

from pinot_assets.core.untrusted import fields_of_json, listed
from pinot_assets.local.pinot_build import MAIN_CLASS
from pinot_assets.local.processes import owner_of
from pinot_assets.settings.local_stack import BROKERS, CLUSTER, LOOPBACK, SERVERS, Record

SMALL_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")  # fast to start, small; not for benchmarks
_LOG4J = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.xml')}"
# Pinot's own start script opens these packages for newer versions, which PINOT_HOME may name.
OPENS = tuple(
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in [
        "java.nio",
        "sun.nio.ch",
        "java.lang",
        "java.util",
        "java.lang.reflect",
        "sun.util.calendar",
    ]
)


# Nothing here uses the multi-stage engine. For it, Pinot 1.5 opens one more port on each broker and two on
# each server, at random, on all interfaces (`GrpcMailboxServer`, `QueryServer` of pinot-query-runtime).
_ONE_STAGE: dict[str, object] = {"pinot.multistage.engine.enabled": "false"}


@dataclass(frozen=True, slots=True)
class Site:
    """The place where a part runs.

    :ivar pid: process id of the part itself, None while it is not started.
    """

    home: Path
    record: Record
    pid: int | None = None

    def port(self, part: str, purpose: str) -> int:
        """Return the recorded port of a part for a purpose."""
        return self.record.ports[part][purpose]

    def data(self, part: str) -> Path:
        """Return the part's data folder."""
        return self.home / "data" / part

    def write(self, name: str, settings: dict[str, object]) -> str:
        """Write a properties file that only its owner can read (some contain the S3 key); return its path."""
        path = self.home / "conf" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return str(path)


@dataclass(frozen=True, slots=True)
class StackPart:
    """One process of the stack.

    :ivar jars: the jars of its class path: `pinot`, `kafka` or `s3`.
    :ivar ports: the purposes for which it listens on a port.
    :ivar after: the parts that have to be ready before it starts.
    :ivar arguments: writes its configuration; returns the JVM's arguments without the class path.
    :ivar missing: returns what it still lacks to be ready, None if it is ready.
    """

    name: str
    jars: str
    ports: tuple[str, ...]
    after: tuple[str, ...]
    arguments: Callable[[Site], list[str]]
    missing: Callable[[Site], str | None]


# --- ZooKeeper -----------------------------------------------------------------------------------


def _zookeeper_arguments(site: Site) -> list[str]:
    settings: dict[str, object] = {
        "dataDir": site.data("zookeeper"),
        "clientPort": site.port("zookeeper", "client"),
        "clientPortAddress": LOOPBACK,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "srvr",
        "tickTime": 1000,
        "maxSessionTimeout": 40_000,
        "maxClientCnxns": 0,
        "autopurge.snapRetainCount": 3,
        "autopurge.purgeInterval": 1,
    }
    return [
        "-Xmx256m",
        *SMALL_JVM,
        _LOG4J,
        "-Dzookeeper.jmx.log4j.disable=true",
        "-Dzookeeper.forceSync=no",  # data survive a killed process, but not a machine failure
        "-Djute.maxbuffer=4194304",
        "org.apache.zookeeper.server.ZooKeeperServerMain",
        site.write("zookeeper.properties", settings),
    ]


def _zookeeper_missing(site: Site) -> str | None:
    try:
        with socket.create_connection((LOOPBACK, site.port("zookeeper", "client")), timeout=2) as door:
            door.sendall(b"srvr")
            answer = door.recv(4096)
    except OSError as error:
        return f"no answer on its client port ({error})"
    return None if answer.startswith(b"Zookeeper version") else f"it answers {answer[:60]!r}"


# --- Pinot ---------------------------------------------------------------------------------------


def _pinot_arguments(command: str, config: str) -> list[str]:
    return [
        "-Xmx512m",
        *SMALL_JVM,
        *OPENS,
        _LOG4J,
        MAIN_CLASS,
        command,
        "-configFileName",
        config,
    ]


def _http(prefix: str, port: int) -> dict[str, object]:
    """Return one HTTP listener on loopback, as Pinot's plain port settings bind to all interfaces."""
    return {
        f"{prefix}.access.protocols": "http",
        f"{prefix}.access.protocols.http.host": LOOPBACK,
        f"{prefix}.access.protocols.http.port": port,
    }


def _s3(prefix: str, site: Site) -> dict[str, object]:
    """Return settings for segments on the S3 part; always set, as that part may start later than Pinot."""
    return {
        f"{prefix}.storage.factory.class.s3": "org.apache.pinot.plugin.filesystem.S3PinotFS",
        f"{prefix}.storage.factory.s3.region": "us-east-1",
        f"{prefix}.storage.factory.s3.endpoint": f"http://{LOOPBACK}:{site.port('s3', 'http')}",
        f"{prefix}.storage.factory.s3.accessKey": site.record.s3_access_key,
        f"{prefix}.storage.factory.s3.secretKey": site.record.s3_secret_key,
        f"{prefix}.segment.fetcher.protocols": "file,http,s3",
        f"{prefix}.segment.fetcher.s3.class": "org.apache.pinot.common.utils.fetcher.PinotFSSegmentFetcher",
    }


def _zookeeper_address(site: Site) -> str:
    return f"{LOOPBACK}:{site.port('zookeeper', 'client')}"


def _controller_arguments(site: Site) -> list[str]:
    settings: dict[str, object] = {
        "controller.helix.cluster.name": CLUSTER,
        "controller.zk.str": _zookeeper_address(site),
        "controller.host": LOOPBACK,
        **_http("controller", site.port("controller", "http")),
        # Without these, download URLs of a local deep store would be http://127.0.0.1:null/segments/…
        "controller.vip.host": LOOPBACK,
        "controller.vip.port": site.port("controller", "http"),
        "controller.vip.protocol": "http",
        "controller.data.dir": site.data("controller"),
        "controller.local.temp.dir": site.data("controller-temp"),
        **_s3("pinot.controller", site),
    }
    return _pinot_arguments("StartController", site.write("controller.properties", settings))


def _controller_missing(site: Site) -> str | None:
    return _not_ok(f"http://{LOOPBACK}:{site.port('controller', 'http')}/health")


def _broker_arguments(name: str, site: Site) -> list[str]:
    settings: dict[str, object] = {
        "pinot.cluster.name": CLUSTER,
        "pinot.zk.server": _zookeeper_address(site),
        "pinot.broker.hostname": LOOPBACK,
        **_http("pinot.broker.client", site.port(name, "http")),
        "pinot.broker.delayShutdownTimeMs": 0,
        **_ONE_STAGE,
    }
    return _pinot_arguments("StartBroker", site.write(f"{name}.properties", settings))


def _broker_missing(name: str, site: Site) -> str | None:
    port = site.port(name, "http")
    return _not_ok(f"http://{LOOPBACK}:{port}/health") or _not_registered(
        site, f"Broker_{LOOPBACK}_{port}", "DefaultTenant_BROKER"
    )


def _server_arguments(name: str, site: Site) -> list[str]:
    settings: dict[str, object] = {
        "pinot.cluster.name": CLUSTER,
        "pinot.zk.server": _zookeeper_address(site),
        "pinot.server.netty.host": LOOPBACK,  # the advertised host; it binds to all interfaces
        "pinot.server.netty.port": site.port(name, "netty"),
        "pinot.server.grpc.enable": "true",
        "pinot.server.grpc.port": site.port(name, "grpc"),
        **_http("pinot.server.adminapi", site.port(name, "admin")),
        "pinot.server.instance.dataDir": site.data(name) / "segments",
        "pinot.server.instance.segmentTarDir": site.data(name) / "tars",
        "pinot.server.instance.readMode": "mmap",
        "pinot.server.shutdown.enableQueryCheck": "false",
        **_ONE_STAGE,
        **_s3("pinot.server", site),
    }
    if site.record.segment_store:
        # Servers themselves copy committed segments here: the controller's data directory, as a URI.
        settings["pinot.server.instance.segment.store.uri"] = site.data("controller").as_uri()
    return _pinot_arguments("StartServer", site.write(f"{name}.properties", settings))


def _server_missing(name: str, site: Site) -> str | None:
    return _not_ok(f"http://{LOOPBACK}:{site.port(name, 'admin')}/health") or _not_registered(
        site, f"Server_{LOOPBACK}_{site.port(name, 'netty')}", "DefaultTenant_OFFLINE"
    )


def _not_ok(url: str) -> str | None:
    try:
        answer = httpx.get(url, timeout=5, trust_env=False)
    except httpx.HTTPError as error:
        return f"no answer from {url} ({type(error).__name__})"
    return None if answer.status_code == 200 else f"{url} answers {answer.status_code}"


def _not_registered(site: Site, instance: str, tag: str) -> str | None:
    """Return what an instance lacks: its tenant's tag, without which no table can be created, or that it is
    live as exactly this process, not as a dead one whose node ZooKeeper still has. None if it is ready.
    """
    controller = f"http://{LOOPBACK}:{site.port('controller', 'http')}"
    try:
        with httpx.Client(base_url=controller, timeout=5, trust_env=False) as client:
            known = client.get(f"/instances/{instance}")
            live = client.get("/zk/get", params={"path": f"/{CLUSTER}/LIVEINSTANCES/{instance}"})
    except httpx.HTTPError as error:
        return f"the controller does not answer about {instance} ({type(error).__name__})"
    try:
        is_tagged = known.status_code == 200 and tag in listed(fields_of_json(known.content).get("tags"), str)
    except ValueError:
        is_tagged = False
    if not is_tagged:
        return f"the controller does not know {instance} with the tag {tag}"
    if live.status_code != 200:
        return f"{instance} is not alive"
    try:
        owner = owner_of(live.content)
    except ValueError:
        return f"{instance} is alive, but the controller does not report its process"
    return None if owner.split("@")[0] == str(site.pid) else f"{instance} still belongs to process {owner}"


# --- Kafka and S3, the optional parts -------------------------------------------------------------


def _kafka_arguments(site: Site) -> list[str]:
    node, quorum = site.port("kafka", "client"), site.port("kafka", "quorum")
    data = site.data("kafka")
    if not (data / "meta.properties").exists():
        # Write the file that `kafka-storage format` would write; that saves the start of a JVM.
        data.mkdir(parents=True, exist_ok=True)
        (data / "meta.properties").write_text("version=1\ncluster.id=pinotAssetsLocalStack\nnode.id=1\n")
    settings: dict[str, object] = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{LOOPBACK}:{quorum}",
        "listeners": f"PLAINTEXT://{LOOPBACK}:{node},CONTROLLER://{LOOPBACK}:{quorum}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{node}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": data,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
    }
    return [
        "-Xmx512m",
        *SMALL_JVM,
        f"-Dlog4j.configuration=file:{Path(__file__).with_name('kafka-log4j.properties')}",
        "kafka.Kafka",
        site.write("kafka.properties", settings),
    ]


def _kafka_missing(site: Site) -> str | None:
    # An ApiVersions request, version 0: only a running broker answers it with the same correlation id.
    request = bytes.fromhex("0012 0000 0000002a 0005 6c6f63616c")
    try:
        with socket.create_connection((LOOPBACK, site.port("kafka", "client")), timeout=2) as door:
            door.sendall(len(request).to_bytes(4, "big") + request)
            answer = door.recv(4096)
    except OSError as error:
        return f"no answer on its client port ({error})"
    return None if answer[4:8] == bytes.fromhex("0000002a") else "it does not answer as Kafka"


def _s3_arguments(site: Site) -> list[str]:
    data = site.data("s3")
    data.mkdir(parents=True, exist_ok=True)
    settings: dict[str, object] = {
        "s3proxy.endpoint": f"http://{LOOPBACK}:{site.port('s3', 'http')}",
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.identity": site.record.s3_access_key,
        "s3proxy.credential": site.record.s3_secret_key,
        "jclouds.provider": "filesystem-nio2",
        "jclouds.filesystem.basedir": data,
    }
    return [
        "-Xmx256m",
        *SMALL_JVM,
        f"-Dlogback.configurationFile={Path(__file__).with_name('s3-logback.xml')}",
        "org.gaul.s3proxy.Main",
        "--properties",
        site.write("s3.properties", settings),
    ]


def _s3_missing(site: Site) -> str | None:
    url = f"http://{LOOPBACK}:{site.port('s3', 'http')}/"
    try:
        answer = httpx.get(url, timeout=5, trust_env=False)
    except httpx.HTTPError as error:
        return f"no answer from {url} ({type(error).__name__})"
    # A request without credentials is refused, with S3's own error document.
    return None if b"<Error>" in answer.content else f"{url} does not answer as S3"


# --- all parts, in the order in which they start --------------------------------------------------

PINOT = (
    StackPart("zookeeper", "pinot", ("client",), (), _zookeeper_arguments, _zookeeper_missing),
    StackPart("controller", "pinot", ("http",), ("zookeeper",), _controller_arguments, _controller_missing),
    *(
        StackPart(
            name,
            "pinot",
            ("http",),
            ("controller",),
            partial(_broker_arguments, name),
            partial(_broker_missing, name),
        )
        for name in BROKERS
    ),
    *(
        StackPart(
            name,
            "pinot",
            ("netty", "admin", "grpc"),
            ("controller",),
            partial(_server_arguments, name),
            partial(_server_missing, name),
        )
        for name in SERVERS
    ),
)
KAFKA = StackPart("kafka", "kafka", ("client", "quorum"), (), _kafka_arguments, _kafka_missing)
S3 = StackPart("s3", "s3", ("http",), (), _s3_arguments, _s3_missing)
ALL = (*PINOT, KAFKA, S3)
