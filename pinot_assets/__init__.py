"""Load files into Apache Pinot, all or nothing.

Import from here what a code location of your own needs (docs/library.md). Python loads each name when it is
first used: importing Dagster and Spark takes seconds, and most commands do not need them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pinot_assets.core.late_names import late_names

if TYPE_CHECKING:
    from pinot_assets.code_location import (
        build_left_out_definitions,
        build_location_definitions,
        build_realtime_definitions,
        build_table_definitions,
    )
    from pinot_assets.resources import profile_resources, with_object_store
    from pinot_assets.table_spec import load_any_table, load_table, load_tables, read_tables

__all__ = [
    "build_left_out_definitions",
    "build_location_definitions",
    "build_realtime_definitions",
    "build_table_definitions",
    "load_any_table",
    "load_table",
    "load_tables",
    "profile_resources",
    "read_tables",
    "with_object_store",
]
_HOMES = {
    "build_left_out_definitions": "pinot_assets.code_location",
    "build_location_definitions": "pinot_assets.code_location",
    "build_realtime_definitions": "pinot_assets.code_location",
    "build_table_definitions": "pinot_assets.code_location",
    "load_any_table": "pinot_assets.table_spec",
    "load_table": "pinot_assets.table_spec",
    "load_tables": "pinot_assets.table_spec",
    "profile_resources": "pinot_assets.resources",
    "read_tables": "pinot_assets.table_spec",
    "with_object_store": "pinot_assets.resources",
}

__getattr__ = late_names(__name__, _HOMES)
