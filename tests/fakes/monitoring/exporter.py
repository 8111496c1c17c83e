"""Prometheus' JMX exporter in the JVMs of a cluster: the agent that Pinot's own images start."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pinot_assets.local import jars

_HERE = Path(__file__).parent
RULES = _HERE / "exporter.yml"


@dataclass
class Exporters:
    """One in each JVM that is started with its argument.

    :ivar addresses: name of a process → where its metrics are, as `realtime health --exporter` takes it.
    """

    rules: Path = RULES
    addresses: dict[str, str] = field(default_factory=dict)

    def argument(self, process: str, port: int) -> str:
        """What a JVM is started with."""
        (jar,) = jars.resolve_jars(_HERE / "exporter.xml")
        self.addresses[process] = f"http://127.0.0.1:{port}"
        return f"-javaagent:{jar}=127.0.0.1:{port}:{self.rules}"
