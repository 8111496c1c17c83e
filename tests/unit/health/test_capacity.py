"""Room for the next switch: quota, staging disk, servers' disks."""

from __future__ import annotations

from pinot_assets.health.capacity import STAGING_RESERVE, enough_room, quota_room, server_room, staging_room

GB = 1024**3


def test_room_everywhere() -> None:
    answer = enough_room([quota_room(10 * GB, 4 * GB, 4 * GB), server_room("s1", 10 * GB, GB)], {})
    assert answer.passed
    assert (answer.expected, answer.found) == (4 * GB, 6 * GB)  # the tightest: the quota
    assert answer.numbers["quota_used_percent"] == 40.0


def test_a_swap_needs_room_for_the_whole_table_once_more() -> None:
    answer = enough_room([quota_room(10 * GB, 6 * GB, 6 * GB)], {})
    assert (answer.passed, answer.expected, answer.found) == (False, 6 * GB, 4 * GB)
    assert "quota.storage" in answer.next_step


def test_a_tenth_of_the_quota_stays_free_where_only_changes_come() -> None:
    assert enough_room([quota_room(10 * GB, 8 * GB, 0)], {}).passed
    assert not enough_room([quota_room(10 * GB, 9 * GB + 1, 0)], {}).passed


def test_the_staging_disk() -> None:
    answer = enough_room([staging_room("/staging", 10 * GB, STAGING_RESERVE - 1, 0)], {})
    assert not answer.passed
    assert "/staging" in answer.message
    assert "output.segment.dir.uri" in answer.next_step


def test_the_fullest_server_is_plotted() -> None:
    rooms = [server_room("s1", 10 * GB, GB), server_room("s2", 10 * GB, 9 * GB + 1)]
    answer = enough_room(rooms, {})
    assert not answer.passed
    assert "s2" in answer.message
    assert "s1" not in answer.message
    assert answer.numbers["server_disk_free_bytes"] == GB - 1


def test_one_place_that_is_not_known_does_not_hide_the_others() -> None:
    answer = enough_room([quota_room(10 * GB, 10 * GB, 0)], {"the staging area": "no such bucket"})
    assert not answer.passed
    assert "the space of the staging area is not known: no such bucket" in answer.message
    assert "quota.storage has 0.0 MB left" in answer.message


def test_what_cannot_be_reached_is_not_known_rather_than_short() -> None:
    answer = enough_room([staging_room("/staging", 100 * GB, 90 * GB, 0)], {"the quota": "Pinot is away"})
    assert (answer.known, answer.message) == (False, "not known: the quota: Pinot is away")
    assert answer.numbers["staging_disk_free_bytes"] == 90 * GB


def test_nothing_limits_it() -> None:
    answer = enough_room([], {})
    assert answer.passed
    assert "no quota is set" in answer.message
