"""What tables are called in Dagster: `events` is OFFLINE, `clicks` REALTIME, and `broken` is left out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import dagster as dg
from fakes.realtime.specs import write_realtime_table
from fakes.tables import SYNC, write_table

from pinot_assets.assets.keys import ATTEMPT_TAG, SESSION_TAG, TABLE_TAG
from pinot_assets.definitions import build_definitions

EVERYTHING = {**SYNC, "schedule": "0 0 4 * * ?"}


def dagster_names() -> Iterator[str]:
    """`<kind> <name>` of all that the code location holds, ops of jobs and settings of ops included."""
    environ = {"PINOT_ASSETS_WEBHOOK_URL": "http://127.0.0.1:1"}
    with TemporaryDirectory() as folder, patch.dict(os.environ, environ):
        write_table(Path(folder), "events", EVERYTHING)
        write_realtime_table(Path(folder))
        (Path(folder) / "tables" / "broken.yaml").write_text("[")
        definitions = build_definitions(Path(folder) / "tables")
        yield from _names(definitions.get_repository_def())
        yield from (f"resource {name}" for name in definitions.resources or {})
    yield from (f"run tag {tag}" for tag in (TABLE_TAG, SESSION_TAG, ATTEMPT_TAG))


def _names(repository: dg.RepositoryDefinition) -> Iterator[str]:
    graph = repository.asset_graph
    for key in graph.get_all_asset_keys():
        yield f"asset {key.to_user_string()}"
        node = graph.get(key)
        yield f"group {node.group_name}"
        if node.partitions_def is not None:
            yield f"partitions {node.partitions_def.name}"
        yield from (f"pool {pool}" for pool in node.pools or ())
    for check in graph.asset_check_keys:
        yield f"check {check.asset_key.to_user_string()} {check.name}"
    for job in repository.get_all_jobs():
        if not job.name.startswith("__"):
            yield f"job {job.name}"
        for node in job.graph.nodes:
            yield f"op {node.definition.name}"
            fields = getattr(node.definition.config_schema.config_type, "fields", None) or {}
            yield from (f"setting {node.definition.name} {field}" for field in fields)
    yield from (f"sensor {sensor.name}" for sensor in repository.sensor_defs)
    yield from (f"schedule {schedule.name}" for schedule in repository.schedule_defs)
