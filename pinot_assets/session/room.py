"""Whether a switch fits into the table's storage quota, told before anything is pushed (W1).

Pinot counts hidden segments too, so a swap needs room for both generations (spec/lineage.md section 10).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pinot_assets.errors import PushRefused
from pinot_assets.session.run import Run
from pinot_assets.session.staging import Switch

_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGTP]?)B?\s*", re.IGNORECASE)
_UNITS = {unit: 1024**power for power, unit in enumerate(("", "K", "M", "G", "T", "P"))}


def quota_bytes(table_json: Mapping[str, Any]) -> int | None:
    """`quota.storage` of a table config in bytes, for one replica; None where there is none.

    Source: Pinot's `QuotaConfig` (`100G`, `500M`, `1.5T`).
    """
    text = (table_json.get("quota") or {}).get("storage")
    match = _SIZE.fullmatch(str(text)) if text is not None else None
    return int(float(match[1]) * _UNITS[match[2].upper()]) if match else None


def require_room(run: Run, switch: Switch) -> None:
    """Refuse a switch that Pinot would refuse half way through its push.

    The sizes are those of the tars, which Pinot never counts for less: what is refused here would not fit.

    :raises PushRefused: not enough of the quota is left; nothing was pushed.
    """
    quota = quota_bytes(run.spec.table_json)
    if quota is None or not switch.segments_to:
        return
    replication = int((run.spec.table_json.get("segmentsConfig") or {}).get("replication") or 1)
    present = run.edges.pinot.table_bytes(run.spec.name)
    pushed = run.edges.pinot.all_segments(run.spec.name)
    needed = sum(o.tar_bytes for o in switch.segments_to if o.segment not in pushed) * replication
    if present + needed > quota * replication:
        raise PushRefused(
            f"the switch of {run.spec.name} does not fit into its storage quota",
            why=f"{_mb(present)} present, {_mb(needed)} to come, {_mb(quota * replication)} allowed, "
            f"over {replication} replicas",
            hint="raise quota.storage: a switch needs room for the old and the new segments at once",
        )


def _mb(size: int) -> str:
    return f"{size / 1024**2:,.1f} MB"
