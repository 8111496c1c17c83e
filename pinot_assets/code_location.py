"""Build the Dagster definitions of one table, or of its replacement when its table spec is wrong.

Code locations of others use this module, too. The module `definitions` loads a whole directory on import.
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
from pinot_assets.assets.metadata import escaped
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
    """Return all Dagster definitions of one OFFLINE table except resources, for a code location of your own.

    `source_files` → `segments` → (the check `consistent_push`) → `snapshot` → the Pinot table.

    The definitions need the resources `pinot` and `push` (`profile_resources` has both) and the in-process
    executor: all steps of one trigger must run in one process, because that process holds the table's lease.
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
    """Return all Dagster definitions of one REALTIME table except the resource `pinot`, which they need."""
    return dg.Definitions(
        assets=[realtime_asset(spec)],
        asset_checks=[realtime_health(spec)],
        jobs=[*realtime_jobs(spec), health_job(spec)],
        sensors=[realtime_sensor(spec)],
    )


def built_or_left_out(spec: AnyTableSpec, s3: S3Resource) -> dg.Definitions | LeftOut:
    """Return the definitions of a table, or the reason why it is left out when they cannot be built.

    :param s3: how to reach the stores of an OFFLINE table whose spec does not say that itself.
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
        else:  # the text of an unknown error may contain a secret
            place = traceback.extract_tb(error.__traceback__)[-1]
            why = f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"
        problem = Problem(spec.path, 1, "", f"cannot be shown in Dagster: {why}")
        kind = spec.name_with_type.removeprefix(spec.name)
        return LeftOut(spec.path, spec.name, frozenset((kind,)), (problem,))


def build_left_out_definitions(left_out: Iterable[LeftOut], taken: Collection[str] = ()) -> dg.Definitions:
    """Return a red asset, with its problems as description, for each table that is left out; log each one.

    :param taken: asset names that other tables use already.
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
    """Return the red asset for the file `own`, when each file is loaded separately. If several files of
    `left_out` describe one table, the first file shows the problems of all, and the others add nothing.

    :param taken: asset names that other tables use already.
    """
    same = [one for one in left_out if _asset_name(one) == _asset_name(own)]
    return build_left_out_definitions(same, taken) if same[0] == own else dg.Definitions()


def _asset_name(one: LeftOut) -> str:
    """Return the asset name that the table would have if its spec were correct."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", one.name)
    return asset_name(name, REALTIME_SUFFIX if one.kinds == {REALTIME_SUFFIX} else OFFLINE_SUFFIX)


def _in_red(name: str, files: Sequence[LeftOut]) -> dg.Definitions:
    """Return an asset whose description lists the problems, a check that always fails, and a sensor.

    The sensor records the failed check when the table is first left out, and when its problems change. It
    runs by default: Dagster shows a check that never ran in grey, so the problem would not be visible.

    :param name: name of the asset.
    :param files: the problems of each file; two files when both describe this table.
    """
    key = dg.AssetKey([name])
    problems = dict.fromkeys(str(problem) for one in files for problem in one.problems)
    listed = "\n".join(f"- {escaped(visible(text))}" for text in problems)
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
