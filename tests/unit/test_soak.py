"""The parts of the soak that need no server: what is planned, what files hold, what counts as mixed."""

from __future__ import annotations

import hashlib
import io
import random
from collections import Counter

import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
import pytest
from soak.answers import Seen, mixed
from soak.events import CHANGES, TROUBLES, VICTIMS, Kind, Least, events, least
from soak.leaks import of_handles
from soak.world import COLUMNS, FORMATS, Content, World, answer_of


def test_a_seed_is_one_plan() -> None:
    assert events(7, 20) == events(7, 20) != events(8, 20)


@pytest.mark.parametrize(
    ("minutes", "wanted"), [(20, Least(60, 20, 3)), (90, Least(100, 40, 3)), (5, Least(15, 5, 0))]
)
def test_what_counts_as_a_soak(minutes: float, wanted: Least) -> None:
    assert least(minutes) == wanted


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("minutes", [3, 20, 90])
def test_a_plan_has_enough_of_everything(seed: int, minutes: float) -> None:
    plan, needed = events(seed, minutes), least(minutes)
    by_kind = Counter(event.kind for event in plan)
    whats = Counter(event.what for event in plan)
    assert by_kind[Kind.CHANGE] >= needed.changes
    assert by_kind[Kind.KILL] >= needed.kills
    assert all(whats[victim] >= needed.of_each for victim in VICTIMS)
    assert all(whats[trouble] for trouble in TROUBLES)
    assert [event.at_s for event in plan] == sorted(event.at_s for event in plan)
    assert max(e.at_s for e in plan if e.kind is not Kind.CHANGE) < 0.95 * 60 * minutes


@pytest.mark.parametrize("seed", range(8))
def test_one_file_is_empty_at_a_time_and_none_for_ever(seed: int) -> None:
    whats = [event.what for event in events(seed, 30) if event.what in ("empty", "restore")]
    assert whats == ["empty", "restore"] * (len(whats) // 2)


@pytest.mark.parametrize("format_", FORMATS)
def test_writes_leave_the_store_as_the_world(format_: str) -> None:
    world, store = World(format_, random.Random(3)), dict[str, bytes]()
    for what in ["new"] * 8 + [e.what for e in events(3, 30) if e.kind is Kind.CHANGE]:
        for write in world.change(what)[1]:
            if write.data is None:
                del store[write.name]
            else:
                store[write.name] = write.data
    held = {name: world.known[hashlib.sha256(data).hexdigest()] for name, data in store.items()}
    assert {name: content for name, content in held.items() if content.rows} == {
        name: content for name, content in world.files.items() if content.rows
    }
    assert held.keys() == world.files.keys()


@pytest.mark.parametrize("seed", range(10))
def test_no_rewrite_loses_so_much_that_a_gate_shuts(seed: int) -> None:
    world = World("csv", random.Random(seed))
    for _ in range(6):
        world.change("new")
    for _ in range(50):
        before = dict(world.files)
        world.change("rewrite")
        assert all(world.files[name].rows > 0.1 * content.rows for name, content in before.items())


@pytest.mark.parametrize("what", CHANGES)
def test_each_change_can_come_at_any_time(what: str) -> None:
    world = World("csv", random.Random(0))
    for _ in range(6):
        world.change("new")
    for _ in range(60):
        if world.emptied:
            world.change("restore")
        world.change(what)
        assert world.files


def test_files_hold_their_rows() -> None:
    content = Content("f0001", 3, 40)
    rows = content.all_rows()
    read = {
        "csv": pyarrow.csv.read_csv(io.BytesIO(FORMATS["csv"](rows))),
        "json": pyarrow.json.read_json(io.BytesIO(FORMATS["json"](rows))),
        "parquet": pyarrow.parquet.read_table(io.BytesIO(FORMATS["parquet"](rows))),
    }
    for table in read.values():
        assert table.column_names == [*COLUMNS]
        assert [tuple(row.values()) for row in table.to_pylist()] == rows


def test_an_answer_counts_a_content_as_often_as_it_is_there() -> None:
    one, two = Content("a", 1, 10), Content("b", 2, 0)
    ((_, _, rows, total),) = answer_of([one, two])
    assert answer_of([one, one]) == (("a", 1, 2 * rows, 2 * total),)


A, B, C = ((("a", n, 1, 1),) for n in range(3))


@pytest.mark.parametrize(
    ("went", "bad"),
    [
        ([(), A, B, C], 0),
        ([A, C], 0),
        ([A, A + B, B], 1),
        ([B, A, B], 1),
        ([A, (), B], 1),
        ([C, B, A], 2),
    ],
)
def test_a_mix_and_a_step_back_are_seen(went: list[tuple[tuple[str, int, int, int], ...]], bad: int) -> None:
    seen = Seen()
    for answer in went:
        seen.add(answer)
    assert sum(times for times, _ in mixed(seen, [A, B, C])) == bad


def test_the_same_state_may_come_again() -> None:
    seen = Seen()
    for answer in (A, B, A):
        seen.add(answer)
    assert mixed(seen, [A, B, A]) == []
    assert mixed(seen, [B, A]) == [(1, seen.went[0][2])]


@pytest.mark.parametrize(
    ("samples", "leaks"), [([60, 61, 62, 63], 1), ([60, 62, 62, 64], 0), ([60, 61, 62], 0)]
)
def test_handles_that_grow_with_each_run_leak(samples: list[int], leaks: int) -> None:
    assert len([*of_handles(samples)]) == leaks
