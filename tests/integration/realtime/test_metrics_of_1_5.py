"""Pinot's own metrics, as Prometheus' JMX exporter tells them of a controller and servers of 1.5.1.

All of them are told of one segment that no server can build, and that none can re-ingest either.
"""

from __future__ import annotations

import httpx
import pytest
from fakes.pauseless.kills import GIVES_UP_SOON
from fakes.pauseless.servers import PauselessCluster
from fakes.pauseless.table import Rows, committing, rows_table

from pinot_assets.realtime.health.metrics import Exported, Metric, Origin, metrics, read_exporters

pytestmark = pytest.mark.integration

ROWS = {"realtime.segment.flush.threshold.rows": "1000"}
GAUGES = {
    "pauselessConsumptionEnabled": 1,
    "segmentsInErrorState": 2,  # replicas
    "pauselessSegmentsInErrorCount": 1,
    "pauselessSegmentsInUnrecoverableErrorCount": 0,
}
"""Of one segment that nobody has."""


def exported(rows: Rows) -> Exported:
    assert rows.cluster.exporters is not None
    return read_exporters(rows.cluster.exporters.addresses.values())


def exporter_values(rows: Rows) -> dict[str, float]:
    """Of what an exporter tells: name → value."""
    read: tuple[Metric, ...] = metrics(rows.look(), exported(rows))
    return {one.name: one.value or 0.0 for one in read if one.origin is Origin.EXPORTER}


def run_task(rows: Rows, name: str) -> None:
    """A periodic task of the controller, now."""
    params = {"taskname": name, "tableName": rows.name, "type": "REALTIME"}
    url = f"{rows.cluster.controller_url}/periodictask/run"
    httpx.get(url, params=params, timeout=30, trust_env=False).raise_for_status()


def test_every_metric_is_read_under_its_real_name(whole: PauselessCluster) -> None:
    with rows_table(whole, partitions=1, **ROWS, **GIVES_UP_SOON) as rows:
        for server in whole.servers:
            server.fail_builds()
        rows.send(1_500)

        rows.until(lambda _: exporter_values(rows).get("segmentBuildFailure", 0) >= 1)
        assert exporter_values(rows)["pauselessConsumptionEnabled"] == 1
        ours = {sample.name for sample in exported(rows).samples if sample.labels.get("table") == rows.name}
        assert ours >= {
            "pinot_controller_pauselessConsumptionEnabled_Value",
            "pinot_server_pauselessConsumptionEnabled_Value",
        }

        failed = rows.until(lambda state: [len(s.in_state("ERROR")) for s in committing(state)] == [2])
        assert "segmentReingestionFailure" not in exporter_values(rows)
        run_task(rows, "SegmentStatusChecker")
        run_task(rows, "RealtimeSegmentValidationManager")  # it has the segment re-ingested, too
        rows.until(lambda _: exporter_values(rows).get("segmentReingestionFailure", 0) >= 1)
        rows.until(lambda _: exporter_values(rows).items() >= GAUGES.items())

        # Where no exporter listens, the same numbers are derived.
        assert {one.name: one.value for one in metrics(failed) if one.name in GAUGES} == GAUGES
        assert exported(rows).silent == {}
