"""A code location of plain Dagster with as many assets, checks, jobs and sensors as one of this project.

`location_scale.py` measures it as the floor: what Dagster itself takes for so many definitions. The variable
`BARE_TABLES` says for how many tables.
"""

import os
from collections.abc import Iterator

import dagster as dg

CHECKS = 11
JOBS = 6


def table(name: str) -> dg.Definitions:
    """Five assets with a gate and eleven checks, a job and a sensor."""
    files_of = dg.DynamicPartitionsDefinition(name=f"{name}_files")

    @dg.observable_source_asset(key=[name, "source_files"], partitions_def=files_of, group_name=name)
    def source_files() -> dg.DataVersionsByPartition:
        return dg.DataVersionsByPartition({})

    @dg.asset(key=[name, "segments"], deps=[[name, "source_files"]], partitions_def=files_of, group_name=name)
    def segments() -> None: ...

    waiting = dg.AssetSpec(
        [name, "waiting"],
        partitions_def=dg.DynamicPartitionsDefinition(name=f"{name}_waiting"),
        group_name=name,
    )

    @dg.multi_asset(
        name=f"{name}__snapshot",
        specs=[
            dg.AssetSpec([name, "snapshot"], deps=[[name, "segments"]], group_name=name),
            dg.AssetSpec([name], deps=[[name, "snapshot"], [name, "waiting"]], group_name=name),
        ],
        can_subset=True,
    )
    def snapshot() -> Iterator[dg.MaterializeResult[None]]:
        yield from ()

    @dg.asset_check(asset=dg.AssetKey([name, "segments"]), name="gate", blocking=True)
    def gate() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=True)

    @dg.multi_asset_check(
        name=f"{name}_health_checks",
        specs=[dg.AssetCheckSpec(f"check_{number}", asset=[name]) for number in range(CHECKS)],
        can_subset=True,
    )
    def health() -> Iterator[dg.AssetCheckResult]:
        yield from ()

    keys = [dg.AssetKey(path) for path in ([name, "segments"], [name, "snapshot"], [name])]
    job = dg.define_asset_job(
        f"{name}_ingest",
        selection=dg.AssetSelection.assets(*keys) - dg.AssetSelection.checks_for_assets(keys[-1]),
        executor_def=dg.in_process_executor,
    )

    @dg.sensor(name=f"{name}_files", job_name=f"{name}_ingest", minimum_interval_seconds=30)
    def files() -> dg.SkipReason:
        return dg.SkipReason("nothing")

    return dg.Definitions(
        assets=[source_files, segments, snapshot, waiting],
        asset_checks=[gate, health],
        jobs=[job],
        sensors=[files],
    )


def shared_job(number: int) -> dg.JobDefinition:
    """A job with one op."""

    @dg.op(name=f"shared_{number}_op", out={})
    def act() -> Iterator[dg.AssetObservation]:
        yield from ()

    return dg.GraphDefinition(f"shared_{number}", node_defs=[act]).to_job(executor_def=dg.in_process_executor)


def shared_sensor(number: int) -> dg.SensorDefinition:
    """A sensor that starts nothing."""

    @dg.sensor(name=f"shared_{number}", minimum_interval_seconds=30)
    def sensor() -> dg.SkipReason:
        return dg.SkipReason("nothing")

    return sensor


def build(tables: int) -> dg.Definitions:
    """Return all of it."""
    shared = dg.Definitions(
        jobs=[shared_job(number) for number in range(JOBS)],
        sensors=[shared_sensor(number) for number in range(2)],
        executor=dg.in_process_executor,
    )
    return dg.Definitions.merge(shared, *(table(f"t{number:03}") for number in range(tables)))


defs = build(int(os.environ.get("BARE_TABLES", "0")))
