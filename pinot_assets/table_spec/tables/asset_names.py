"""What the asset of a table is called in Dagster; all its jobs, sensors and pools begin with that.

Two names that come to the same asset are two tables that cannot be loaded together (`spec/load`).
"""

from __future__ import annotations

import keyword
from typing import Final

from pinot_assets.table_spec.blocks.pinot_json import OFFLINE_SUFFIX, REALTIME_SUFFIX

RESERVED: Final = frozenset(
    [
        *keyword.kwlist,
        *("arg_dict", "bool", "conf", "context", "dict", "float", "input", "input_arg_dict", "int"),
        *("meta", "output", "output_arg_dict", "str", "type"),
    ]
)
"""Words after which Dagster names nothing: an asset check's input has the name of its asset."""

_SUFFIX: Final = {OFFLINE_SUFFIX: "", REALTIME_SUFFIX: "_realtime"}


def asset_name(table: str, kind: str) -> str:
    """The raw name with `_` for `-`; of a REALTIME table with `_realtime` behind it, and with `_table` where
    it would be a word of Dagster's.

    :param kind: `_OFFLINE` or `_REALTIME`.
    """
    name = table.replace("-", "_") + _SUFFIX[kind]
    return f"{name}_table" if name in RESERVED else name
