"""Whatever dies, is lost or comes late: the protocol's promises hold, and what gets stuck is mended.

`PROOF_EXAMPLES=10` tries ten times as many stories.
"""

from __future__ import annotations

import os
from dataclasses import replace

from fakes.realtime.simulated_repair import SimulatedRepair
from fakes.realtime.simulated_truth import Kept, all_well, always, found_by_health, lag_rows, lost_rows
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from simulator.faults import (
    BadNetwork,
    Death,
    Fate,
    Fault,
    Point,
    ReaderFails,
    SlowZooKeeper,
    StoreOutage,
    Strike,
)
from simulator.protocol import MessageKind
from simulator.tables import HOUR, MINUTE, Hardware, SimulatedTable, Stream
from simulator.world import SimulatedWorld

from pinot_assets.realtime.model.settings import ClusterSettings, RealtimeSettings
from pinot_assets.sizing.load import Flush, Outage

TIMES = int(os.environ.get("PROOF_EXAMPLES", "1"))
TROUBLED: int = 40 * MINUTE

at = st.integers(0, TROUBLED // 1000).map(lambda s: s * 1000)
lasting = st.integers(1, 20 * 60).map(lambda s: s * 1000)
back = st.integers(0, 15 * 60).map(lambda s: s * 1000)
servers = st.sampled_from(["server-0", "server-1"])

deaths = st.builds(Death, at, st.sampled_from(["server-0", "server-1", "controller-0", "controller-1"]), back)
strikes = st.builds(Strike, st.sampled_from(list(Point)), st.integers(1, 20), back)
fates = st.sampled_from(
    [
        Fate(lost=True),
        Fate(reply_lost=True),
        Fate(late_ms=4_000),
        Fate(late_ms=20_000),
        Fate(late_ms=400_000),
    ]
)
networks = st.builds(
    BadNetwork,
    at,
    lasting,
    fates,
    st.frozensets(st.sampled_from(list(MessageKind)), max_size=2),
    st.integers(1, 4),
)
zookeepers = st.builds(SlowZooKeeper, at, lasting, st.sampled_from([1_000, 4_000, 15_000]))
readers = st.builds(ReaderFails, at, servers)
long = st.integers(10 * 60, 30 * 60).map(lambda s: s * 1000)
outages = st.builds(StoreOutage, at, long, st.sampled_from(list(Outage)))
faults = st.one_of(deaths, strikes, networks, zookeepers, readers)

tables = st.builds(
    lambda pauseless, scheme, mode, replication, partitions, rows, time_ms, late_ms, build, upload_ms: (
        SimulatedTable(
            settings=RealtimeSettings(
                replication=replication,
                peer_scheme="http" if replication > 1 and (pauseless or scheme) else None,
                pauseless=pauseless,
                completion_mode=mode,
            ),
            cluster=ClusterSettings(version="1.5.1", upload_timeout_ms=upload_ms),
            flush=Flush(segment_rows=rows, time_ms=time_ms),
            stream=Stream(partitions=partitions, rows_per_s=1_000, flows_ms=2 * TROUBLED, late_ms=late_ms),
            hardware=Hardware(build_rows_per_s=build, build_slots=64),
            servers=max(2, replication),
        )
    ),
    pauseless=st.booleans(),
    scheme=st.booleans(),
    mode=st.sampled_from(["DEFAULT", "DOWNLOAD"]),
    replication=st.sampled_from([2, 2, 3, 1]),
    partitions=st.integers(1, 2),
    rows=st.sampled_from([60_000, 170_000, 400_000, 10_000_000]),
    time_ms=st.sampled_from([3 * MINUTE, 10 * MINUTE]),
    # Where time ends a segment, the one stops short of the other: it catches up, or downloads after 31 s.
    late_ms=st.sampled_from([{}, {"server-0": 7_000}, {"server-1": 20_000}, {"server-1": 45_000}]),
    build=st.sampled_from([100_000, 2_000, 1_000]),
    upload_ms=st.sampled_from([300_000, 60_000]),
)

proof = settings(
    max_examples=50 * TIMES,
    # The same stories at every run of the tests; new ones only when asked for.
    derandomize=TIMES == 1,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@proof
@given(
    table=tables,
    wrong=st.lists(faults, max_size=4),
    outage=st.lists(outages, max_size=1),
    race_ms=st.sampled_from([0, 0, 5_000]),
)
def test_promises_hold_and_repair_ends_what_is_stuck(
    table: SimulatedTable, wrong: list[Fault], outage: list[Fault], race_ms: int
) -> None:
    world = SimulatedWorld(table, [*wrong, *outage], race_ms=race_ms)
    kept = Kept(world)

    def promises() -> None:
        always(world)
        kept.look()

    for _ in range(16):
        world.run(TROUBLED // 8)
        promises()
        found_by_health(world)
    repair = SimulatedRepair(world, meanwhile=promises)
    repair.run(10 * HOUR)
    wrong_still = all_well(world)
    tell(repair, wrong_still)
    promises()
    assert not repair.says.refusals
    assert wrong_still == []


@settings(proof, max_examples=25 * TIMES)
@given(table=tables, wrong=st.lists(faults, max_size=4), outage=st.lists(outages, max_size=1))
def test_what_has_a_copy_outlives_a_stream_that_forgets(
    table: SimulatedTable, wrong: list[Fault], outage: list[Fault]
) -> None:
    """Rows may be gone before anybody has read them; none that a disk or the store has, and no wrong word."""
    table = replace(table, stream=replace(table.stream, retention_ms=10 * MINUTE))
    world = SimulatedWorld(table, [*wrong, *outage])
    kept = Kept(world)
    for _ in range(16):
        world.run(TROUBLED // 8)
        kept.look()
    repair = SimulatedRepair(world, meanwhile=kept.look)
    repair.run(10 * HOUR)
    wrong_still = all_well(world)
    tell(repair, wrong_still)
    assert repair.says.refusals or wrong_still == []
    for refusal in repair.says.refusals:
        assert is_short(world, refusal.subject), refusal


def is_short(world: SimulatedWorld, segment: str) -> bool:
    """Whether rows of it are nowhere any more, or not in what was committed."""
    node = world.zookeeper.nodes[segment]
    whole = node.docs is None or node.docs == (node.end or 0) - node.start
    return bool(lost_rows(world, node)) or not whole


def tell(repair: SimulatedRepair, wrong_still: list[str]) -> None:
    """For the report of a story that ends ill."""
    note(str(repair.says))
    note(str(wrong_still))
    for moment in repair.world.story[-60:]:
        note(str(moment))


@settings(proof, max_examples=20 * TIMES)
@given(pauseless=st.booleans(), begin=at, lasts=lasting, rows=st.sampled_from([60_000, 170_000]))
def test_under_bypass_consumption_never_waits_for_a_store_that_refuses(
    pauseless: bool, begin: int, lasts: int, rows: int
) -> None:
    settings_ = RealtimeSettings(replication=2, peer_scheme="http", pauseless=pauseless)
    table = replace(
        SimulatedTable(settings=settings_, stream=Stream(partitions=2, rows_per_s=1_000)),
        flush=Flush(segment_rows=rows),
    )
    assert (
        longest_lag(SimulatedWorld(table, [StoreOutage(begin, lasts)]))
        <= longest_lag(SimulatedWorld(table)) + 5_000
    )


def longest_lag(world: SimulatedWorld) -> int:
    """In rows, over the time of troubles and as long again."""
    lags = []
    for _ in range(2 * TROUBLED // 20_000):
        world.run(20_000)
        lags.append(lag_rows(world))
    always(world)
    return max(lags)
