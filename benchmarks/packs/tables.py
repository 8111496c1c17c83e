"""Tables of csv files that benchmarks publish, on a local Pinot of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from measure import TELL, Meter

from pinot_assets.core.json_object import JsonObject
from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.pinot import HttpPinotClient
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.clients import open_clients
from pinot_assets.settings.environment import load_settings
from pinot_assets.table_spec import load_table
from pinot_assets.table_spec.tables.apply import apply_plan, plan_apply


@contextmanager
def local_stack(prefix: str) -> Iterator[Path]:
    """Start a Pinot whose processes are not this one's; yields a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=prefix) as name:
        home = Path(name) / "stack"
        command = [sys.executable, "-m", "pinot_assets", "local"]
        subprocess.run([*command, "up", "--home", str(home)], check=True, capture_output=True)
        os.environ["PINOT_ASSETS_HOME"] = str(home)
        try:
            yield Path(name)
        finally:
            subprocess.run(
                [*command, "down", "--purge", "--home", str(home)], check=True, capture_output=True
            )


@dataclass(frozen=True)
class Run:
    """One run of a table.

    :ivar cpu: seconds of this process and of its Spark.
    :ivar read: files that were read.
    """

    cpu: float
    seconds: float
    read: int
    segments: frozenset[str]


class Table:
    """A table of csv files.

    :param document: its table spec.
    """

    def __init__(self, folder: Path, builder: SparkBuilder, document: JsonObject) -> None:
        self.name, self._builder = document["table"]["tableName"], builder
        path = folder / f"{self.name}.yaml"
        path.write_text(yaml.safe_dump(document))
        self._spec = load_table(path)
        with HttpPinotClient(load_settings().pinot) as pinot:
            apply_plan(plan_apply(self._spec, pinot), pinot)

    def run(self) -> Run:
        """Publish the source as it is."""
        meter = Meter()
        with (
            open_clients(self._spec, load_settings(), self._builder) as clients,
            Driver(self._spec, clients, "bench") as driver,
        ):
            report = driver.trigger()
            _, findings = driver.audit()
            assert not [finding for finding in findings if finding.blocks], findings
            driver.publish()
        cost = meter.read()
        with HttpPinotClient(load_settings().pinot) as pinot:
            segments = pinot.visible_segments(f"{self.name}_OFFLINE")
        TELL.print(
            f"{time.strftime('%H:%M:%S')} {self.name}: {len(report.built):,} files read, {cost.wall:.0f} s"
        )
        return Run(cost.cpu, cost.wall, len(report.built), segments)


@dataclass(frozen=True)
class Columns:
    """Columns of csv files, with their data types."""

    dimensions: Mapping[str, str]
    metrics: Mapping[str, str]
    times: Mapping[str, str] = field(default_factory=dict)
    raw: tuple[str, ...] = ("token",)

    def document(self, folder: Path, name: str, source: Path) -> JsonObject:
        """Return the table spec of a sync table with these columns."""
        times = [
            {
                "name": column,
                "dataType": kind,
                "format": "1:MILLISECONDS:EPOCH",
                "granularity": "1:MILLISECONDS",
            }
            for column, kind in self.times.items()
        ]
        return {
            "schema": {
                "schemaName": name,
                "dimensionFieldSpecs": _fields(self.dimensions),
                "metricFieldSpecs": _fields(self.metrics),
                **({"dateTimeFieldSpecs": times} if times else {}),
            },
            "table": {
                "tableName": name,
                "tableType": "OFFLINE",
                "segmentsConfig": {"replication": "1"},
                "tenants": {},
                "tableIndexConfig": {"loadMode": "MMAP", "noDictionaryColumns": [*self.raw]},
                "ingestionConfig": {
                    "batchIngestionConfig": {
                        "segmentIngestionType": "REFRESH",
                        "segmentIngestionFrequency": "DAILY",
                    }
                },
                "metadata": {},
            },
            "fileIngestion": {
                "inputDirURI": str(source),
                "inputFormat": "csv",
                "output.segment.dir.uri": str(folder / "staging"),
                "consistentPushEnabled": True,
                "ingestionMode": "sync",
            },
        }


def _fields(types: Mapping[str, str]) -> list[JsonObject]:
    return [{"name": name, "dataType": kind} for name, kind in types.items()]
