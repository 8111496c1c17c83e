"""Build the Dagster definitions of one table, of all tables together, or of a table whose spec is wrong.

A table has its assets, checks, one job and what starts it. What all tables share is there once: the jobs of
operations, and the sensors that take the tables in turn.

Code locations of others use this module, too. The module `definitions` loads a whole directory on import.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import hashlib
import logging
import re
import traceback
from collections.abc import Collection, Iterable
from pathlib import Path

import dagster as dg
from dagster._utils.warnings import disable_dagster_warnings
from dagster_aws.s3 import S3Resource

from pinot_assets.assets.location_jobs import TableChoice
from pinot_assets.assets.looks import health_job, table_health
from pinot_assets.assets.metadata import escaped
from pinot_assets.assets.operations import operation_jobs
from pinot_assets.assets.overview import overview_definitions
from pinot_assets.assets.realtime import realtime_asset, realtime_health, realtime_jobs
from pinot_assets.assets.runs import table_job
from pinot_assets.assets.segments import consistent_push_check, segments_asset, source_files_asset
from pinot_assets.assets.snapshot import snapshot_asset
from pinot_assets.assets.waiting import waiting_asset
from pinot_assets.errors import PinotAssetsError
from pinot_assets.printable import visible
from pinot_assets.resources import with_object_store
from pinot_assets.sensors.files import files_sensor
from pinot_assets.sensors.repairs import repairs_sensor
from pinot_assets.sensors.session import sessions_sensor, table_schedule
from pinot_assets.sensors.tables import tables_sensor
from pinot_assets.table_spec import AnyTableSpec, LeftOut, Problem, RealtimeTableSpec, TableSpec
from pinot_assets.table_spec.blocks.pinot_json import OFFLINE_SUFFIX, REALTIME_SUFFIX
from pinot_assets.table_spec.tables.specs import asset_name

_LOG = logging.getLogger(__name__)

CHECK = "table_spec"
"""The check that fails as long as the spec is wrong."""


@disable_dagster_warnings()  # backfill policies are beta in Dagster, whose version is pinned
def build_table_definitions(spec: TableSpec) -> dg.Definitions:
    """Return the definitions of one OFFLINE table, for a code location of your own.

    `source_files` → `segments` → (the check `consistent_push`) → `snapshot` → the Pinot table.

    `build_location_definitions` has what all tables share. The definitions need the resources `pinot` and
    `push` (`profile_resources` has both) and the in-process executor: all steps of one trigger must run in
    one process, because that process holds the table's lease.
    """
    schedule = table_schedule(spec)
    return dg.Definitions(
        assets=[source_files_asset(spec), segments_asset(spec), snapshot_asset(spec), waiting_asset(spec)],
        asset_checks=[consistent_push_check(spec), table_health(spec)],
        jobs=[table_job(spec)],
        sensors=[files_sensor(spec)],
        schedules=[schedule] if schedule is not None else [],
    )


def build_realtime_definitions(spec: RealtimeTableSpec) -> dg.Definitions:
    """Return the asset and the checks of one REALTIME table, which need the resource `pinot`.

    `build_location_definitions` has what all tables share.
    """
    return dg.Definitions(assets=[realtime_asset(spec)], asset_checks=[realtime_health(spec)])


def build_location_definitions(
    specs: Iterable[AnyTableSpec], left_out: Iterable[LeftOut] = ()
) -> dg.Definitions:
    """Return what the tables of one code location share, once: jobs of operations, sensors of all tables, and
    the asset that lists their states.

    A run of such a job acts on one table, which its partition or its config names. They need the resources of
    `build_table_definitions`, or `pinot` alone if no table is OFFLINE.

    :param left_out: tables whose spec cannot be used; the asset lists them, too.
    """
    every, broken = list(specs), list(left_out)
    offline = [spec for spec in every if isinstance(spec, TableSpec)]
    realtime = [spec for spec in every if isinstance(spec, RealtimeTableSpec)]
    if not every:
        return dg.Definitions()
    repairs = repairs_sensor(realtime)
    shared = dg.Definitions(
        jobs=[
            health_job(TableChoice(every)),
            *(operation_jobs(TableChoice(offline)) if offline else ()),
            *(realtime_jobs(TableChoice(realtime)) if realtime else ()),
        ],
        sensors=[
            tables_sensor(every, broken),
            *([sessions_sensor(offline)] if offline else ()),
            *([repairs] if repairs is not None else ()),
        ],
    )
    return dg.Definitions.merge(overview_definitions(every, broken), shared)


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


def with_stores(spec: AnyTableSpec, s3: S3Resource) -> AnyTableSpec:
    """Return the spec with `s3` for the stores of an OFFLINE table whose spec does not say that itself."""
    return with_object_store(spec, s3) if isinstance(spec, TableSpec) else spec


def build_left_out_definitions(left_out: Iterable[LeftOut], taken: Collection[str] = ()) -> dg.Definitions:
    """Return a red asset, with its problems as description, for each table that is left out, and one sensor
    that records them; log each table.

    :param taken: asset names that other tables use already.
    """
    files = list(left_out)
    return dg.Definitions.merge(left_out_assets(files, taken), left_out_sensor(files, taken))


def left_out_assets(left_out: Iterable[LeftOut], taken: Collection[str] = ()) -> dg.Definitions:
    """As `build_left_out_definitions`, without the sensor, of which a code location has one."""
    for one in left_out:
        _LOG.error("left out: %s", visible(one.in_one_line))
    return dg.Definitions.merge(*map(_in_red, _problems_by_asset(left_out, taken).items()))


def build_together(
    specs: Iterable[AnyTableSpec], left_out: Iterable[LeftOut], s3: S3Resource
) -> dict[Path, dg.Definitions]:
    """Return the definitions by the file of each table, for a project that loads each file separately.

    The first file, by its path, has what all tables share. If several files are left out for one table, the
    first of them shows the problems of all, and the others add nothing.

    :param s3: how to reach the stores of an OFFLINE table whose spec does not say that itself.
    """
    tried = {spec.path: (spec, built_or_left_out(spec, s3)) for spec in specs}
    good = [with_stores(spec, s3) for spec, built in tried.values() if not isinstance(built, LeftOut)]
    wrong = [*left_out, *(built for _, built in tried.values() if isinstance(built, LeftOut))]
    whole = {path: built for path, (_, built) in tried.items() if not isinstance(built, LeftOut)}
    parts = {path: [_without_jobs(built)] for path, built in whole.items()}
    taken = {spec.asset_name for spec in good}
    for one in wrong:
        same = [other for other in wrong if _asset_name(other) == _asset_name(one)]
        parts[one.file] = [left_out_assets(same, taken)] if same[0] == one else []
    if parts:
        jobs = [job for built in whole.values() for job in built.jobs or ()]
        shared = [build_location_definitions(good, wrong), left_out_sensor(wrong, taken)]
        parts[min(parts)] += [dg.Definitions(jobs=jobs), *shared]
    return {path: dg.Definitions.merge(*built) for path, built in parts.items()}


def _without_jobs(built: dg.Definitions) -> dg.Definitions:
    """Return the definitions without their jobs. Dagster copies what a component returns. A sensor of another
    component would then have a copy of its own of a job, and Dagster refuses two."""
    return dg.Definitions(
        assets=built.assets,
        asset_checks=built.asset_checks,
        schedules=built.schedules,
        sensors=built.sensors,
    )


def _problems_by_asset(left_out: Iterable[LeftOut], taken: Collection[str]) -> dict[str, str]:
    """Return the problems as a Markdown list, by the asset that shows them."""
    by_name: dict[str, list[LeftOut]] = {}
    for one in left_out:
        by_name.setdefault(_asset_name(one), []).append(one)
    used, listed = {*taken, *by_name}, dict[str, str]()
    for name, files in by_name.items():
        free = name
        while name in taken and free in used:
            free += "_left_out"
        used.add(free)
        problems = dict.fromkeys(str(problem) for one in files for problem in one.problems)
        listed[free] = "\n".join(f"- {escaped(visible(text))}" for text in problems)
    return listed


def _asset_name(one: LeftOut) -> str:
    """Return the asset name that the table would have if its spec were correct."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", one.name)
    return asset_name(name, REALTIME_SUFFIX if one.kinds == {REALTIME_SUFFIX} else OFFLINE_SUFFIX)


def _in_red(item: tuple[str, str]) -> dg.Definitions:
    """Return an asset whose description lists the problems, and a check that always fails.

    :param item: name of the asset, and its problems.
    """
    name, listed = item
    key = dg.AssetKey([name])
    asset = dg.AssetSpec(
        key,
        group_name=name.removesuffix("_realtime"),
        kinds={"pinot", "table"},
        description="**This table is left out, because its table spec is wrong.** What queries see stays as "
        f"it is. The other tables of this code location work as before.\n\n{listed}\n\nCorrect the "
        "file, check it with `pinot-assets tables validate`, then reload the code location.",
    )

    @dg.asset_check(
        asset=key,
        name=CHECK,
        blocking=False,
        description="Passes when the table spec can be used. Reads nothing.",
    )
    def check() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=False, severity=dg.AssetCheckSeverity.ERROR, description=listed)

    return dg.Definitions(assets=[asset], asset_checks=[check])


def left_out_sensor(left_out: Iterable[LeftOut], taken: Collection[str] = ()) -> dg.Definitions:
    """Return the sensor pinot_left_out, if a table is left out.

    It records the failed check of each such table once, and again when the table's problems change. It runs
    by default: Dagster shows a check that never ran in grey, so the problem would not be visible.

    :param taken: asset names that other tables use already.
    """
    listed = _problems_by_asset(left_out, taken)
    if not listed:
        return dg.Definitions()
    marks = {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in listed.items()}

    @dg.sensor(
        name="pinot_left_out",
        asset_selection=dg.AssetSelection.assets(*(dg.AssetKey([name]) for name in listed)),
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Reports tables whose table spec is wrong; starts nothing.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        told = (context.cursor or "").split()
        failed = [
            dg.AssetCheckEvaluation(
                asset_key=dg.AssetKey([name]),
                check_name=CHECK,
                passed=False,
                severity=dg.AssetCheckSeverity.ERROR,
                description=text,
                blocking=False,
            )
            for name, text in listed.items()
            if f"{name}:{marks[name]}" not in told
        ]
        return dg.SensorResult(
            skip_reason=dg.SkipReason(f"left out, because their table specs are wrong: {', '.join(listed)}"),
            cursor=" ".join(f"{name}:{mark}" for name, mark in marks.items()),
            asset_events=failed,
        )

    return dg.Definitions(sensors=[sensor])
