"""The troubles that the fake can make, so that a test that asks for one gets it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.pinot.staged import EMPTY

from pinot_assets.errors import PinotError, PinotUnreachable, PushRefused, SwitchStateUnknown
from pinot_assets.pinot import LineageState, wait_online

ContractLab = Any  # conftest.ContractLab; the folders of the tests are not packages


@pytest.fixture
def fake_lab(make_fake_lab: Any, tmp_path: Path) -> Iterator[ContractLab]:
    with make_fake_lab(tmp_path) as lab:
        yield lab


def test_a_refused_connection_does_nothing(fake_lab: ContractLab) -> None:
    fake_lab.pinot.refuse_connection("start_replace_segments")
    with pytest.raises(PinotUnreachable):
        fake_lab.start(set(), {"a"})
    assert fake_lab.pinot.lineage(fake_lab.table).entries == ()
    assert fake_lab.start(set(), {"a"})


def test_a_refused_push_until_it_is_accepted(fake_lab: ContractLab) -> None:
    fake_lab.pinot.refuse_push("b")
    with pytest.raises(PushRefused, match="quota"):
        fake_lab.push("a", "b")
    fake_lab.pinot.accept_push("b")
    fake_lab.push("a", "b")
    assert fake_lab.visible == {"a", "b"}


def test_a_lost_push_is_found_by_pushing_again(fake_lab: ContractLab) -> None:
    fake_lab.pinot.lose_reply("push")
    with pytest.raises(SwitchStateUnknown):
        fake_lab.push("a")
    assert fake_lab.all == {"a"}
    fake_lab.push("a")


def test_a_push_that_is_cut_short_is_half_there_until_it_comes_again(fake_lab: ContractLab) -> None:
    fake_lab.pinot.halve_push()
    with pytest.raises(SwitchStateUnknown):
        fake_lab.push("a", "b", "c")
    assert fake_lab.all == fake_lab.visible == {"a"}
    assert fake_lab.pinot.segment_metadata(fake_lab.table, "c").total_docs == 3
    fake_lab.push("a", "b", "c")
    assert fake_lab.visible == {"a", "b", "c"}


def test_a_broken_replica_until_it_is_mended(fake_lab: ContractLab) -> None:
    fake_lab.pinot.break_replica(fake_lab.table, "a")
    with pytest.raises(PinotError, match="ERROR"):
        fake_lab.push("a")
    assert len(fake_lab.pinot.rows_on_servers(fake_lab.table, ["a"], fake_lab.servers)["a"]) == 1
    fake_lab.pinot.mend_replica(fake_lab.table, "a")
    wait_online(fake_lab.pinot, fake_lab.table, ["a"], seconds=1)


def test_an_end_waits_in_the_controller_for_a_slow_load(fake_lab: ContractLab) -> None:
    fake_lab.push("old")
    entry = fake_lab.start({"old"}, {"new"})
    fake_lab.pinot.load_slowly("new", looks=2)
    fake_lab.pinot.push(fake_lab.table, [fake_lab.stage("new")], staged=EMPTY)
    with pytest.raises(SwitchStateUnknown):
        fake_lab.pinot.end_replace_segments(fake_lab.table, entry)
    assert fake_lab.visible == {"old"}
    fake_lab.wait_online("new")
    # Nobody called end again: Pinot went on by itself.
    assert fake_lab.pinot.lineage(fake_lab.table).get(entry).state is LineageState.COMPLETED
    assert fake_lab.visible == {"new"}


def test_a_deaf_broker_keeps_the_old_set_until_it_is_told(fake_lab: ContractLab) -> None:
    fake_lab.push("old")
    deaf, other = fake_lab.pinot.brokers(fake_lab.table)
    fake_lab.pinot.deafen_broker(deaf)
    fake_lab.replace({"old"}, {"new"})
    assert fake_lab.pinot.broker_visible_segments(deaf, fake_lab.table) == {"old"}
    assert fake_lab.pinot.broker_visible_segments(other, fake_lab.table) == {"new"}
    fake_lab.pinot.rebuild_routing(deaf, fake_lab.table)
    assert fake_lab.pinot.broker_visible_segments(deaf, fake_lab.table) == {"new"}


def test_somebody_else_at_work_just_before_and_just_after(fake_lab: ContractLab) -> None:
    segments: list[frozenset[str]] = []
    look = lambda: segments.append(fake_lab.pinot.all_segments(fake_lab.table))  # noqa: E731
    fake_lab.pinot.before("push", look)
    fake_lab.pinot.after("push", look)
    fake_lab.push("a")
    fake_lab.push("b")
    assert segments == [frozenset(), {"a"}]
