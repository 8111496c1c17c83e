"""What Dagster shows of a health check, and the freshness that it watches."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
from fakes.tables import SYNC, write_table

from pinot_assets.assets.health import freshness_policy, result_metadata
from pinot_assets.core.check_result import unknown


def test_what_is_not_known_plots_no_zeros() -> None:
    assert set(result_metadata(unknown("x", "away", "wait"))) == {"next_step"}


@pytest.mark.parametrize(("hours", "warn"), [(8, timedelta(hours=6)), (1 / 60, None)])
def test_dagster_watches_the_freshness_that_is_promised(
    tmp_path: Path, hours: float, warn: timedelta | None
) -> None:
    spec = write_table(tmp_path, "t", SYNC)
    assert freshness_policy(spec) is None
    object.__setattr__(spec.dagster, "freshness_hours", hours)
    policy = freshness_policy(spec)
    assert policy == dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=hours), warn_window=warn)
