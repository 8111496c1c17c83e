"""Table specs: `tables/*.yaml`, read, checked, compared with Pinot and applied to it."""

from pinot_assets.spec.dagster_block import DagsterSettings
from pinot_assets.spec.ingestion import FileIngestion, Mode
from pinot_assets.spec.left_out import LeftOut
from pinot_assets.spec.load import (
    check_files,
    check_tables,
    load_any_table,
    load_table,
    load_tables,
    read_tables,
)
from pinot_assets.spec.model import TableSpec
from pinot_assets.spec.problem import Note, Problem
from pinot_assets.spec.realtime import AnyTableSpec, RealtimeTableSpec, label_of
from pinot_assets.spec.tables import Tables

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
