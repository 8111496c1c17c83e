"""The parts of the soak that need no server: what is planned, what files hold, what fails it."""

from __future__ import annotations

import hashlib
import io
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
import pytest
from soak import disturbing
from soak.__main__ import Soak
from soak.answers import BrokerAnswers, mixed
from soak.disturbing import Disturbing
from soak.events import CHANGES, TROUBLES, VICTIMS, Event, Kind, Least, events, least
from soak.leaks import Kept, of_calm, of_deaths, of_handles
from soak.watched import Watched
from soak.world import COLUMNS, FORMATS, Content, SoakWorld, Write, answer_of


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
    world, store = SoakWorld(format_, random.Random(3)), dict[str, bytes]()
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
    world = SoakWorld("csv", random.Random(seed))
    for _ in range(6):
        world.change("new")
    for _ in range(50):
        before = dict(world.files)
        world.change("rewrite")
        assert all(world.files[name].rows > 0.1 * content.rows for name, content in before.items())


@pytest.mark.parametrize("what", CHANGES)
def test_each_change_can_come_at_any_time(what: str) -> None:
    world = SoakWorld("csv", random.Random(0))
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
    seen = BrokerAnswers()
    for answer in went:
        seen.add(answer)
    assert sum(times for times, _ in mixed(seen, [A, B, C])) == bad


def test_the_same_state_may_come_again() -> None:
    seen = BrokerAnswers()
    for answer in (A, B, A):
        seen.add(answer)
    assert mixed(seen, [A, B, A]) == []
    assert mixed(seen, [B, A]) == [(1, seen.went[0][2])]


@pytest.mark.parametrize(
    ("samples", "leaks"),
    [
        ([60, 61, 62, 63], 1),
        ([60, 62, 62, 64], 1),
        ([60, 70, 62, 63, 64], 1),
        ([60, 60, 60, 60, 70], 0),
        ([27, 24, 27, 29, 26, 26, 26, 26], 0),
        ([24, 27, 29, 26, 26], 0),
        ([22, 24, 27, 29, 23, 20], 0),
        ([64, 62, 62, 60], 0),
        ([60, 61, 62], 0),
    ],
)
def test_handles_with_a_trend_leak(samples: list[int], leaks: int) -> None:
    assert len([*of_handles(samples)]) == leaks


# --- what is staged ----------------------------------------------------------------------------------

KEPT = Kept(snapshots={"snapshots/1-a.json", "snapshots/1-b.parquet"}, segments={"s1"}, sessions={"cp1-0a"})


@pytest.mark.parametrize(
    ("key", "is_stray"),
    [
        ("owners/pinot-1-2", False),
        ("snapshots/1-a.json", False),
        ("snapshots/1-b.parquet", False),
        ("snapshots/1-c.parquet", True),
        ("segments/s1.tar.gz", False),
        ("segments/s1.metadata.tar.gz", False),
        ("segments/s2.tar.gz", True),
        ("sessions/cp1-0a/plan-0.parquet", False),
        ("sessions/cp2-0b/files/x.json", True),
        ("listings/part-0.arrow", True),
        (".pinot-assets-probe-0", True),
    ],
)
def test_what_a_finished_table_may_keep(key: str, is_stray: bool) -> None:
    assert (KEPT.strays([key]) == {key}) is is_stray


def test_a_run_in_peace_leaves_nothing_and_a_death_something() -> None:
    assert not [*of_calm({"left before"}, {"left before"})]
    assert len([*of_calm({"left before"}, {"left before", "new"})]) == 1
    many = {f"segments/{n}.tar.gz" for n in range(200)}
    assert not [*of_deaths(many, 20)]
    assert len([*of_deaths(many, 2)]) == 1


# --- who is struck, and when -------------------------------------------------------------------------


def test_each_broker_and_each_server_is_a_victim_of_its_own() -> None:
    parts = {"controller", "broker-1", "broker-2", "server-1", "server-2", "zookeeper", "s3"}
    assert set(VICTIMS) == {"watch", "jvm", "worker"} | parts


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Its one number is the time."""
    now = [1000.0]
    monkeypatch.setattr(disturbing, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_a_trouble_waits_for_a_run_however_long(clock: list[float]) -> None:
    watched = SimpleNamespace(runs_s=-1.0, family=())
    table = SimpleNamespace(pointer=lambda: b"")
    told: list[str] = []
    store = SimpleNamespace(spoil=None)
    one = Disturbing(cast(Any, table), cast(Any, watched), cast(Any, store), random.Random(0), told.append)
    one.add(Event(0, Kind.TROUBLE, "503", into_run_s=2, lasts_s=10))
    for _ in range(3):
        clock[0] += 1000
        one.tick()
    assert not one.is_over
    assert not one.troubles
    watched.runs_s = 1.0
    one.tick()
    assert not one.troubles
    watched.runs_s = 2.5
    one.tick()
    assert one.troubles == {"503": 1}
    assert one.store.spoil("GET", "/") == "say 503"
    clock[0] += 11
    one.tick()
    assert one.is_over
    assert one.store.spoil("GET", "/") is None


# --- what a watch may need ---------------------------------------------------------------------------


class Quick:
    """A command that ends at once."""

    def __init__(self) -> None:
        self.returncode, self.stdout = 0, io.StringIO("switched")

    def poll(self) -> int:
        return 0


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    table = SimpleNamespace(home=tmp_path, start=lambda *words: Quick())
    watched = Watched(cast(Any, table), lambda line: None)
    watched.state, watched.message = "failed", "cp6 waits for the schedule or a run by hand"
    watched._heard = True
    yield watched
    watched._log.close()


@pytest.mark.parametrize(("owed", "problems", "by_hand"), [(True, 0, 1), (False, 1, 0)])
def test_a_run_by_hand_is_owed_to_an_emptied_file_alone(
    watched: Watched, owed: bool, problems: int, by_hand: int
) -> None:
    watched.look_after(repaired=False, owed=owed)
    assert (watched.problems, watched.runs_by_hand) == ([], 0)
    watched.look_after(repaired=True, owed=owed)
    assert (len(watched.problems), watched.runs_by_hand) == (problems, by_hand)


def test_a_run_by_hand_is_owed_from_an_emptied_file_to_the_first_snapshot_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    owed: list[tuple[bool, bool]] = []
    world = SimpleNamespace(emptied=None)
    watched = SimpleNamespace(look_after=lambda **said: owed.append((said["repaired"], said["owed"])))
    disturber = SimpleNamespace(tick=lambda: None, undisturbed=True, published=4)
    soak = Soak(cast(Any, None), cast(Any, world), cast(Any, watched), cast(Any, disturber))
    soak.tick()
    world.emptied = ("f0001.csv", None)
    soak.tick()
    world.emptied = None
    soak.tick()
    disturber.published = 5
    soak.tick()
    assert owed == [(True, False), (False, True), (True, True), (True, False)]


def test_a_write_that_the_store_does_not_take_comes_first_once_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    written: list[str] = []
    is_up = [False]

    def write(one: Write) -> bool:
        if is_up[0]:
            written.append(one.name)
        return is_up[0]

    world = SimpleNamespace(emptied=None, change=lambda what: (what, [Write(what, b"")]))
    watched = SimpleNamespace(look_after=lambda **said: None)
    disturber = SimpleNamespace(tick=lambda: None, undisturbed=True, published=0)
    soak = Soak(
        cast(Any, SimpleNamespace(write=write)), cast(Any, world), cast(Any, watched), cast(Any, disturber)
    )
    soak.change("first")
    soak.change("second")
    soak.tick()
    assert written == []
    is_up[0] = True
    soak.tick()
    assert written == ["first", "second"]


def test_a_watch_that_does_not_get_another_jvm_is_a_problem(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Watched, "start", lambda self: None)
    watched._lost_jvm, watched._failed = True, 2
    watched.look_after(repaired=True, owed=True)
    assert watched.problems == []
    watched._failed = 3
    watched.look_after(repaired=False, owed=True)
    assert len(watched.problems) == 1


def test_only_runs_that_ended_at_spark_tell_of_its_jvm(watched: Watched) -> None:
    for message in (
        "Spark gave up building",
        "cannot write: 507",
        "no connection",
        "Spark's JVM did not start",
    ):
        watched.state = "runs"
        watched._come_to("error", message)
    assert watched._failed == 2
    watched.state = "runs"
    watched._come_to("up to date", "staged")
    assert watched._failed == 0
