"""A real controller of Pinot 1.5.1, with stand-ins for the servers and brokers that Maven Central lacks.

Everything that the controller decides (lineage, assignment, retention, what it refuses) is Pinot's own;
the servers fetch and read segments (`fakes.pinot.stand_in_server`), the brokers only take Helix's messages.
Servers that consume from a stream are in `fakes.pauseless.servers`.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import httpx
import psutil
from fakes.pinot.participant import Participant
from fakes.pinot.stand_in_server import StandInServer
from fakes.zookeeper.door import ZookeeperDoor

from pinot_assets.core.this_machine import find_java
from pinot_assets.local import jars, processes
from pinot_assets.local.parts import OPENS, SMALL_JVM
from pinot_assets.settings.local_stack import ProcessRecord

CLUSTER = "pinot"
_HERE = Path(__file__).parent
_LOG4J = Path(jars.__file__).with_name("log4j2.xml")
_PATIENCE = 300.0  # a JVM on a machine that is busy with other tests


def starts(service: str) -> list[str]:
    """A JVM's arguments that start a controller, broker or server of Pinot.

    :param service: its class.
    """
    return [str(_HERE / "StarterMain.java"), service]


class RealController:
    """ZooKeeper and a controller. Starts in its constructor. Close it, or use it in a `with`.

    :ivar release: of the controller.
    :ivar controller_url: `http://host:port`.
    :ivar zookeeper: `host:port`, not through the door.
    :ivar door: what the controller's own calls to ZooKeeper pass.
    """

    cluster = CLUSTER
    release = "1.5.1"

    def __init__(self, home: Path) -> None:
        self._home = home
        self._class_path = self._jars()
        self._taken: set[int] = set()
        self._opened = ExitStack()
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _jars(self) -> Sequence[Path]:
        """What every process here has on its class path."""
        return jars.resolve_jars(_HERE / "controller.xml")

    def _port(self) -> int:
        self._taken.add(port := processes.free_port(self._taken))
        return port

    def _start(self) -> None:
        zookeeper, http = self._port(), self._port()
        self.zookeeper = f"127.0.0.1:{zookeeper}"
        self.controller_url = f"http://127.0.0.1:{http}"
        server = self._run(
            "zookeeper",
            [
                "-Dzookeeper.jmx.log4j.disable=true",
                "-Dzookeeper.forceSync=no",
                "org.apache.zookeeper.server.ZooKeeperServerMain",
            ],
            {
                "dataDir": self._home / "zookeeper",
                "clientPort": zookeeper,
                "clientPortAddress": "127.0.0.1",
                "admin.enableServer": "false",
                "4lw.commands.whitelist": "srvr",
                "tickTime": 1000,
                "maxSessionTimeout": 40_000,
                "maxClientCnxns": 0,
            },
        )
        self._await("ZooKeeper", self._zookeeper_answers, server)
        self.door = self._opened.enter_context(ZookeeperDoor(self.zookeeper))
        controller = self._run(
            "controller", starts("org.apache.pinot.controller.ControllerStarter"), self._controller(http)
        )
        self._await("the controller", lambda: self._answers(self.controller_url), controller)

    def _controller(self, http: int) -> dict[str, object]:
        return {
            "controller.helix.cluster.name": CLUSTER,
            "controller.zk.str": self.door.address,
            "controller.host": "127.0.0.1",
            "controller.access.protocols": "http",
            "controller.access.protocols.http.host": "127.0.0.1",
            "controller.access.protocols.http.port": http,
            # Without these a download URL names no port.
            "controller.vip.host": "127.0.0.1",
            "controller.vip.port": http,
            "controller.vip.protocol": "http",
            "controller.data.dir": self._home / "data",
            "controller.local.temp.dir": self._home / "temp",
            # Only when a test asks for them.
            "controller.retentionManager.initialDelayInSeconds": 86_400,
            "controller.realtime.segment.validation.initialDelayInSeconds": 86_400,
            # 1.6 does not count what was written in the last 10 minutes, unless told otherwise.
            "controller.statuschecker.waitForPushTimePeriod": "0s",
        }

    def _run(self, name: str, main: Sequence[str], settings: Mapping[str, object]) -> ProcessRecord:
        """Start a JVM that reads its settings from a file."""
        self._home.mkdir(parents=True, exist_ok=True)
        config = self._home / f"{name}.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        arguments = [
            "-Xmx384m", *SMALL_JVM, *OPENS, f"-Dlog4j2.configurationFile={_LOG4J}",
            # 1.5.1 leaves something there of every batch.
            f"-Djava.io.tmpdir={self._home}", *main, str(config),
        ]  # fmt: skip
        return self._spawn(name, self._class_path, arguments)

    def _spawn(self, name: str, class_path: Sequence[Path], arguments: Sequence[str]) -> ProcessRecord:
        """Start a JVM that ends with the cluster."""
        command = [str(find_java().executable), "-cp", ":".join(map(str, class_path)), *arguments]
        started = processes.spawn(command, self._home / f"{name}.log")
        self._opened.callback(processes.stop_processes, [psutil.Process(started.pid)], grace=10.0)
        return started

    def _broker(self) -> Participant:
        """A stand-in, without which the controller makes no table."""
        return Participant(
            self.zookeeper, CLUSTER, f"Broker_127.0.0.1_{self._port()}", ("DefaultTenant_BROKER",)
        )

    def _await(self, what: str, answers: Callable[[], bool], of: ProcessRecord | None = None) -> None:
        """Wait until it answers, as long as the process that shall answer runs."""
        until = time.monotonic() + _PATIENCE
        while not answers():
            waits = time.monotonic() < until and (of is None or processes.find(of) is not None)
            assert waits, f"{what} did not start, see the logs in {self._home}\n{self._last_words()}"
            time.sleep(0.3)

    def _last_words(self) -> str:
        """The ends of the logs, for who has not this machine's files."""
        logs = sorted(self._home.glob("*.log"))
        return "\n".join(f"--- {log.name}\n{processes.tail(log, lines=25)}" for log in logs)

    def _zookeeper_answers(self) -> bool:
        host, _, port = self.zookeeper.partition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=2) as door:
                door.sendall(b"srvr")
                return door.recv(4096).startswith(b"Zookeeper version")
        except OSError:
            return False

    @staticmethod
    def _answers(url: str) -> bool:
        try:
            reply = httpx.get(f"{url}/health", timeout=5, trust_env=False, verify=False)
        except httpx.HTTPError:
            return False
        return reply.status_code == 200

    def close(self) -> None:
        """Stop everything."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class ControllerCluster(RealController):
    """The same with two servers and two brokers that are stand-ins.

    :ivar servers: the servers.
    :ivar brokers: the brokers, with the messages that they were sent.
    """

    def _start(self) -> None:
        super()._start()
        self.servers = [
            self._opened.enter_context(StandInServer(self.zookeeper, CLUSTER, self._port())) for _ in range(2)
        ]
        self.brokers = [self._opened.enter_context(self._broker()) for _ in range(2)]
