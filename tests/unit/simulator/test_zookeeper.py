"""What two writers of one node see of each other."""

from __future__ import annotations

from dataclasses import replace

import pytest
import simpy
from simulator.zookeeper import Node, Refused, SegmentName, ZooKeeper

from pinot_assets.realtime.model.state import SegmentStatus

NODE = Node(SegmentName("events", 0, 0, 0), start=0, limit=100)
NAME = str(NODE.name)


def created() -> ZooKeeper:
    env = simpy.Environment()
    zookeeper = ZooKeeper(env, write_ms=10)
    env.run(env.process(zookeeper.create(NODE)))
    return zookeeper


def write(zookeeper: ZooKeeper, status: SegmentStatus, version: int | None) -> None:
    env = zookeeper.env
    env.run(env.process(zookeeper.write(replace(NODE, status=status), version)))


def test_of_two_who_read_the_same_version_the_second_is_refused() -> None:
    zookeeper = created()
    write(zookeeper, SegmentStatus.COMMITTING, 0)
    with pytest.raises(Refused):
        write(zookeeper, SegmentStatus.DONE, 0)
    assert zookeeper.nodes[NAME].status is SegmentStatus.COMMITTING
    write(zookeeper, SegmentStatus.DONE, 1)
    assert zookeeper.nodes[NAME].status is SegmentStatus.DONE


def test_a_write_that_names_no_version_comes_through() -> None:
    zookeeper = created()
    write(zookeeper, SegmentStatus.COMMITTING, 0)
    write(zookeeper, SegmentStatus.DONE, None)
    assert (zookeeper.nodes[NAME].status, zookeeper.nodes[NAME].version) == (SegmentStatus.DONE, 2)


@pytest.mark.parametrize("version", [0, None])
def test_what_was_removed_meanwhile_is_not_written_anew(version: int | None) -> None:
    zookeeper = created()
    zookeeper.env.run(zookeeper.env.process(zookeeper.remove(NAME)))
    with pytest.raises(Refused):
        write(zookeeper, SegmentStatus.DONE, version)
    assert not zookeeper.nodes


def test_what_was_removed_has_no_age() -> None:
    zookeeper = created()
    zookeeper.env.run(zookeeper.env.process(zookeeper.remove(NAME)))
    with pytest.raises(Refused):
        zookeeper.age_ms(NAME)
