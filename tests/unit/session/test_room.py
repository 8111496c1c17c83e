"""The quota is checked before anything is pushed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pinot_assets.errors import PushRefused
from pinot_assets.pinot import Lineage
from pinot_assets.session.receipt import Output
from pinot_assets.session.room import quota_bytes, require_room
from pinot_assets.session.staging import Switch

MB = 1024**2


def output(name: str, size: int) -> Output:
    return Output(name, 1, 1, "", size, "", "")


def run(quota: str | None, *, present: int, pushed: frozenset[str] = frozenset()) -> Any:
    table: dict[str, Any] = {"segmentsConfig": {"replication": "2"}}
    if quota is not None:
        table["quota"] = {"storage": quota}
    pinot = SimpleNamespace(table_bytes=lambda _: present, all_segments=lambda _: pushed)
    return SimpleNamespace(
        spec=SimpleNamespace(name="t", table_json={}),  # somebody may have set it in Pinot alone
        edges=SimpleNamespace(pinot=pinot),
        table_config=table,
        switcher=SimpleNamespace(lineage=Lineage(), starts_forced=False),
        current_snapshot=lambda: None,
    )


@pytest.mark.parametrize(
    ("storage", "size"),
    [("100G", 100 * 1024**3), ("1.5T", int(1.5 * 1024**4)), ("500MB", 500 * MB), ("7", 7), ("lots", None)],
)
def test_sizes_as_pinot_writes_them(storage: str, size: int | None) -> None:
    assert quota_bytes({"quota": {"storage": storage}}) == size


def test_no_quota_is_no_limit() -> None:
    assert quota_bytes({}) is None
    require_room(run(None, present=10**15), Switch(1, (), (output("a", 10**15),)))


def test_every_replica_and_what_is_there_count() -> None:
    switch = Switch(1, (), (output("a", 3 * MB), output("b", 2 * MB)))
    require_room(run("10M", present=10 * MB), switch)  # 10 + 2 × 5 of 2 × 10
    with pytest.raises(PushRefused, match=r"10\.0 MB to come, 20\.0 MB allowed"):
        require_room(run("10M", present=10 * MB + 1), switch)


def test_what_an_earlier_driver_pushed_counts_once() -> None:
    switch = Switch(1, (), (output("a", 3 * MB), output("b", 2 * MB)))
    require_room(run("10M", present=16 * MB, pushed=frozenset({"a"})), switch)


def test_taking_away_needs_no_room() -> None:
    require_room(run("1M", present=9 * MB), Switch(1, ("a",), ()))
