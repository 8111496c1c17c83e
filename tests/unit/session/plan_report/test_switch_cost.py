"""Quota and disks after a switch; what Pinot cannot tell is said to be unknown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotError
from pinot_assets.pinot import ServerDisk
from pinot_assets.session.plan_report.switch_cost import Estimate, at_least, capacity_after_switch


def run(
    quota: str | None = None,
    present: int | PinotError = 100,
    disks: dict[str, ServerDisk | PinotError] | PinotError | None = None,
) -> Any:
    def table_bytes(_: str) -> int:
        if isinstance(present, PinotError):
            raise present
        return present

    def server_disks(servers: Any) -> Any:
        if isinstance(disks, PinotError):
            raise disks
        return disks or {}

    table: JsonObject = {"segmentsConfig": {"replication": "2"}}
    if quota is not None:
        table["quota"] = {"storage": quota}
    pinot = SimpleNamespace(
        table_bytes=table_bytes, table_servers=lambda _: ("s1", "s2"), server_disks=server_disks
    )
    return SimpleNamespace(
        table="t", pinot=pinot, clients=SimpleNamespace(pinot=pinot), read_table_config=lambda: table
    )


def test_the_peak_has_old_and_new_and_later_the_old_goes() -> None:
    room = capacity_after_switch(run("80"), Estimate(30), freed=0, replaced=20)
    assert (room.quota, room.present, room.coming.total) == (160, 100, 60)
    assert (room.at_peak, room.later) == (Estimate(160), Estimate(120))
    assert room.fits is True
    assert capacity_after_switch(run("79"), Estimate(30), freed=0, replaced=20).fits is False


def test_what_a_forced_start_deletes_first_makes_room() -> None:
    room = capacity_after_switch(run("70"), Estimate(30), freed=10, replaced=20)
    assert (room.at_peak, room.later) == (Estimate(140), Estimate(100))
    assert room.fits is True


def test_an_estimate_stays_one_and_an_unknown_too() -> None:
    guessed = capacity_after_switch(run("80"), Estimate(10, 20, exact=False), freed=0, replaced=0)
    assert guessed.at_peak == Estimate(120, 40, exact=False)
    unknown = capacity_after_switch(run("80"), at_least(10), freed=0, replaced=0)
    assert unknown.at_peak == at_least(120)
    assert unknown.fits is None


def test_no_quota_is_no_verdict() -> None:
    assert capacity_after_switch(run(None), Estimate(10**12), freed=0, replaced=0).fits is None


def test_a_size_that_no_server_tells_is_unknown() -> None:
    room = capacity_after_switch(
        run("80", PinotError("no server reported a size")), Estimate(1), freed=0, replaced=0
    )
    assert (room.present, room.at_peak, room.later, room.fits) == (None, None, None, None)


def test_each_server_takes_an_equal_part() -> None:
    disks: dict[str, ServerDisk | PinotError] = {"s1": ServerDisk(1000, 900), "s2": PinotError("away")}
    first, second = capacity_after_switch(run(disks=disks), Estimate(30), freed=0, replaced=99).disks
    assert (first.server, first.free, first.after) == ("s1", 100, 70)
    assert (second.free, second.after, second.why_not) == (None, None, "away")


def test_a_server_holds_the_tars_too_while_it_unpacks_them() -> None:
    """As the run counts them: of 30 each, two replicas of three tars over two servers are three at once."""
    disks: dict[str, ServerDisk | PinotError] = {"s1": ServerDisk(1000, 952), "s2": ServerDisk(1000, 953)}
    first, second = capacity_after_switch(
        run(disks=disks), Estimate(30), freed=0, replaced=0, tars=[8, 6, 4]
    ).disks
    assert (first.after, first.loading, first.fits) == (18, 0, True)
    assert (second.after, second.loading, second.fits) == (17, -1, False)


def test_what_a_disk_takes_of_unread_files_is_not_guessed() -> None:
    disks: dict[str, ServerDisk | PinotError] = {"s1": ServerDisk(1000, 900)}
    first, second = capacity_after_switch(run(disks=disks), at_least(30), freed=0, replaced=0).disks
    assert (first.free, first.after, first.loading, first.fits) == (100, None, None, None)
    assert "since 1.3" in second.why_not


def test_a_cluster_that_does_not_answer_is_told() -> None:
    (only,) = capacity_after_switch(
        run(disks=PinotError("no answer")), Estimate(30), freed=0, replaced=0
    ).disks
    assert (only.free, only.why_not) == (None, "no answer")
