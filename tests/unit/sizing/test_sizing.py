"""The aggregate model: its two main plots, its speed, and that it agrees with the world.

Source: docs/simulate.md#what-it-shows.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from simulator.protocol import MessageKind
from simulator.tables import BYPASS, HOUR, PAUSELESS, Hardware, Stream
from simulator.world import SimulatedWorld

from pinot_assets.sizing.forecast import SimulatedDay, simulate_day, traffic_ratio
from pinot_assets.sizing.load import Flush, Load, LoadError, Outage, UploadWay, leased_s
from pinot_assets.sizing.page import html, last_line, rows, save, warnings
from pinot_assets.sizing.profile import MEASURED, message_bytes, placement_bytes
from pinot_assets.sizing.sizing import simulate

LOAD = Load()


@pytest.fixture(scope="module")
def day() -> dict[UploadWay, SimulatedDay]:
    return {way: simulate_day(LOAD, way) for way in UploadWay}


def test_ingestion_is_unaffected_by_an_outage_under_bypass_and_pauseless(
    day: dict[UploadWay, SimulatedDay],
) -> None:
    """The plot of rows ingested: only commits through the controller stop."""
    assert day[UploadWay.BYPASS].ingest_ratio == pytest.approx(1.0, abs=0.02)
    assert day[UploadWay.PAUSELESS].ingest_ratio == pytest.approx(1.0, abs=0.02)
    assert day[UploadWay.CONTROLLER].ingest_ratio < 0.8


def test_controllers_have_more_than_ten_times_less_traffic(day: dict[UploadWay, SimulatedDay]) -> None:
    """The plot of controller traffic, over 100 tables."""
    assert traffic_ratio(day[UploadWay.CONTROLLER], day[UploadWay.BYPASS]) > 10
    assert day[UploadWay.BYPASS].uploads.sum() == 0


def test_what_bypass_leaves_to_controllers_is_counted(day: dict[UploadWay, SimulatedDay]) -> None:
    """Commits' metadata, and the periodic tasks, which are most of it: without them the ratio flatters."""
    through, past = day[UploadWay.CONTROLLER], day[UploadWay.BYPASS]
    assert past.tasks.sum() > past.metadata.sum() > past.messages.sum() > 0
    assert past.tasks.sum() == pytest.approx(through.tasks.sum(), rel=0.01)
    commits_only = (through.uploads + through.messages).sum() / past.messages.sum()
    assert traffic_ratio(through, past) < commits_only / 20


def test_no_listing_where_nothing_was_moved(day: dict[UploadWay, SimulatedDay]) -> None:
    past = day[UploadWay.BYPASS]
    before = past.metadata[past.outage.start - 60 : past.outage.start]
    during = past.metadata[past.outage]
    assert during[during > 0].min() < before[before > 0].min()


def test_the_ratio_follows_from_sizes_and_is_not_put_in() -> None:
    """A tenth of the bytes in a row, as many messages: less to gain."""
    short = replace(LOAD, outage_s=0, for_s=6 * 3_600)
    small = replace(short, commit=MEASURED.scaled(8), flush=Flush(segment_rows=500_000))
    large = replace(short, flush=Flush(segment_rows=500_000))
    ratios = [
        traffic_ratio(simulate_day(load, UploadWay.CONTROLLER), simulate_day(load, UploadWay.BYPASS))
        for load in (small, large)
    ]
    assert ratios[1] > 4 * ratios[0]


def test_nothing_is_lost_in_the_large(day: dict[UploadWay, SimulatedDay]) -> None:
    """What comes in is read, less what the last minutes' commits keep waiting."""
    for one in day.values():
        read = one.rows_per_s.sum() * 60
        assert read == pytest.approx(LOAD.messages_per_s * LOAD.for_s, rel=0.001)
        assert (one.rows_per_s >= -1e-6).all()


def test_segments_at_risk_rise_in_the_outage_and_are_filled_in(day: dict[UploadWay, SimulatedDay]) -> None:
    bypass = day[UploadWay.BYPASS]
    during = bypass.at_risk[bypass.outage]
    assert (np.diff(during) >= 0).all()
    assert during[-1] > 100
    assert bypass.at_risk[: bypass.outage.start].sum() == 0
    assert bypass.at_risk[-1] == 0
    assert bypass.back_fill_s is not None
    assert LOAD.repair_after_s < bypass.back_fill_s < 3_600
    assert day[UploadWay.CONTROLLER].at_risk.sum() == 0


def test_freshness_suffers_for_as_long_as_the_outage_lasts(day: dict[UploadWay, SimulatedDay]) -> None:
    through, past = day[UploadWay.CONTROLLER], day[UploadWay.BYPASS]
    assert through.worst_gap_s.max() > LOAD.outage_s
    assert through.worst_gap_s[-60:].max() < 200, "it catches up"
    assert past.worst_gap_s.max() < 200
    assert day[UploadWay.PAUSELESS].worst_gap_s.max() < 5


def test_a_thousand_tables_for_a_day_in_under_a_minute() -> None:
    load = replace(LOAD, tables=1_000, servers=500, messages_per_s=1e6)
    began = time.process_time()
    one = simulate_day(load, UploadWay.BYPASS)
    assert time.process_time() - began < 60
    assert one.commits > 25_000


class TestHanging:
    load = replace(LOAD, outage=Outage.HANGS)

    def test_bypass_stops_at_the_default_time_out(self) -> None:
        assert simulate_day(self.load, UploadWay.BYPASS).ingest_ratio < 0.8

    def test_bypass_goes_on_with_a_shorter_one(self) -> None:
        assert simulate_day(replace(self.load, upload_timeout_s=30), UploadWay.BYPASS).ingest_ratio > 0.95

    def test_pauseless_goes_on(self) -> None:
        assert simulate_day(self.load, UploadWay.PAUSELESS).ingest_ratio > 0.98

    def test_leases_last_a_little_longer_than_the_build(self) -> None:
        assert leased_s(36) == pytest.approx(126.6)
        assert leased_s(120) == pytest.approx(113.4 + 120)
        assert leased_s(230) == pytest.approx(113.4 + 108 + 120)


@pytest.mark.parametrize("way", [UploadWay.BYPASS, UploadWay.PAUSELESS])
def test_it_agrees_with_the_world_commit_by_commit(way: UploadWay) -> None:
    """The same table in the detailed model: as many commits, as long waits."""
    table = replace(
        BYPASS if way is UploadWay.BYPASS else PAUSELESS,
        flush=Flush(segment_rows=600_000),
        stream=Stream(partitions=2, rows_per_s=1_000),
        hardware=Hardware(
            bytes_per_row=45, build_rows_per_s=35_000, read_rows_per_s=20_000, store_bytes_per_s=50_000_000
        ),
    )
    world = SimulatedWorld(table)
    world.run(6 * HOUR)
    commit = replace(MEASURED.built_at(35_000), rows=1_000_000, tar_bytes=45_000_000, build_s=1e6 / 35_000)
    load = Load(
        tables=1,
        servers=2,
        controllers=1,
        partitions=2,
        replication=2,
        messages_per_s=2_000,
        commit=commit,
        for_s=6 * 3_600,
        outage_s=0,
        flush=Flush(segment_rows=600_000),
    )
    commits = [c for c in simulate(load, way).commits if c.done_s < 6 * 3_600]
    done = [node for node in world.zookeeper.nodes.values() if node.status.completed]
    assert len(commits) == pytest.approx(len(done), abs=2)
    first = min(done, key=lambda node: node.name.sequence)
    took = (first.modified_ms - first.name.created_ms) / 1000 - 600
    assert commits[-1].done_s - commits[-1].full_s == pytest.approx(took, abs=1.5)


def test_what_is_worked_out_is_plausible() -> None:
    """A plain message of the protocol is under 2 KB; a replica's line in the ideal state under 100 bytes."""
    assert 800 < message_bytes(MessageKind.CONSUMED) < 2_000
    assert placement_bytes(1_000, 3) / 3_000 < 110


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ({"tables": 0}, "at least 1"),
        ({"replication": 60}, "more --servers"),
        ({"messages_per_s": 1e9}, "more --partitions"),
        ({"outage_at_s": 1e9}, "earlier --outage-at"),
        ({"for_s": 0}, "--for 24h"),
    ],
)
def test_what_cannot_be_is_refused_with_a_hint(wrong: dict[str, float], hint: str) -> None:
    with pytest.raises(LoadError) as refused:
        replace(LOAD, **wrong)  # type: ignore[arg-type]
    assert hint in str(refused.value)


def test_doubts_are_told() -> None:
    slow = replace(LOAD, commit=MEASURED.built_at(2_000), for_s=12 * 3_600)
    told = warnings({way: simulate_day(slow, way) for way in UploadWay})
    assert any("wait in a queue" in text for text in told)
    assert any("COMMITTING" in text for text in told)


def test_plots_and_page_are_the_same_each_time(day: dict[UploadWay, SimulatedDay], tmp_path) -> None:
    first, second = save(day, tmp_path / "a", "svg"), save(day, tmp_path / "b", "svg")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert all(path.stat().st_size < 80_000 for path in first)
    assert [path.read_bytes()[:4] for path in save(day, tmp_path, "png")] == [b"\x89PNG"] * 4
    page = html(day)
    assert page.count("<svg") == 4
    assert "http://" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    )
    assert last_line(day) in page
    assert len(rows(day)) == 12
