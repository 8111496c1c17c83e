"""Every metric there is, for those who must name them: dashboards, alerts, docs and their tests."""

from __future__ import annotations

from pinot_assets.metrics import collector, health, pushing, realtime, session
from pinot_assets.metrics.family import Family

FAMILIES: tuple[Family, ...] = tuple(
    dict.fromkeys(
        value
        for module in (collector, session, health, realtime, pushing)
        for value in vars(module).values()
        if isinstance(value, Family)
    )
)
