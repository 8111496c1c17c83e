"""The jobs of a REALTIME table turn pauseless on and off on Pinot 1.5.1, and its checks see a dead server."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
import yaml
from fakes.pauseless.kills import SMALL
from fakes.pauseless.servers import PauselessCluster
from fakes.pauseless.table import Rows, rows_table
from fakes.realtime.kafka_table import schema

from pinot_assets.assets.location_jobs import run_config
from pinot_assets.code_location import build_location_definitions, build_realtime_definitions
from pinot_assets.errors import SpecDrift
from pinot_assets.realtime.health.all_checks import CHECKS
from pinot_assets.resources import PinotResource
from pinot_assets.table_spec import RealtimeTableSpec, load_tables

pytestmark = pytest.mark.integration


class Jobs:
    """The table's jobs, as a code location has them whose spec says that about pauseless."""

    def __init__(self, rows: Rows, folder: Path, instance: dg.DagsterInstance, *, pauseless: bool) -> None:
        self._instance = instance
        spec = _spec(rows, folder / str(pauseless), pauseless)
        self._asset, self._table = spec.asset_name, spec.name_with_type
        pinot = PinotResource(
            controller_url=rows.cluster.controller_url,
            zookeeper=rows.cluster.zookeeper,
            cluster=rows.cluster.cluster,
            broker_urls=list(rows.cluster.query_urls),
        )
        self._located = dg.Definitions.merge(
            build_realtime_definitions(spec),
            build_location_definitions([spec]),
            dg.Definitions(resources={"pinot": pinot}),
        )

    def run(self, operation: str, **config: object) -> dg.ExecuteInProcessResult:
        """Run one, to its end."""
        name = operation if operation == "health" else f"realtime_{operation}"
        return self._located.resolve_job_def(f"pinot_{name}").execute_in_process(
            run_config=run_config(name, self._table, **config), instance=self._instance
        )

    def unwell(self) -> set[str]:
        """Checks that find something wrong, by a run of the health job."""
        answers = self.run("health").get_asset_check_evaluations()
        assert {answer.check_name for answer in answers} == {check.name for check in CHECKS}
        return {answer.check_name for answer in answers if not answer.passed}

    @property
    def numbers(self) -> dict[str, object]:
        """What the last look saw."""
        (record,) = self._instance.fetch_observations(dg.AssetKey([self._asset]), limit=1).records
        assert record.asset_observation is not None
        return {name: value.value for name, value in record.asset_observation.metadata.items()}


def _spec(rows: Rows, folder: Path, pauseless: bool) -> RealtimeTableSpec:
    with rows.cluster.pinot() as pinot:
        config = pinot.table_config(rows.table)
    assert config is not None
    config["ingestionConfig"]["streamIngestionConfig"].pop("pauselessConsumptionEnabled", None)
    whole = {
        "schema": schema(rows.name),
        "table": {**config, "tenants": {}, "metadata": {}},
        "realtime": {"pauselessConsumptionEnabled": pauseless},
    }
    folder.mkdir(exist_ok=True)
    (folder / "rows.yaml").write_text(yaml.safe_dump(whole))
    return load_tables(folder).realtime[rows.name]


@pytest.mark.usefixtures("code_allowed")
def test_on_and_off_by_jobs(whole: PauselessCluster, tmp_path: Path) -> None:
    with (
        rows_table(whole, pauseless=False, **SMALL) as rows,
        dg.DagsterInstance.ephemeral() as instance,
    ):
        on = Jobs(rows, tmp_path, instance, pauseless=True)
        off = Jobs(rows, tmp_path, instance, pauseless=False)
        rows.send(3_000)
        rows.until_all_found()
        with pytest.raises(SpecDrift, match="does not set pauseless consumption on"):
            off.run("pauseless_enable", patience=400)

        on.run("preflight")
        on.run("pauseless_enable", patience=400)
        assert rows.look().settings.pauseless
        rows.send(5_000)
        rows.until_all_found()
        rows.until_well()
        assert on.unwell() == set()
        assert on.numbers["rows_queryable"] == 8_000

        victim = whole.servers[0]
        victim.kill()
        rows.until(lambda state: not state.servers[victim.name].alive)
        assert "servers" in on.unwell()
        whole.start(victim)
        rows.until_well()

        off.run("pauseless_disable", patience=400)
        assert not rows.look().settings.pauseless
        rows.until_all_found()
        rows.until_well()
