"""Servers that die, and a ZooKeeper session that expires, at each state of a session."""

from __future__ import annotations

from pathlib import Path

from crash.points import Verdict

from pinot_assets.local import StackState

NAMES: tuple[str, ...] = ()


def try_outage(stack: StackState, name: str, folder: Path) -> Verdict:
    """To come."""
    raise NotImplementedError
