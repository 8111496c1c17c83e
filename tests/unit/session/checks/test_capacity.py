"""Quota and disks are looked at before anything is pushed."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotError, PushRefused
from pinot_assets.pinot import Lineage, ServerDisk
from pinot_assets.session.checks.capacity import quota_bytes, replication_of, require_capacity
from pinot_assets.session.stores.staging import Switch
from pinot_assets.snapshot.receipt import Output

MB = 1024**2


def output(name: str, size: int) -> Output:
    return Output(name, 1, 1, "", size, "", "")


def run(
    quota: str | None,
    *,
    present: int,
    pushed: frozenset[str] = frozenset(),
    disks: dict[str, ServerDisk | PinotError] | None = None,
    servers: tuple[str, ...] = ("s1", "s2"),
) -> Any:
    table: JsonObject = {"segmentsConfig": {"replication": "2"}}
    if quota is not None:
        table["quota"] = {"storage": quota}
    pinot = SimpleNamespace(
        table_bytes=lambda _: present,
        all_segments=lambda _: pushed,
        table_servers=lambda _: servers,
        server_disks=lambda asked: {s: d for s, d in (disks or {}).items() if s in asked},
    )
    return SimpleNamespace(
        spec=SimpleNamespace(table_json={}),  # somebody may have set it in Pinot alone
        table="t",
        pinot=pinot,
        read_table_config=lambda: table,
        switcher=lambda: SimpleNamespace(lineage=Lineage(), starts_forced=False),
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
    require_capacity(run(None, present=10**15), Switch(1, (), (output("a", 10**15),)))


def test_every_replica_and_what_is_there_count() -> None:
    switch = Switch(1, (), (output("a", 3 * MB), output("b", 2 * MB)))
    require_capacity(run("10M", present=10 * MB), switch)  # 10 + 2 × 5 of 2 × 10
    with pytest.raises(PushRefused, match=r"10\.0 MB would be added, 20\.0 MB are allowed"):
        require_capacity(run("10M", present=10 * MB + 1), switch)


def test_what_an_earlier_driver_pushed_counts_once() -> None:
    switch = Switch(1, (), (output("a", 3 * MB), output("b", 2 * MB)))
    require_capacity(run("10M", present=16 * MB, pushed=frozenset({"a"})), switch)


def test_taking_away_needs_no_room() -> None:
    require_capacity(run("1M", present=9 * MB), Switch(1, ("a",), ()))


def test_unpacked_segments_count_where_that_is_known() -> None:
    """Pinot counts what its servers hold, some three times the tar."""
    packed, unpacked = output("a", 3 * MB), replace(output("b", 3 * MB), unpacked_bytes=10 * MB)
    require_capacity(run("13M", present=0), Switch(1, (), (packed, unpacked)))
    with pytest.raises(PushRefused, match=r"26\.0 MB would be added, 24\.0 MB are allowed, over 2 replicas"):
        require_capacity(run("12M", present=0), Switch(1, (), (packed, unpacked)))


def unpacked(name: str, size: int, tar: int = 0) -> Output:
    return replace(output(name, tar), unpacked_bytes=size)


def test_each_server_takes_its_part() -> None:
    disks = {"s1": ServerDisk(100 * MB, 40 * MB), "s2": ServerDisk(100 * MB, 95 * MB)}
    five, six = (Switch(1, (), (unpacked("a", size * MB),)) for size in (5, 6))
    require_capacity(run(None, present=0, disks=disks), five)
    with pytest.raises(
        PushRefused,
        match=r"12\.0 MB would be added on 2 servers, 6\.0 MB each, .* s2 has 5\.0 MB free of 100",
    ):
        require_capacity(run(None, present=0, disks=disks), six)
    require_capacity(run(None, present=0, disks=disks, servers=("s1", "s2", "s3")), six)  # 4 MB each


def test_a_server_holds_the_tars_too_while_it_unpacks_them() -> None:
    disks = {"s1": ServerDisk(100 * MB, 90 * MB), "s2": ServerDisk(100 * MB, 90 * MB)}
    fits = Switch(1, (), (unpacked("a", 4 * MB, tar=2 * MB), unpacked("b", 3 * MB, tar=MB)))
    require_capacity(run(None, present=0, disks=disks), fits)  # 7 and 3 MB
    with pytest.raises(PushRefused, match=r"8\.0 MB each, and 3\.0 MB of tars while they load; s1 has 10\.0"):
        require_capacity(
            run(None, present=0, disks=disks), Switch(1, (), (*fits.segments_to, unpacked("c", MB)))
        )


def test_no_more_tars_are_held_than_a_server_loads_at_a_time() -> None:
    """Helix gives it 40 threads."""
    many = tuple(unpacked(f"s{n}", MB, tar=MB) for n in range(100))
    used = ServerDisk(1000 * MB, (1000 - 140) * MB)
    require_capacity(run(None, present=0, disks={"s1": used, "s2": used}), Switch(1, (), many))
    full = ServerDisk(1000 * MB, (1000 - 139) * MB)
    with pytest.raises(PushRefused, match=r"40\.0 MB of tars"):
        require_capacity(run(None, present=0, disks={"s1": full, "s2": full}), Switch(1, (), many))


def test_a_server_that_gets_one_segment_holds_one_tar() -> None:
    few = (unpacked("a", MB, tar=9 * MB), unpacked("b", MB, tar=9 * MB))
    disk = ServerDisk(100 * MB, 90 * MB)
    servers = tuple(f"s{n}" for n in range(4))
    require_capacity(
        run(None, present=0, disks=dict.fromkeys(servers, disk), servers=servers), Switch(1, (), few)
    )


def test_the_fullest_disk_is_named() -> None:
    disks = {"s1": ServerDisk(10 * MB, 9 * MB), "s2": ServerDisk(10 * MB, 10 * MB)}
    with pytest.raises(PushRefused, match=r"s2 has 0\.0 MB free"):
        require_capacity(run(None, present=0, disks=disks), Switch(1, (), (output("a", 2 * MB),)))


def test_a_server_that_does_not_tell_is_not_judged() -> None:
    switch = Switch(1, (), (output("a", 10**15),))
    require_capacity(run(None, present=0, disks={"s1": PinotError("away")}), switch)
    require_capacity(run(None, present=0, disks={}, servers=()), switch)


def test_what_is_pushed_already_is_on_the_disks_already() -> None:
    disks = {"s1": ServerDisk(10 * MB, 9 * MB), "s2": ServerDisk(10 * MB, 9 * MB)}
    require_capacity(
        run(None, present=0, pushed=frozenset({"a"}), disks=disks), Switch(1, (), (output("a", 99 * MB),))
    )


@pytest.mark.parametrize(("held", "replicas"), [("2", 2), (3, 3), (None, 1), ("", 1), ("${REPLICAS}", 1)])
def test_replicas_are_what_pinot_holds(held: object, replicas: int) -> None:
    assert replication_of({"segmentsConfig": {"replication": held}}) == replicas
