"""Makes a table whose spec is wrong red in Dagster without anybody's doing: its check fails at once.

On from the start: a check that nobody ran is grey, like one that has nothing to say.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import hashlib
from collections.abc import Sequence

import dagster as dg

from pinot_assets.assets.left_out import CHECK, problems_of
from pinot_assets.table_spec import LeftOut

INTERVAL_S = 30


def left_out_sensor(name: str, files: Sequence[LeftOut]) -> dg.SensorDefinition:
    """Records the failed check of one table when it is first left out, and when its problems change.

    :param name: of its asset.
    :param files: what is wrong.
    """
    key, told = dg.AssetKey([name]), problems_of(files)
    mark = hashlib.sha256(told.encode()).hexdigest()[:16]

    @dg.sensor(
        name=f"{name}_left_out",
        asset_selection=dg.AssetSelection.assets(key),
        minimum_interval_seconds=INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Shows on the asset {name} that its table spec is wrong; starts nothing.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        failed = dg.AssetCheckEvaluation(
            asset_key=key,
            check_name=CHECK,
            passed=False,
            severity=dg.AssetCheckSeverity.ERROR,
            description=told,
            blocking=False,
        )
        return dg.SensorResult(
            skip_reason=dg.SkipReason("the table spec is wrong; its check says how"),
            cursor=mark,
            asset_events=[failed] if context.cursor != mark else [],
        )

    return sensor
