"""How a switch's segments are handed to the push (W3): what is left of them, in what mode, at what pace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pinot_assets.errors import LeaseLost, PushRefused
from pinot_assets.pinot import Lineage, LineageEntry, LineageState, PushMode, PushReport
from pinot_assets.session.lineage.switch import Switcher
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.staging import Switch
from pinot_assets.snapshot.receipt import Output

ENTRY = LineageEntry("e", frozenset(), frozenset({"s0"}), LineageState.IN_PROGRESS, 0)


class Pinot:
    """Takes what is pushed; in METADATA mode only where `copies`.

    :ivar pushes: for each call its segments, and the mode that it was told.
    :ivar lands: what another upload puts there just before the next push, before the one after it, …
    """

    def __init__(self, *there: str, copies: bool = True) -> None:
        self.segments = dict.fromkeys(there, 7)
        self.copies = copies
        self.pushes: list[tuple[list[str], PushMode | None]] = []
        self.reads = 0
        self.lands: list[list[str]] = []

    def all_segments(self, table: str) -> frozenset[str]:
        self.reads += 1
        return frozenset(self.segments)

    def segment_crcs(self, table: str) -> dict[str, int]:
        return dict(self.segments)

    def lineage(self, table: str) -> Lineage:
        return Lineage((ENTRY,))

    def push(
        self,
        table: str,
        outputs: Sequence[Output],
        *,
        staged: object,
        mode: PushMode | None,
        before_upload: Callable[[], None],
    ) -> PushReport:
        self.pushes.append(([o.segment for o in outputs], mode))
        self.segments |= dict.fromkeys(self.lands.pop(0) if self.lands else [], 7)
        new = [o.segment for o in outputs if o.segment not in self.segments]
        if new:
            before_upload()
        if mode is PushMode.METADATA and not self.copies:
            raise PushRefused("no filesystem for s3")
        worked = mode or (PushMode.METADATA if self.copies else PushMode.TAR)
        self.segments |= dict.fromkeys(new, 7)
        skipped = tuple(o.segment for o in outputs if o.segment not in new)
        return PushReport(tuple(new), skipped, worked if new else None, None, len(new), 0.05 * len(new))


def push(
    pinot: Pinot,
    count: int,
    before_write: Callable[[], None] = lambda: None,
    mode: PushMode | None = None,
) -> Any:
    return switcher(pinot, before_write, mode).push(Switch(1, (), tuple(outputs(count))), "e")


def switcher(pinot: Pinot, before_write: Callable[[], None], mode: PushMode | None = None) -> Switcher:
    waits = SimpleNamespace(pinot_write=20.0, first_entry=0.0)
    clients = SimpleNamespace(
        pinot=pinot, staging=None, now_ms=lambda: 1, waits=waits, sleep=lambda seconds: None
    )
    return Switcher(
        "t", cast(TableClients, clients), 1000, False, before_write, lambda *_: None, mode, lambda _: None
    )


def outputs(count: int) -> list[Output]:
    return [Output(f"s{n}", 7, 1, "", 1, "", "") for n in range(count)]


def test_what_is_there_is_not_pushed_again_and_costs_no_call() -> None:
    pinot = Pinot(*(f"s{n}" for n in range(990)))
    pushed = push(pinot, 1000)
    assert [names for names, _ in pinot.pushes] == [["s990"], [f"s{n}" for n in range(991, 1000)]]
    assert pinot.reads == 1
    assert len(pushed.pushed) == 10


def test_a_mode_that_nothing_was_sent_in_is_not_passed_on() -> None:
    """The driver before had found out that Pinot does not copy, and pushed the first segment whole."""
    pinot = Pinot(copies=False)
    pinot.lands = [["s0"]]
    assert push(pinot, 300).mode is PushMode.TAR
    assert [mode for _, mode in pinot.pushes][:3] == [None, None, PushMode.TAR]


def test_a_mode_that_was_asked_for_is_kept_where_nothing_was_sent() -> None:
    pinot = Pinot(copies=False)
    pinot.lands = [["s0"]]
    assert push(pinot, 300, mode=PushMode.TAR).mode is PushMode.TAR
    assert {mode for _, mode in pinot.pushes} == {PushMode.TAR}


def test_the_pace_is_set_by_what_was_sent() -> None:
    pinot = Pinot()
    pinot.lands = [[], [f"s{n}" for n in range(2, 101)]]
    push(pinot, 400)
    # Of the second batch one segment was sent, in 0.05 s: 100 go out in a quarter of 20 s.
    assert [len(names) for names, _ in pinot.pushes[:3]] == [1, 100, 100]


def test_another_content_is_refused_before_anything_is_sent() -> None:
    pinot = Pinot()
    pinot.segments = {"s299": 8}
    with pytest.raises(PushRefused, match="s299 has CRC 8"):
        push(pinot, 300)
    assert pinot.pushes == []


def test_r02_a_former_owner_is_waited_out_before_it_is_looked_what_is_there() -> None:
    pinot = Pinot()

    def lands() -> None:
        pinot.segments |= {f"s{n}": 7 for n in range(10)}

    assert push(pinot, 10, lands).pushed == ()
    assert pinot.pushes == []


def test_r02_without_the_lease_nothing_is_looked_at() -> None:
    def lost() -> None:
        raise LeaseLost("gone")

    pinot = Pinot()
    with pytest.raises(LeaseLost):
        push(pinot, 10, lost)
    assert pinot.reads == 0


def test_r02_whoever_slept_past_its_lease_in_a_push_goes_no_further() -> None:
    """Another run has pushed the rest meanwhile, so there is nothing to send, and no look before it."""
    pinot = Pinot()
    pinot.lands = [[f"s{n}" for n in range(300)]]

    def lost() -> None:
        if pinot.pushes:
            raise LeaseLost("gone")

    with pytest.raises(LeaseLost):
        push(pinot, 300, lost)
    assert len(pinot.pushes) == 1


class Losing(Pinot):
    """Answers a look at the lineage, at the n-th, so late that the lease is lost.

    :ivar writes: what was sent that changes something.
    """

    def __init__(self, at_look: int) -> None:
        super().__init__()
        self._left = at_look
        self.writes: list[str] = []

    def lineage(self, table: str) -> Lineage:
        self._left -= 1
        return Lineage((ENTRY,) if self.hidden else ())

    hidden = False

    def before_write(self) -> None:
        if self._left <= 0:
            raise LeaseLost("gone")

    def start_replace_segments(self, *_: object) -> str:
        self.writes.append("start")
        return "e"


@pytest.mark.parametrize("at_look", [1, 2, 3])
def test_r02_a_lease_that_was_lost_during_a_look_starts_nothing(at_look: int) -> None:
    pinot = Losing(at_look)
    with pytest.raises(LeaseLost):
        switcher(pinot, pinot.before_write).open_entry(Switch(1, (), tuple(outputs(1))), "")
    assert pinot.writes == []


@pytest.mark.parametrize("at_look", [1, 2])
def test_r02_a_lease_that_was_lost_during_a_look_uploads_nothing(at_look: int) -> None:
    pinot = Losing(at_look)
    pinot.hidden = True
    with pytest.raises(LeaseLost):
        push(pinot, 1, pinot.before_write)
    assert pinot.segments == {}


def test_nothing_to_add_is_nothing_to_push() -> None:
    pinot = Pinot()
    assert push(pinot, 0).mode is None
    assert pinot.pushes == []
