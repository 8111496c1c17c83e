"""One REALTIME table's whole spec, checked, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pinot_assets.spec.dagster_block import DagsterSettings
from pinot_assets.spec.model import TableSpec
from pinot_assets.spec.pinot_json import REALTIME_SUFFIX
from pinot_assets.spec.problem import Note


@dataclass(frozen=True)
class RealtimeTableSpec:
    """What one `tables/*.yaml` with a `realtime:` block says.

    :ivar name: raw table name; the OFFLINE half of a hybrid table has the same.
    :ivar path: the YAML file.
    :ivar schema_json: the Pinot schema.
    :ivar table_json: the table config that is applied to Pinot, the block laid into it; references to the
        environment are kept as they are written, for Pinot to fill in.
    :ivar dagster: how Dagster shows and watches the table.
    :ivar notes: what was accepted but is worth knowing.
    """

    name: str
    path: Path
    schema_json: dict[str, Any]
    table_json: dict[str, Any]
    dagster: DagsterSettings = field(default_factory=DagsterSettings)
    notes: tuple[Note, ...] = ()

    @property
    def name_with_type(self) -> str:
        """`<name>_REALTIME`."""
        return self.name + REALTIME_SUFFIX

    @property
    def asset_name(self) -> str:
        """`<name>_realtime` with `_` for `-`, as Dagster wants it; unique among tables loaded together."""
        return f"{self.name.replace('-', '_')}_realtime"


AnyTableSpec = TableSpec | RealtimeTableSpec
"""What one file of `tables/` may be."""
