"""Row limits against `SizeBasedSegmentFlushThresholdComputer`."""

from __future__ import annotations

from dataclasses import replace

from simulator.tables import Hardware, SimulatedTable, Stream
from simulator.world import SimulatedWorld

from pinot_assets.realtime.model.settings import RealtimeSettings
from pinot_assets.sizing.load import Flush, Flushed, RowLimit

MB = 1024 * 1024
HOUR = 3_600_000


def test_rows_are_shared_by_a_servers_partitions_and_segment_rows_are_not() -> None:
    assert RowLimit(Flush(rows=30_000), 2).next() == 15_000
    assert RowLimit(Flush(segment_rows=30_000), 2).next() == 30_000


def test_the_first_segment_has_the_initial_rows() -> None:
    assert RowLimit(Flush(), 1).next() == 100_000


def test_small_segments_grow_by_half_and_large_ones_are_halved() -> None:
    small, large = RowLimit(Flush(segment_bytes=200 * MB), 1), RowLimit(Flush(segment_bytes=200 * MB), 1)
    small.learn(Flushed(100_000, HOUR, 100_000, 50 * MB))
    large.learn(Flushed(100_000, HOUR, 100_000, 400 * MB))
    assert (small.next(), large.next()) == (150_000, 50_000)


def test_near_the_wanted_size_the_ratio_decides() -> None:
    limit = RowLimit(Flush(segment_bytes=200 * MB), 1)
    limit.learn(Flushed(100_000, HOUR, 100_000, 160 * MB))
    assert limit.next() == 125_000
    limit.learn(Flushed(125_000, HOUR, 125_000, 220 * MB))
    ratio = 0.1 * 125_000 / 220 + 0.9 * 100_000 / 160
    assert limit.next() == int(200 * ratio)


def test_a_segment_that_hit_the_time_limit_grows_by_a_tenth() -> None:
    limit = RowLimit(Flush(segment_bytes=200 * MB, time_ms=6 * HOUR), 1)
    limit.learn(Flushed(100_000, 6 * HOUR, 50_000, 20 * MB))
    assert limit.next() == 55_000
    limit.learn(Flushed(100_000, 12 * HOUR, 50_000, 20 * MB))
    assert limit.next() == 27_500


def test_never_below_ten_thousand_rows() -> None:
    limit = RowLimit(Flush(segment_bytes=1 * MB), 1)
    limit.learn(Flushed(15_000, HOUR, 15_000, 100 * MB))
    assert limit.next() == 10_000


def test_without_a_size_the_former_limit_is_carried_on() -> None:
    limit = RowLimit(Flush(), 1)
    limit.learn(Flushed(70_000, HOUR))
    assert limit.next() == 70_000
    limit.learn(Flushed(70_000, HOUR, 70_000, 10 * MB, forced=True))
    assert limit.next() == 70_000


def test_pauseless_learns_a_segment_later() -> None:
    """The next segment's limit is fixed at commitStart, when this one's size is not known yet."""
    flush = Flush(segment_bytes=200 * MB, first_rows=60_000)
    table = SimulatedTable(
        settings=RealtimeSettings(replication=1),
        flush=flush,
        stream=Stream(partitions=1, rows_per_s=1_000),
        hardware=Hardware(bytes_per_row=1_000),
        servers=1,
    )
    limits = {}
    for pauseless in (False, True):
        world = SimulatedWorld(replace(table, settings=replace(table.settings, pauseless=pauseless)))
        world.run(400_000)
        limits[pauseless] = [node.limit for node in world.zookeeper.nodes.values()][:4]
    assert limits[False] == [60_000, 90_000, 135_000, 209_715]
    assert limits[True] == [60_000, 60_000, 90_000, 90_000]
