"""The demo's Dagster: the shipped code location on a directory of tables of its own, and one instance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
from dagster._core.definitions.data_version import DATA_VERSION_TAG

from pinot_assets.assets.history import STAGED
from pinot_assets.assets.partitions import ALL_FILES
from pinot_assets.core.json_object import JsonObject
from pinot_assets.definitions import build_definitions
from pinot_assets.errors import PinotAssetsError
from pinot_assets.resources import PinotResource


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run of the table's job.

    :ivar segments: what the trigger said of the whole table, empty when there was nothing to do.
    :ivar gate: whether the check `consistent_push` passed, None when it did not run.
    :ivar gate_text: what the check said.
    :ivar snapshot: metadata of the `snapshot` asset, empty when it was not switched.
    """

    success: bool
    segments: JsonObject
    built: tuple[str, ...]
    gate: bool | None
    gate_text: str
    snapshot: JsonObject


class Location:
    """Runs the table's job and its files sensor as Dagster does.

    :param tables: directory of table specs; read again at every use, as a reload does.
    """

    def __init__(self, tables: Path, table: str, instance: dg.DagsterInstance) -> None:
        self._tables = tables
        self._table = table
        self._instance = instance
        self._cursor: str | None = None

    def tick(self) -> tuple[bool, str]:
        """One evaluation of the files sensor: whether it asks for a run, and what it says."""
        definitions = build_definitions(self._tables)
        sensor = definitions.resolve_sensor_def(f"{self._table}_files")
        context = dg.build_sensor_context(
            instance=self._instance,
            cursor=self._cursor,
            definitions=definitions,
            resources={"pinot": PinotResource()},
        )
        result = sensor.evaluate_tick(context)
        self._cursor = result.cursor
        if result.run_requests:
            return True, result.run_requests[0].tags["pinot/tick"]
        return False, result.skip_message or ""

    def run(self) -> JobRun:
        """One run of the job `<table>_ingest`, to its end."""
        job = build_definitions(self._tables).resolve_job_def(f"{self._table}_ingest")
        self._instance.add_dynamic_partitions(f"{self._table}_files", [ALL_FILES])
        result = job.execute_in_process(
            # The story is told by the demo; the events are in the instance.
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            instance=self._instance,
            partition_key=ALL_FILES,
            raise_on_error=False,
        )
        observed = [e.asset_observation_data.asset_observation for e in result.get_asset_observation_events()]
        made = [event.materialization for event in result.get_asset_materialization_events()]
        built = (
            str(one.partition)
            for one in made
            if one.asset_key.path[-1] != "snapshot"
            if (one.tags or {}).get(DATA_VERSION_TAG, "").startswith(STAGED)
        )
        checks = result.get_asset_check_evaluations()
        if not result.success and not checks:
            failures = [e.step_failure_data.error_display_string for e in result.get_step_failure_events()]
            raise PinotAssetsError("the run failed", why=(failures or ["no step ran"])[0])
        return JobRun(
            success=result.success,
            segments=_values(observed, "segments"),
            built=tuple(sorted(built)),
            gate=checks[0].passed if checks else None,
            gate_text=(checks[0].description or "") if checks else "",
            snapshot=_values(made, "snapshot"),
        )


def _values(events: Sequence[dg.AssetMaterialization | dg.AssetObservation], asset: str) -> JsonObject:
    """Metadata of the event of an asset."""
    of_asset = (event for event in events if event.asset_key.path[-1] == asset)
    return {key: value.value for event in of_asset for key, value in event.metadata.items()}
