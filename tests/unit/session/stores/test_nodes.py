"""Nodes above a table's own."""

from __future__ import annotations

from typing import cast

import pytest
from fakes.zookeeper.memory import FakeZooKeeper
from kazoo.client import KazooClient

from pinot_assets.session.stores.nodes import remove_empty_parents

TASKS = "/pinot/PROPERTYSTORE/MINION_TASK_METADATA"
PATH = f"{TASKS}/t_OFFLINE/FileIngestionTask/consistentPush"


@pytest.mark.parametrize(
    ("other", "left"),
    [
        ("", [TASKS]),
        (f"{TASKS}/t_OFFLINE/MergeRollupTask", [TASKS, f"{TASKS}/t_OFFLINE"]),
        (
            f"{TASKS}/t_OFFLINE/FileIngestionTask/other",
            [TASKS, f"{TASKS}/t_OFFLINE", f"{TASKS}/t_OFFLINE/FileIngestionTask"],
        ),
    ],
)
def test_parents_that_hold_something_else_stay(other: str, left: list[str]) -> None:
    zookeeper = FakeZooKeeper()
    client = zookeeper.client()
    client.ensure_path(PATH.rpartition("/")[0])
    if other:
        client.ensure_path(other)
    remove_empty_parents(cast(KazooClient, client), PATH)
    assert [p for p in sorted(zookeeper.nodes) if p.startswith(TASKS) and p != other] == left
