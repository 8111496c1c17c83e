"""Definitions of one table, or of what stands in its place; for code locations of others, too.

Apart from `definitions`, which loads a whole directory when it is imported.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import hashlib
import logging
import re
import traceback
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import dagster as dg
from dagster._utils.warnings import disable_dagster_warnings
from dagster_aws.s3 import S3Resource

from pinot_assets.assets.health import health_job, table_health
from pinot_assets.assets.metadata import plain
from pinot_assets.assets.operations import operations, plan_job
from pinot_assets.assets.realtime import realtime_asset, realtime_health, realtime_jobs
from pinot_assets.assets.runs import table_job
from pinot_assets.assets.segments import consistent_push_check, segments_asset, source_files_asset
from pinot_assets.assets.snapshot import snapshot_asset, table_asset
from pinot_assets.errors import PinotAssetsError
from pinot_assets.printable import visible
from pinot_assets.resources import with_object_store
from pinot_assets.sensors.files import files_sensor
from pinot_assets.sensors.health import health_sensor, realtime_sensor
from pinot_assets.sensors.session import session_sensor, table_schedule
from pinot_assets.table_spec import AnyTableSpec, LeftOut, Problem, RealtimeTableSpec, TableSpec
from pinot_assets.table_spec.blocks.pinot_json import OFFLINE_SUFFIX, REALTIME_SUFFIX
from pinot_assets.table_spec.tables.specs import asset_name

_LOG = logging.getLogger(__name__)

CHECK = "table_spec"
"""The check that fails as long as the spec is wrong."""


@disable_dagster_warnings()  # backfill policies are beta in Dagster, whose version is pinned
def build_table_definitions(spec: TableSpec) -> dg.Definitions:
    """Everything that Dagster needs of one table, but for resources: for a code location of your own.

    `source_files` → `segments` → (the check `consistent_push`) → `snapshot` → the Pinot table.

    It asks for the resources `pinot` and `push` (`profile_resources` has both) and wants the in-process
    executor for its assets: the steps of one trigger share a process, which holds the table's lease.
    """
    schedule = table_schedule(spec)
    return dg.Definitions(
        assets=[source_files_asset(spec), segments_asset(spec), snapshot_asset(spec), table_asset(spec)],
        asset_checks=[consistent_push_check(spec), table_health(spec)],
        jobs=[table_job(spec), *operations(spec), plan_job(spec), health_job(spec)],
        sensors=[files_sensor(spec), session_sensor(spec), health_sensor(spec)],
        schedules=[schedule] if schedule is not None else [],
    )


def build_realtime_definitions(spec: RealtimeTableSpec) -> dg.Definitions:
    """Everything that Dagster needs of one REALTIME table, but for the resource `pinot`."""
    return dg.Definitions(
        assets=[realtime_asset(spec)],
        asset_checks=[realtime_health(spec)],
        jobs=[*realtime_jobs(spec), health_job(spec)],
        sensors=[realtime_sensor(spec)],
    )


def built_or_left_out(spec: AnyTableSpec, s3: S3Resource) -> dg.Definitions | LeftOut:
    """The definitions of a table; where Dagster does not take them, why the table is left out.

    :param s3: holds for an OFFLINE table whose spec says nothing else of its stores.
    """
    try:
        if isinstance(spec, RealtimeTableSpec):
            return build_realtime_definitions(spec)
        return build_table_definitions(with_object_store(spec, s3))
    except Exception as error:
        if isinstance(error, PinotAssetsError):
            why = error.in_one_line
        elif isinstance(error, dg.DagsterError):
            why = str(error).partition("\n")[0]
        else:  # its text may quote a secret
            place = traceback.extract_tb(error.__traceback__)[-1]
            why = f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"
        problem = Problem(spec.path, 1, "", f"cannot be shown in Dagster: {why}")
        kind = spec.name_with_type.removeprefix(spec.name)
        return LeftOut(spec.path, spec.name, frozenset((kind,)), (problem,))


def build_left_out_definitions(left_out: Iterable[LeftOut], taken: Collection[str] = ()) -> dg.Definitions:
    """An asset for each table that is left out, red and with what is wrong; also told in the log.

    :param taken: names of assets that other tables have.
    """
    by_name: dict[str, list[LeftOut]] = {}
    for one in left_out:
        _LOG.error("left out: %s", visible(one.in_one_line))
        by_name.setdefault(_asset_name(one), []).append(one)
    used, built = {*taken, *by_name}, []
    for name, files in by_name.items():
        free = name
        while name in taken and free in used:
            free += "_left_out"
        used.add(free)
        built.append(_in_red(free, files))
    return dg.Definitions.merge(*built)


def in_place_of(own: LeftOut, left_out: Iterable[LeftOut], taken: Collection[str]) -> dg.Definitions:
    """What one file adds to those of `left_out`, where each is loaded by itself: of several files about one
    table the first shows what is wrong with all of them.

    :param taken: names of assets that other tables have.
    """
    same = [one for one in left_out if _asset_name(one) == _asset_name(own)]
    return build_left_out_definitions(same, taken) if same[0] == own else dg.Definitions()


def _asset_name(one: LeftOut) -> str:
    """As the table's own would be."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", one.name)
    return asset_name(name, REALTIME_SUFFIX if one.kinds == {REALTIME_SUFFIX} else OFFLINE_SUFFIX)


def _in_red(name: str, files: Sequence[LeftOut]) -> dg.Definitions:
    """A table's asset whose description says what is wrong, a check that fails at each run, and a sensor.

    The sensor records the failed check when the table is first left out, and when its problems change. It is
    on from the start: a check that nobody ran is grey, like one that has nothing to say.

    :param name: of the asset.
    :param files: what is wrong, file by file: two where both are about the table.
    """
    key = dg.AssetKey([name])
    problems = dict.fromkeys(str(problem) for one in files for problem in one.problems)
    listed = "\n".join(f"- {plain(visible(text))}" for text in problems)
    mark = hashlib.sha256(listed.encode()).hexdigest()[:16]
    asset = dg.AssetSpec(
        key,
        group_name=name.removesuffix("_realtime"),
        kinds={"pinot", "table"},
        description="**This table is left out, because its table spec is wrong.** What queries see stays as "
        f"it is. The other tables of this code location go on.\n\n{listed}\n\nCorrect the file, "
        "look with `pinot-assets tables validate`, then reload the code location.",
    )

    @dg.asset_check(
        asset=key, name=CHECK, blocking=False, description="The table spec can be used. Reads nothing."
    )
    def check() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=False, severity=dg.AssetCheckSeverity.ERROR, description=listed)

    @dg.sensor(
        name=f"{name}_left_out",
        asset_selection=dg.AssetSelection.assets(key),
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Shows on the asset {name} that its table spec is wrong; starts nothing.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        failed = dg.AssetCheckEvaluation(
            asset_key=key,
            check_name=CHECK,
            passed=False,
            severity=dg.AssetCheckSeverity.ERROR,
            description=listed,
            blocking=False,
        )
        return dg.SensorResult(
            skip_reason=dg.SkipReason("the table spec is wrong; its check says how"),
            cursor=mark,
            asset_events=[failed] if context.cursor != mark else [],
        )

    return dg.Definitions(assets=[asset], asset_checks=[check], sensors=[sensor])
