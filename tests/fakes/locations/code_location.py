"""A table of the code location as tests drive it: runs, ticks, and what queries see."""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import dagster as dg
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest
from fakes.tables import write_files, write_table

from pinot_assets.assets.history import STAGED
from pinot_assets.assets.keys import partitions_name
from pinot_assets.assets.partitions import ALL_FILES
from pinot_assets.code_location import build_table_definitions
from pinot_assets.core.untrusted import typed
from pinot_assets.definitions import build_definitions
from pinot_assets.pinot import HttpPinotClient, NoResult
from pinot_assets.resources import PinotResource
from pinot_assets.session.detect.observe import Observation, observe
from pinot_assets.session.stores.clients import open_session_store, open_staging
from pinot_assets.settings.environment import load_settings
from pinot_assets.table_spec import TableSpec

_numbers = itertools.count()
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class LocationTable:
    """One table of the code location."""

    def __init__(self, folder: Path, pinot: HttpPinotClient, instance: dg.DagsterInstance) -> None:
        self.folder = folder
        self.instance = instance
        self.pinot = pinot
        self.name = f"dagster_{time.time_ns()}_{next(_numbers)}"
        self.spec: TableSpec = write_table(folder, self.name)

    def write(self, **values: str) -> None:
        write_files(self.folder, **values)

    def corrupt(self, name: str) -> None:
        (self.folder / "source" / f"{name}.csv").write_bytes(b"v\n\xff\xfe broken \xff\n")

    @property
    def definitions(self) -> dg.Definitions:
        return build_definitions(self.folder / "tables")

    def key(self, name: str) -> dg.AssetKey:
        """One of its assets, or the table itself by its name."""
        return dg.AssetKey([self.name] if name == self.name else [self.name, name])

    def run(self) -> dg.ExecuteInProcessResult:
        """The job that the sensor starts."""
        self.instance.add_dynamic_partitions(partitions_name(self.spec), [ALL_FILES])
        job = self.definitions.resolve_job_def(f"{self.name}_ingest")
        return job.execute_in_process(
            instance=self.instance, raise_on_error=False, run_config=QUIET, partition_key=ALL_FILES
        )

    def publish(self) -> dg.ExecuteInProcessResult:
        """A run that must succeed."""
        result = self.run()
        assert result.success, [said(event) for event in failures(result)]
        return result

    def materialize(
        self,
        selection: dg.AssetSelection,
        partition: str | None = ALL_FILES,
        tags: Mapping[str, str] | None = None,
        check: dg.AssetChecksDefinition | None = None,
    ) -> dg.ExecuteInProcessResult:
        """Some of the assets, as a person may choose them.

        :param check: stands where the gate does.
        """
        self.instance.add_dynamic_partitions(partitions_name(self.spec), [ALL_FILES])
        table = build_table_definitions(self.spec)
        gate, *_ = table.asset_checks or ()
        return dg.materialize(
            [*cast(Sequence[dg.AssetsDefinition | dg.AssetSpec], table.assets), check or gate],
            selection=selection,
            resources=self.definitions.resources,
            instance=self.instance,
            raise_on_error=False,
            run_config=QUIET,
            partition_key=partition,
            tags=tags,
        )

    def elsewhere(self, instance: dg.DagsterInstance) -> LocationTable:
        """The same table in another code location, of another Dagster."""
        other = copy.copy(self)
        other.instance = instance
        return other

    def tick(self, cursor: str | None = None) -> dg.SensorExecutionData:
        definitions = self.definitions
        with dg.build_sensor_context(
            instance=self.instance,
            cursor=cursor,
            definitions=definitions,
            resources={"pinot": PinotResource()},
        ) as context:
            return definitions.resolve_sensor_def(f"{self.name}_files").evaluate_tick(context)

    def observe(self) -> Observation:
        with open_session_store(self.spec, load_settings()) as store:
            return observe(store, open_staging(self.spec))

    def stale_statuses(self, name: str, partitions: Sequence[str | None] = (None,)) -> dict[str | None, str]:
        """What the page of an asset says of each partition, or of the whole: FRESH, STALE or MISSING."""
        graph = self.definitions.resolve_asset_graph()
        resolver = CachingStaleStatusResolver(self.instance, graph, LoadingContextForTest(self.instance))
        return {p: str(resolver.get_status(self.key(name), p).name) for p in partitions}

    @property
    def epoch(self) -> int:
        return self.observe().pointer.epoch

    def shown(self) -> list[str]:
        """The values that queries see: the same at every broker, each as often as it is there."""
        sql = f'SELECT v, COUNT(*) FROM "{self.name}" GROUP BY v LIMIT 1000'
        values: list[list[str]] = []
        for url in self.pinot.brokers(self.name):
            try:
                rows = self.pinot.broker(url).query(sql).rows
            except NoResult:  # a table without segments
                rows = ()
            values.append(sorted(str(v) for v, count in rows for _ in range(typed(count, int))))
        assert len(values) == 2
        assert values[0] == values[1]
        return values[0]

    def evaluation(self, result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
        """The gate's own evaluation in a run; after a switch there is another, of what was published."""
        evaluation, *later = gate_evaluations(result)
        assert [e.description for e in later] == ["passed, and switched"] * len(later[:1])
        assert evaluation.check_name == "consistent_push"
        return evaluation


def gate_evaluations(result: dg.ExecuteInProcessResult) -> list[dg.AssetCheckEvaluation]:
    """All evaluations of a run but those of the table's status."""
    return [one for one in result.get_asset_check_evaluations() if one.check_name != "status"]


def materializations(result: dg.ExecuteInProcessResult, name: str) -> list[dg.AssetMaterialization]:
    events = [event.materialization for event in result.get_asset_materialization_events()]
    return [m for m in events if m.asset_key.path[-1] == name]


def observations(result: dg.ExecuteInProcessResult, name: str) -> list[dg.AssetObservation]:
    events = [
        event.asset_observation_data.asset_observation for event in result.get_asset_observation_events()
    ]
    return [o for o in events if o.asset_key.path[-1] == name]


def staged_and_published(
    result: dg.ExecuteInProcessResult,
) -> tuple[dict[str, dg.AssetMaterialization], dict[str, dg.AssetMaterialization]]:
    """Materializations of partitions of `segments`, as built and as published."""
    staged: dict[str, dg.AssetMaterialization] = {}
    published: dict[str, dg.AssetMaterialization] = {}
    for event in materializations(result, "segments"):
        assert event.partition is not None
        assert event.tags is not None
        is_staged = event.tags["dagster/data_version"].startswith(STAGED)
        (staged if is_staged else published)[event.partition] = event
    return staged, published


class HasValue(Protocol):
    """What Dagster's metadata values have in common."""

    @property
    def value(self) -> object: ...


def values(metadata: Mapping[str, HasValue]) -> dict[str, object]:
    return {key: value.value for key, value in metadata.items()}


def failures(result: dg.ExecuteInProcessResult) -> list[dg.DagsterEvent]:
    return [event for event in result.all_events if event.is_failure]


def said(event: dg.DagsterEvent) -> str:
    """The message at the root of a failure."""
    data: Any = event.event_specific_data
    error = data.error
    while error.cause is not None:
        error = error.cause
    return str(error.message)


def failure(result: dg.ExecuteInProcessResult) -> str:
    """What the one step that failed says."""
    (event,) = result.get_step_failure_events()
    return said(event)
