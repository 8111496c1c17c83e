"""Every metric there is, for those who must name them: dashboards, alerts, docs and their tests."""

from __future__ import annotations

from pinot_assets.metrics import collector, health, pushing, realtime, session, source
from pinot_assets.metrics.family import Family

FAMILIES: tuple[Family, ...] = (
    *collector.FAMILIES,
    *session.FAMILIES,
    *source.FAMILIES,
    *health.FAMILIES,
    *realtime.FAMILIES,
    *pushing.FAMILIES,
)
