"""A controller that dies at any call of a session: the error says what was done before, and what goes on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypedDict

import pytest
from model.world.lives import make_table, write
from model.world.process import Kind, Trouble
from model.world.table import CLUSTER, TABLE, Job, ModelTable, run
from model.world.watched import WRITES

from pinot_assets.errors import PinotUnreachable, SourceError, SwitchStateUnknown
from pinot_assets.gc import collect as gc_collect
from pinot_assets.gc import forget as gc_forget
from pinot_assets.pinot import LineageState
from pinot_assets.session.context.context import _NEXT
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.stores.stored_snapshots import snapshot_refs
from pinot_assets.session.values.state import Outcome, Session

COMMANDS = {
    "run": f"`pinot-assets run {TABLE}`",
    "rollback": f"`pinot-assets rollback {TABLE}`",
    "clear": f"`pinot-assets session clear {TABLE}`",
}


class Dying:
    """A controller that dies at its n-th call, before or after that had its effect, and stays dead."""

    def __init__(self, table: ModelTable, at: int, *, after: bool) -> None:
        self._at, self._after = at, after
        self.calls: list[str] = []
        self._pinot, self._call = table.pinot, table.pinot._call
        self.sent = ""

    def __enter__(self) -> Dying:
        self._pinot._call = self._one  # type: ignore[method-assign,assignment]
        return self

    def __exit__(self, *_: object) -> None:
        del self._pinot._call

    @contextmanager
    def _one(self, name: str) -> Iterator[None]:
        self.calls.append(name)
        number = len(self.calls)
        if number > self._at or (number == self._at and not self._after):
            raise PinotUnreachable("no connection", why="refused", hint="is Pinot running there?")
        with self._call(name):
            yield
        if number == self._at:
            self.sent = name
            kind = SwitchStateUnknown if name in WRITES - {"rebuild_routing"} else PinotUnreachable
            raise kind("no answer came", hint="it may have happened")


def story(table: ModelTable) -> None:
    """A switch that replaces a file, and adds one."""
    write(A="A1 A2", B="B1")(table)
    table.start(run)
    write(A="A3 A4", C="C1")(table)


def staged(table: ModelTable) -> None:
    story(table)
    table.start(lambda driver: driver.trigger())


def published(table: ModelTable) -> None:
    story(table)
    table.start(run)


def rollback(driver: Driver) -> None:
    driver.rollback()


def clear(driver: Driver) -> None:
    driver.clear()


class Standing(TypedDict):
    """What stands in Pinot, in the staging area and in ZooKeeper."""

    segments: frozenset[str]
    visible: frozenset[str]
    entries: dict[str, LineageState]
    receipts: int
    sessions: list[Session]


def standing(table: ModelTable) -> Standing:
    """What stands in Pinot, in the staging area and in ZooKeeper, without the lease."""
    store = SessionStore(table.zookeeper.client(), CLUSTER, f"{TABLE}_OFFLINE")
    entries = {entry.id: entry.state for entry in table.pinot.lineage(TABLE)}
    return {
        "segments": table.pinot.all_segments(TABLE),
        "visible": table.pinot.visible_segments(TABLE),
        "entries": entries,
        "receipts": sum("/files/" in info.key for info in table.staging.list()),
        "sessions": store.sessions(),
    }


LIVES: dict[str, tuple[Callable[[ModelTable], None], Job]] = {
    "run": (story, run),
    "rollback": (published, rollback),
    "clear": (staged, clear),
}


def broken_off(
    mode: str, what: str, at: int, *, after: bool
) -> tuple[ModelTable, Dying, Exception | None, Standing]:
    table = make_table(mode)
    before, job = LIVES[what]
    before(table)
    stood = standing(table)
    with Dying(table, at, after=after) as dying:
        error = table.start(job).process.error
    return table, dying, error, stood


def around_writes(calls: list[str]) -> list[int]:
    """The numbers of the writes, of the calls beside them, and of the first and the last call: what lies
    between two reads stands as it did before them."""
    writes = {n for n, name in enumerate(calls, 1) if name in WRITES}
    beside = {n + step for n in writes for step in (-1, 0, 1)} | {1, len(calls)}
    return sorted(n for n in beside if 1 <= n <= len(calls))


CASES = [("run", "sync"), ("run", "swap"), ("run", "append"), ("rollback", "sync"), ("clear", "sync")]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("what", "mode"), CASES)
def test_wherever_the_controller_dies_the_error_says_what_stands(what: str, mode: str, after: bool) -> None:
    _, living, error, _ = broken_off(mode, what, 1_000_000, after=False)
    assert error is None
    assert len(living.calls) > 10
    for at in around_writes(living.calls):
        table, dying, error, stood = broken_off(mode, what, at, after=after)
        if error is None:  # the last calls only tidy up, and may be left to the next run
            continue
        now, text = standing(table), str(error)
        place = f"call {at} of {len(living.calls)} ({dying.sent}): {text}"
        true_of(text, stood, now, dying, place)
        assert COMMANDS[what] in text, place
        if what != "rollback":  # whose set the truth does not know
            table.start(run)
            table.start(run)
            assert not table.truth.violations, place


def test_a_rollback_that_has_happened_is_no_error_and_the_next_run_tidies_up() -> None:
    """Whoever is told of one rolls back once more, and loses one snapshot more than was meant."""
    _, living, _, _ = broken_off("sync", "rollback", 1_000_000, after=False)
    assert living.calls[-2:] == ["lineage", "visible_segments"]  # of the look for strays
    for at in (len(living.calls) - 1, len(living.calls)):
        for after in (False, True):
            table, _, error, _ = broken_off("sync", "rollback", at, after=after)
            assert error is None
            assert [session.outcome for session in standing(table)["sessions"]][-1] is Outcome.PUBLISHED
            back = standing(table)["visible"]
            assert table.start(run).process.error is None
            assert standing(table)["visible"] == back


def test_what_goes_on_with_a_rollback_leads_where_it_was_to_lead() -> None:
    def to_the_first(driver: Driver) -> None:
        driver.rollback("1", driver.rollback_plan("1"))

    def errors(at: int) -> tuple[str, ModelTable, list[str]]:
        table = make_table("sync")
        published(table)
        write(D="D1")(table)
        table.start(run)
        with Dying(table, at, after=False) as dying:
            error = table.start(to_the_first).process.error
        return str(error or ""), table, dying.calls

    _, _, calls = errors(1_000_000)
    begun = 0
    for at in range(1, len(calls) + 1):
        text, table, _ = errors(at)
        if "is open (" in text:  # the session remembers it
            begun += 1
            assert COMMANDS["rollback"] in text
        elif "does what is left" in text:  # else it was only looked at
            first = snapshot_refs(Staging(table.staging))[-1]
            session = Staging(table.staging).snapshot(first).session
            assert f"`pinot-assets rollback {TABLE} --to {session}` does what is left" in text
    assert begun


def test_each_step_of_a_driver_has_a_command_that_goes_on_with_it() -> None:
    """A new one that is none of a run's must not send people to `run`."""
    of_a_run = {
        "trigger",
        "trigger_planned",
        "trigger_scheduled",
        "trigger_without_retry",
        "audit",
        "publish",
    }
    steps = {name for name, method in vars(Driver).items() if hasattr(method, "__wrapped__")}
    assert steps == of_a_run | {"rollback", "apply_recipe", "resume", "clear", "rebuild", "upgrade"}
    assert (steps | {gc_collect.STEP, gc_forget.STEP}) - of_a_run == _NEXT.keys()


def true_of(text: str, stood: Standing, now: Standing, dying: Dying, place: str) -> None:
    """What the error says is what stands."""
    assert "nothing was done" not in text, place
    built = now["receipts"] - stood["receipts"]
    if built > 0:
        assert re.search(rf"done so far: {built} files? built and staged", text), place
    same = (stood["segments"], stood["entries"]) == (now["segments"], now["entries"])
    if "nothing was changed in Pinot" in text:
        assert same, place
        assert built <= 0, place
    for entry, state in now["entries"].items():
        if stood["entries"].get(entry) != state:
            match = re.search(rf"lineage entry {entry} (opened|ended|reverted)", text)
            assert match or dying.sent.endswith("start_replace_segments"), place
    pushed = len(now["segments"] - stood["segments"])
    if pushed:
        assert re.search(r"[0-9]+ segments? pushed", text), place
    if "queries see what they saw before" in text:
        assert stood["visible"] == now["visible"], place
    if "Pinot has made the switch" in text:
        assert stood["visible"] != now["visible"], place
    if dying.sent in WRITES - {"rebuild_routing"}:
        assert "not known whether it happened" in text, place
    for session in now["sessions"]:
        if session.outcome is Outcome.OPEN:
            assert f"session {session.id} is open" in text, place


def test_an_end_that_gave_no_answer_is_unknown_while_the_controller_is_away() -> None:
    """Also when the lineage cannot be read: the switch is made, and becomes visible by itself."""
    table = make_table("sync")
    staged(table)
    table.start(lambda driver: driver.audit())

    def die() -> None:
        Dying(table, 0, after=False).__enter__()
        raise SwitchStateUnknown("no answer came")

    table.pinot.after("end_replace_segments", die)
    error = table.start(lambda driver: driver.publish()).process.error
    del table.pinot._call
    assert isinstance(error, SwitchStateUnknown)
    *_, entry = (e for e in table.pinot.lineage(TABLE) if e.state is LineageState.COMPLETED)
    for text in (
        f"it is not yet known whether {TABLE} was switched",
        f"not known whether it happened: lineage entry {entry.id} ended",
        "it is not known whether queries see the switch: Pinot may still make it",
        f"{COMMANDS['run']} continues from there with what is built",
    ):
        assert text in str(error)
    table.start(run)
    assert not table.truth.open_session


def test_a_pinot_that_was_never_there_has_nothing_done_to_it() -> None:
    table = make_table("sync")
    write(A="A1")(table)
    with Dying(table, 0, after=False):
        error = table.start(run).process.error
    assert isinstance(error, PinotUnreachable)
    assert str(error) == (
        "no connection: refused\n"
        "  → no file was built, and nothing was changed in Pinot; "
        f"{COMMANDS['run']} begins again; is Pinot running there?"
    )


def test_a_staging_area_that_goes_away_is_told_with_what_was_done() -> None:
    table = make_table("sync")
    story(table)
    effects = [re.sub(r"cp[0-9]+-[0-9a-f]{6}", "cp", what) for what in table.start(run).process.effects]
    at = next(n for n, what in enumerate(effects, 1) if what.startswith("put sessions/cp/switch-1"))
    table = make_table("sync")
    story(table)
    error = table.start(run, [Trouble(at, Kind.CALL_LOST)]).process.error
    assert isinstance(error, SourceError)
    assert re.search(
        r"done so far: 2 files built and staged; queries see what they saw before; "
        rf"session cp2-\w+ is open \(IN_PROGRESS\); {COMMANDS['run']} continues from there "
        "with what is built",
        str(error),
    )
