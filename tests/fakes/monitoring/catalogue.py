"""Every metric there is, for those who must name them: dashboards, alerts, docs and their tests."""

from __future__ import annotations

from collections.abc import Iterator

from pinot_assets.metrics import collector, health, pushing, realtime, session
from pinot_assets.metrics.family import Family


def _families() -> Iterator[Family]:
    for module in (collector, session, health, realtime, pushing):
        for value in vars(module).values():
            members = value.values() if isinstance(value, dict) else (value,)
            yield from (family for family in members if isinstance(family, Family))


FAMILIES: tuple[Family, ...] = tuple(dict.fromkeys(_families()))
