"""The schedule that docs/guides/gc.md shows launches `pinot_gc` for its table."""

from __future__ import annotations

import re

import dagster as dg
from fakes.project import ROOT

from pinot_assets import build_location_definitions, load_table, profile_resources

PAGE = (ROOT / "docs" / "guides" / "gc.md").read_text(encoding="utf-8")


def test_the_schedule_launches_the_job_for_the_table() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    shown: dict[str, object] = {}
    exec(compile(code, "gc.md", "exec"), shown)
    schedule = shown["gc_flights"]
    assert isinstance(schedule, dg.ScheduleDefinition)
    flights = load_table(ROOT / "tables" / "flights.yaml")
    location = build_location_definitions([flights])
    own = dg.Definitions(schedules=[schedule], resources=profile_resources())
    repository = dg.Definitions.merge(location, own).get_repository_def()
    with dg.build_schedule_context(repository_def=repository) as context:
        (request,) = schedule.evaluate_tick(context).run_requests or ()
    assert request.partition_key == "flights"
    assert request.tags["pinot/table"] == "flights", "by which the queue keeps runs of one table apart"
    config = request.run_config["ops"]["pinot_gc_op"]["config"]
    assert config == {"table": "flights", "apply": True}
    job = repository.get_job("pinot_gc")
    assert dg.validate_run_config(job, request.run_config)
