"""Table specs: `tables/*.yaml`, read, checked, compared with Pinot and applied to it."""

from pinot_assets.table_spec.blocks.dagster import DagsterSettings
from pinot_assets.table_spec.blocks.ingestion import FileIngestion, Mode
from pinot_assets.table_spec.tables.load import (
    check_files,
    check_tables,
    load_any_table,
    load_table,
    load_tables,
    read_tables,
)
from pinot_assets.table_spec.tables.specs import (
    AnyTableSpec,
    LeftOut,
    RealtimeTableSpec,
    Tables,
    TableSpec,
    label_of,
)
from pinot_assets.table_spec.yaml.document import Note, Problem

__all__ = [
    "AnyTableSpec",
    "DagsterSettings",
    "FileIngestion",
    "LeftOut",
    "Mode",
    "Note",
    "Problem",
    "RealtimeTableSpec",
    "TableSpec",
    "Tables",
    "check_files",
    "check_tables",
    "label_of",
    "load_any_table",
    "load_table",
    "load_tables",
    "read_tables",
]
