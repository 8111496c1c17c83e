"""One REALTIME table's whole spec, checked, as values."""

from __future__ import annotations

from dataclasses import dataclass

from pinot_assets.table_spec.blocks.pinot_json import REALTIME_SUFFIX
from pinot_assets.table_spec.tables.asset_names import asset_name
from pinot_assets.table_spec.tables.offline import TableSpec
from pinot_assets.table_spec.tables.table_file import TableFile


@dataclass(frozen=True, kw_only=True)
class RealtimeTableSpec(TableFile):
    """What one `tables/*.yaml` with a `realtime:` block says: its `table_json` has the block laid into it.

    References to the environment are kept as they are written, for Pinot to fill in.
    """

    @property
    def name_with_type(self) -> str:
        """`<name>_REALTIME`."""
        return self.name + REALTIME_SUFFIX

    @property
    def asset_name(self) -> str:
        """What its asset is called; unique among the tables loaded together."""
        return asset_name(self.name, REALTIME_SUFFIX)


AnyTableSpec = TableSpec | RealtimeTableSpec
"""What one file of `tables/` may be."""


def label_of(spec: AnyTableSpec) -> str:
    """What tells tables apart in tags and metrics, and commands take: the raw name of an OFFLINE table, a
    REALTIME one's with its type."""
    return spec.name if isinstance(spec, TableSpec) else spec.name_with_type
