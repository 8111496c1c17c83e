"""ZooKeeper and Pinot as parts of the local stack: their configuration, and when they are ready.

Everything listens on 127.0.0.1 but for two doors of a Pinot server that bind to all interfaces whatever they
are told: its query port (`QueryServer` calls `bind(port)`) and its gRPC port (`NettyServerBuilder.forPort`).
"""

from __future__ import annotations

import socket
from pathlib import Path

import httpx

from pinot_assets.core.untrusted import fields_of_json, listed
from pinot_assets.local.helix import owner_of
from pinot_assets.local.part import SMALL_JVM, Site, StackPart
from pinot_assets.settings.local_stack import BROKERS, CLUSTER, LOOPBACK, SERVERS

_LOG4J = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.xml')}"
# What Pinot's own start script opens for the newer versions that PINOT_HOME may name.
_OPENS = tuple(
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in (
        "java.nio",
        "sun.nio.ch",
        "java.lang",
        "java.util",
        "java.lang.reflect",
        "sun.util.calendar",
    )
)


# For the multi-stage engine, which nothing here uses, 1.5 opens one door more on each broker and two on each
# server, at random ports and on all interfaces (`GrpcMailboxServer`, `QueryServer` of pinot-query-runtime).
_ONE_STAGE: dict[str, object] = {"pinot.multistage.engine.enabled": "false"}


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
        "-Dzookeeper.forceSync=no",  # survives any end of the process, not one of the machine
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
        *_OPENS,
        _LOG4J,
        "org.apache.pinot.tools.admin.PinotAdministrator",
        command,
        "-configFileName",
        config,
    ]


def _http(prefix: str, port: int) -> dict[str, object]:
    """One HTTP listener on loopback; Pinot's plain port settings bind to all interfaces."""
    return {
        f"{prefix}.access.protocols": "http",
        f"{prefix}.access.protocols.http.host": LOOPBACK,
        f"{prefix}.access.protocols.http.port": port,
    }


def _s3(prefix: str, site: Site) -> dict[str, object]:
    """Segments may lie on the S3 part, which may start later than Pinot."""
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
        # Without these the download URLs of a local deep store read http://127.0.0.1:null/segments/…
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


def _broker_arguments(site: Site, name: str) -> list[str]:
    settings: dict[str, object] = {
        "pinot.cluster.name": CLUSTER,
        "pinot.zk.server": _zookeeper_address(site),
        "pinot.broker.hostname": LOOPBACK,
        **_http("pinot.broker.client", site.port(name, "http")),
        "pinot.broker.delayShutdownTimeMs": 0,
        **_ONE_STAGE,
    }
    return _pinot_arguments("StartBroker", site.write(f"{name}.properties", settings))


def _broker_missing(site: Site, name: str) -> str | None:
    port = site.port(name, "http")
    return _not_ok(f"http://{LOOPBACK}:{port}/health") or _not_registered(
        site, f"Broker_{LOOPBACK}_{port}", "DefaultTenant_BROKER"
    )


def _server_arguments(site: Site, name: str) -> list[str]:
    settings: dict[str, object] = {
        "pinot.cluster.name": CLUSTER,
        "pinot.zk.server": _zookeeper_address(site),
        "pinot.server.netty.host": LOOPBACK,  # what is advertised; it binds to all interfaces
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
        **_segment_store(site),
    }
    return _pinot_arguments("StartServer", site.write(f"{name}.properties", settings))


def _segment_store(site: Site) -> dict[str, object]:
    """Where servers put committed segments themselves: the controller's data directory, as a URI."""
    if not site.record.segment_store:
        return {}
    return {"pinot.server.instance.segment.store.uri": site.data("controller").as_uri()}


def _server_missing(site: Site, name: str) -> str | None:
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
    """A table can only be created once brokers and servers are tagged for its tenant; and a live instance
    counts only when it is this very process, not a dead one that ZooKeeper still remembers.
    """
    controller = f"http://{LOOPBACK}:{site.port('controller', 'http')}"
    try:
        with httpx.Client(base_url=controller, timeout=5, trust_env=False) as client:
            known = client.get(f"/instances/{instance}")
            live = client.get("/zk/get", params={"path": f"/{CLUSTER}/LIVEINSTANCES/{instance}"})
    except httpx.HTTPError as error:
        return f"the controller cannot be asked about {instance} ({type(error).__name__})"
    if known.status_code != 200 or not _is_tagged(known.content, tag):
        return f"the controller does not know {instance} with the tag {tag}"
    if live.status_code != 200:
        return f"{instance} is not live"
    try:
        owner = owner_of(live.content)
    except ValueError:
        return f"{instance} is live, but the controller does not say as which process"
    return None if owner.split("@")[0] == str(site.pid) else f"{instance} is still taken by process {owner}"


def _is_tagged(instance: bytes, tag: str) -> bool:
    try:
        return tag in listed(fields_of_json(instance).get("tags"))
    except ValueError:
        return False


# --- in the order in which they start -------------------------------------------------------------


def _broker(name: str) -> StackPart:
    return StackPart(
        name,
        "pinot",
        ("http",),
        ("controller",),
        lambda site: _broker_arguments(site, name),
        lambda site: _broker_missing(site, name),
    )


def _server(name: str) -> StackPart:
    return StackPart(
        name,
        "pinot",
        ("netty", "admin", "grpc"),
        ("controller",),
        lambda site: _server_arguments(site, name),
        lambda site: _server_missing(site, name),
    )


PINOT = (
    StackPart("zookeeper", "pinot", ("client",), (), _zookeeper_arguments, _zookeeper_missing),
    StackPart("controller", "pinot", ("http",), ("zookeeper",), _controller_arguments, _controller_missing),
    *(_broker(name) for name in BROKERS),
    *(_server(name) for name in SERVERS),
)
