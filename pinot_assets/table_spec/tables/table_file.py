"""What one file of `tables/` says of any table, checked, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.policy import Policy
from pinot_assets.table_spec.blocks.dagster import DagsterSettings
from pinot_assets.table_spec.yaml.problem import Note


@dataclass(frozen=True, kw_only=True)
class TableFile:
    """What the specs of OFFLINE and REALTIME tables have in common.

    :ivar name: raw table name; the two halves of a hybrid table have the same.
    :ivar path: the YAML file.
    :ivar schema_json: the Pinot schema.
    :ivar table_json: the table config that is applied to Pinot.
    :ivar dagster: how Dagster shows and watches the table.
    :ivar policy: what the spec may reach.
    :ivar notes: what was accepted but is worth knowing.
    """

    name: str
    path: Path
    schema_json: JsonObject
    table_json: JsonObject
    policy: Policy
    dagster: DagsterSettings = field(default_factory=DagsterSettings)
    notes: tuple[Note, ...] = ()
