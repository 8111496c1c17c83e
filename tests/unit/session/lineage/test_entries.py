"""What becomes of an entry when a call of a dead owner lands, a start gives no answer, or one was delayed."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest
from fakes.pinot.memory import FakePinot
from fakes.pinot.staged import EMPTY

from pinot_assets.errors import PinotError, SwitchConflict, SwitchStateUnknown
from pinot_assets.pinot import LineageEntry, LineageState
from pinot_assets.session.lineage.switch import Switcher
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.staging import Switch
from pinot_assets.snapshot.receipt import Output

SWITCH = Switch(1, ("a",), (Output("b", 1, 1, "", 1, "", ""),))


class SwitchedTable:
    """A table of a fake Pinot.

    :ivar settled: what was seen to have happened: the call, the entry.
    """

    def __init__(self, version: str = "1.5.1") -> None:
        self.pinot = FakePinot(version=version)
        self.pinot.create_table({"tableName": "t_OFFLINE", "tableType": "OFFLINE"})
        self.settled: list[tuple[str, str]] = []

    def switcher(self, before_write: Callable[[], None] = lambda: None) -> Switcher:
        clients = SimpleNamespace(
            pinot=self.pinot,
            now_ms=lambda: 0,
            waits=SimpleNamespace(first_entry=0.0, broker=0.0),
            sleep=lambda seconds: None,
        )
        return Switcher(
            "t",
            cast(TableClients, clients),
            1000,
            False,
            before_write,
            lambda *call: self.settled.append(call),
            None,
            lambda _: None,
        )

    def push(self, *names: str) -> None:
        self.pinot.push("t", [Output(name, 1, 1, "", 1, "", "") for name in names], staged=EMPTY)

    def put(
        self, entry: str, segments_from: set[str], segments_to: set[str], *, completes_itself: bool = False
    ) -> None:
        names = frozenset(segments_from), frozenset(segments_to)
        self.pinot.put_entry("t", LineageEntry(entry, *names, LineageState.IN_PROGRESS, 0, completes_itself))


@pytest.fixture
def table() -> SwitchedTable:
    return SwitchedTable()


def test_r02_a_revert_that_lands_while_its_owner_is_waited_out_is_seen_before_the_end(
    table: SwitchedTable,
) -> None:
    table.push("a")
    entry = table.pinot.start_replace_segments("t", ["a"], ["b"])
    table.push("b")
    switcher = table.switcher(lambda: table.pinot.force_revert_replace_segments("t", entry))
    with pytest.raises(SwitchConflict, match=r"is lost: it is REVERTED"):
        switcher.end(entry)
    assert "end_replace_segments" not in table.pinot.calls
    assert table.pinot.visible_segments("t") == {"a"}


@pytest.mark.parametrize("names", [({"x"}, {"y"}), ({"a"}, {"b"})], ids=["of others", "with our names"])
def test_nothing_is_started_while_an_open_entry_completes_itself(
    table: SwitchedTable, names: tuple[set[str], set[str]]
) -> None:
    table.push("a", "x")
    table.put("self", *names, completes_itself=True)
    with pytest.raises(SwitchConflict, match=r"t is paused: .* completes itself") as refusal:
        table.switcher().open_entry(SWITCH, "")
    assert "self" in (refusal.value.why or "")
    assert "without autoComplete" in (refusal.value.hint or "")
    assert "start_replace_segments" not in table.pinot.calls


def test_an_entry_that_completes_itself_keeps_an_end_from_being_sent(table: SwitchedTable) -> None:
    table.push("a")
    entry = table.pinot.start_replace_segments("t", ["a"], ["b"])
    table.push("b")
    table.put("self", set(), {"y"}, completes_itself=True)
    with pytest.raises(SwitchConflict, match="completes itself"):
        table.switcher().end(entry)
    assert table.pinot.visible_segments("t") == {"a"}


def test_a_locked_name_does_not_keep_the_others_from_being_deleted() -> None:
    table = SwitchedTable("1.6.0")
    table.push("a", "b", "held")
    table.put("of others", {"held"}, {"merged"})
    with pytest.raises(SwitchConflict, match="t keeps 1 segment that should be deleted: held") as refusal:
        table.switcher().delete(["a", "b", "held", "gone"])
    assert "lineage entry of others locks" in (refusal.value.why or "")
    assert "2 others are deleted" in (refusal.value.why or "")
    assert table.pinot.all_segments("t") == {"held"}
    with pytest.raises(SwitchConflict, match="keeps 1 segment"):
        table.switcher().delete(["held"])


def test_a_delete_that_is_refused_for_another_reason_is_not_sent_again() -> None:
    table = SwitchedTable("1.6.0")
    table.push("a")
    table.pinot.before("delete_segments", _refuse)
    with pytest.raises(PinotError, match="no rights"):
        table.switcher().delete(["a"])
    assert table.pinot.calls.count("delete_segments") == 1


def _refuse() -> None:
    raise PinotError("no rights")


def test_a_start_without_an_answer_is_not_taken_for_the_entry_that_it_was_to_replace(
    table: SwitchedTable,
) -> None:
    """It has the same names. What counts as settled is waited for by nobody, and may still land."""
    table.push("a")
    former = table.pinot.start_replace_segments("t", ["a"], ["b"])
    table.pinot.lose_call("force_start_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        table.switcher().renew(SWITCH, former)
    assert table.settled == []


def test_a_start_whose_answer_got_lost_is_found(table: SwitchedTable) -> None:
    table.push("a")
    former = table.pinot.start_replace_segments("t", ["a"], ["b"])
    table.pinot.lose_reply("force_start_replace_segments")
    new = table.switcher().renew(SWITCH, former)
    assert new != former
    assert table.settled == [("start", new)]


def test_r01_to_show_what_a_delayed_start_hides_takes_nothing_published_away(table: SwitchedTable) -> None:
    """Its sources are published again since, by a rollback say, beside one of its outputs."""
    table.push("a", "b", "c")
    table.put("late", {"a", "b"}, {"c"})
    assert table.pinot.visible_segments("t") == {"a", "b"}
    assert table.switcher().undo_delayed_starts({"b", "c"}) == {"c"}
    assert table.pinot.visible_segments("t") == {"b", "c"}


@pytest.mark.parametrize(("end_issued", "published"), [("gone", True), ("former", False), ("", False)])
def test_r19_of_an_entry_that_is_gone_its_own_end_alone_says_that_it_was_published(
    table: SwitchedTable, end_issued: str, published: bool
) -> None:
    """Its output is in sight; that an entry before it was ended says nothing of this one."""
    table.push("b")
    assert table.switcher().ask_if_published(SWITCH, "gone", end_issued) is published


def test_r07_a_broker_that_shows_old_and_new_segments_has_not_switched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = SwitchedTable()
    monkeypatch.setattr(table.pinot, "visible_segments", lambda name: frozenset({"new"}))
    monkeypatch.setattr(
        table.pinot, "broker_visible_segments", lambda broker, name: frozenset({"old", "new"})
    )
    with pytest.raises(SwitchStateUnknown, match="1 old ones are still visible"):
        table.switcher().confirm_visible(["new"], ["old"])
