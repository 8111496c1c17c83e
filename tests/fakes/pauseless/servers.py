"""Servers that consume: a real controller of Pinot 1.5.1, its real data managers, and a real Kafka.

Pinot's own server is not on Maven Central from 0.12 on. What it is made of is: `server` beside this module
has the little that is missing (a Helix participant, its HTTP endpoint, a client of Kafka), so every commit,
download, re-ingestion and query here is Pinot's own code at work.

Each server builds its segments behind a gate. A pauseless segment that is to be built is COMMITTING already,
so a test that shuts the gate has all the time in the world to look at it, or to kill its server.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
from fakes.monitoring.exporter import Exporters
from fakes.pinot.controller import CLUSTER, RealController, starts
from fakes.realtime.operator_client import OperatorClient

from pinot_assets.core.connections import PinotConnection
from pinot_assets.core.this_machine import find_java
from pinot_assets.local import jars
from pinot_assets.local.parts import KAFKA, Site
from pinot_assets.settings.local_stack import ProcessRecord, Record

_HERE = Path(__file__).parent
_KAFKA_POM = Path(jars.__file__).with_name("kafka.xml")
_SESSION_MS = 10_000
"""After that long without a word, ZooKeeper takes a server for dead."""


@dataclass
class Server:
    """One server.

    :ivar name: instance name.
    :ivar gate: folder of its gate, see `Gate.java`.
    :ivar process: None while it is dead.
    """

    name: str
    port: int
    admin_port: int
    home: Path
    process: psutil.Process | None = None

    @property
    def gate(self) -> Path:
        return self.home / "gate"

    @property
    def log(self) -> Path:
        return self.home.with_suffix(".log")

    @property
    def admin_url(self) -> str:
        return f"http://127.0.0.1:{self.admin_port}"

    def hold_builds(self) -> None:
        """From now on it builds no segment."""
        (self.gate / "hold-builds").touch()

    def hold_commits(self) -> None:
        """From now on it builds no segment that it is to commit; what another one commits it builds."""
        (self.gate / "hold-commits").touch()

    def fail_builds(self) -> None:
        """From now on no build of it succeeds, nor one of what it re-ingests."""
        (self.gate / "fail-builds").touch()

    def open_gate(self) -> None:
        """Build what waits, and go on."""
        for path in self.gate.iterdir():
            path.unlink()

    @property
    def committing(self) -> frozenset[str]:
        """Segments that it is to commit, which wait at its gate."""
        marks = (path.name.partition(".") for path in self.gate.iterdir())
        return frozenset(segment for mark, _, segment in marks if mark == "committing")

    def kill(self) -> None:
        """-9."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)
        self.process = None


class PauselessCluster(RealController):
    """Kafka, a controller, two servers. Starts in its constructor. Close it, or use it in a `with`.

    :ivar kafka_bootstrap: `host:port`.
    :ivar servers: two.
    :ivar deep_store: the controller's data folder, which the servers upload to if they know it.
    :ivar stored: whether servers that are started from now on know it.
    :ivar stream: what a table's stream config says of the plug-ins.
    :ivar exporters: in its processes, from the start, if there are to be any.
    """

    _server_main: Sequence[str] = ("server.ServerMain",)
    stream: Mapping[str, str] = {
        "stream.kafka.consumer.factory.class.name": "server.KafkaStream",
        "stream.kafka.decoder.class.name": "server.JsonDecoder",
    }

    def __init__(self, home: Path, *, stored: bool = True, exporters: Exporters | None = None) -> None:
        """Start it."""
        self.stored = stored
        self.exporters = exporters
        self._classes = home / "classes"
        self.deep_store = home / "data"
        super().__init__(home)

    def _jars(self) -> Sequence[Path]:
        client = [jar for jar in jars.resolve_jars(_KAFKA_POM) if "kafka-clients" in jar.name]
        return self._with_sources([*super()._jars(), *client], "*.java")

    def _with_sources(self, needed: Sequence[Path], pattern: str) -> Sequence[Path]:
        """Compile those of `server` beside this module against the jars that they need; they come first."""
        javac = find_java().executable.resolve().with_name("javac")
        quiet = ["-proc:none", "-Xlint:none", "-nowarn"]
        class_path = os.pathsep.join(map(str, needed))
        sources = sorted((_HERE / "server").glob(pattern))
        options = ["--release", "17", *quiet, "-cp", class_path]
        command: list[str | Path] = [javac, *options, "-d", self._classes, *sources]
        completed = subprocess.run(command, capture_output=True, text=True, check=False)
        assert completed.returncode == 0, completed.stderr
        return [self._classes, *needed]

    def _start(self) -> None:
        site = Site(self._home, Record(ports={"kafka": {"client": self._port(), "quorum": self._port()}}))
        self.kafka_bootstrap = f"127.0.0.1:{site.port('kafka', 'client')}"
        self._spawn("kafka", jars.resolve_jars(_KAFKA_POM), KAFKA.arguments(site))
        super()._start()
        self._start_broker()
        self.servers = [self._server(number) for number in (1, 2)]
        for server in self.servers:
            self.start(server)
        self._await("Kafka", lambda: KAFKA.missing(site) is None)
        self.until_ready()

    def _run(self, name: str, main: Sequence[str], settings: Mapping[str, object]) -> ProcessRecord:
        agent = [self.exporters.argument(name, self._port())] if self.exporters else []
        return super()._run(name, [*agent, *main], settings)

    def _start_broker(self) -> None:
        self._opened.enter_context(self._broker())

    def _server(self, number: int) -> Server:
        port, admin = self._port(), self._port()
        server = Server(f"Server_127.0.0.1_{port}", port, admin, self._home / f"server-{number}")
        server.gate.mkdir(parents=True)
        return server

    def start(self, server: Server) -> None:
        """Start a server that is dead; it is not ready yet."""
        assert server.process is None
        main = [f"-Dzk.session.timeout={_SESSION_MS}", *self._server_main]
        started = self._run(server.home.name, main, self._settings(server))
        server.process = psutil.Process(started.pid)

    def until_ready(self) -> None:
        """Wait for every server that runs: all its segments are loaded, or failed."""
        for server in self.servers:
            if server.process is not None:
                self._await(server.name, partial(self._answers, server.admin_url))

    def _settings(self, server: Server) -> dict[str, object]:
        instance = "pinot.server.instance"
        store = {f"{instance}.segment.store.uri": self.deep_store.as_uri()} if self.stored else {}
        return {
            "pinot.cluster.name": CLUSTER,
            "pinot.zk.server": self.zookeeper,
            "pinot.server.netty.port": server.port,
            "pinot.server.adminapi.access.protocols.http.port": server.admin_port,
            f"{instance}.dataDir": server.home / "segments",
            f"{instance}.segmentTarDir": server.home / "tars",
            f"{instance}.gate": server.gate,
            **store,
        }

    @property
    def live(self) -> list[Server]:
        """Those that were not killed."""
        return [server for server in self.servers if server.process is not None]

    @property
    def query_urls(self) -> tuple[str, ...]:
        """Who answers queries: each server that lives, from what it has, as a broker would."""
        return tuple(server.admin_url for server in self.live)

    @contextmanager
    def pinot(self) -> Iterator[OperatorClient]:
        """The clients of it."""
        with OperatorClient(PinotConnection(self.controller_url, broker_urls=self.query_urls)) as pinot:
            yield pinot


class WholePauselessCluster(PauselessCluster):
    """The same with servers and a broker of an unpacked distribution, 1.4 or newer, that `PINOT_HOME` names.

    Only the gate is ours: it is the plug-in `pinot.server.instance.table.data.manager.provider.class`.
    """

    release = property(lambda self: jars.find_pinot().version.partition("-")[0])
    _server_main = starts("org.apache.pinot.server.starter.helix.HelixServerStarter")
    stream: Mapping[str, str] = {
        "stream.kafka.consumer.factory.class.name": (
            "org.apache.pinot.plugin.stream.kafka30.KafkaConsumerFactory"
        ),
        "stream.kafka.decoder.class.name": "org.apache.pinot.plugin.stream.kafka.KafkaJSONMessageDecoder",
    }

    def _jars(self) -> Sequence[Path]:
        return self._with_sources(jars.class_path("pinot"), "Gate*.java")

    def _start_broker(self) -> None:
        port = self._port()
        self._broker_url = f"http://127.0.0.1:{port}"
        settings = {
            "pinot.cluster.name": CLUSTER,
            "pinot.zk.server": self.zookeeper,
            "pinot.broker.hostname": "127.0.0.1",
            **_http("pinot.broker.client", port),
            **_ONE_STAGE,
        }
        self._run("broker", starts("org.apache.pinot.broker.broker.helix.HelixBrokerStarter"), settings)
        self._await("the broker", lambda: self._answers(self._broker_url))

    def _settings(self, server: Server) -> dict[str, object]:
        return {
            **super()._settings(server),
            "pinot.server.netty.host": "127.0.0.1",
            **_http("pinot.server.adminapi", server.admin_port),
            "pinot.server.grpc.enable": "false",
            "pinot.server.instance.table.data.manager.provider.class": "server.GatedTables",
            **_ONE_STAGE,
        }

    @property
    def query_urls(self) -> tuple[str, ...]:
        return (self._broker_url,)


_ONE_STAGE = {"pinot.multistage.engine.enabled": "false"}


def _http(prefix: str, port: int) -> dict[str, object]:
    return {
        f"{prefix}.access.protocols": "http",
        f"{prefix}.access.protocols.http.host": "127.0.0.1",
        f"{prefix}.access.protocols.http.port": port,
    }


def pauseless_cluster(
    home: Path, *, stored: bool = True, exporters: Exporters | None = None
) -> PauselessCluster:
    """Of the distribution that `PINOT_HOME` names if that can do it, else of what is on Maven Central."""
    whole = bool(os.environ.get("PINOT_HOME")) and _release(jars.find_pinot().version) >= (1, 4)
    return (WholePauselessCluster if whole else PauselessCluster)(home, stored=stored, exporters=exporters)


def _release(version: str) -> tuple[int, ...]:
    """Its first two numbers."""
    return tuple(map(int, version.split(".")[:2]))
