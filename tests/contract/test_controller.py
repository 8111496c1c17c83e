"""What a real controller of 1.5.1 does with its servers and brokers, seen from their side."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest
from fakes.pinot.staged import STAGED

from pinot_assets.errors import SwitchStateUnknown
from pinot_assets.pinot import LineageState

ContractLab = Any  # conftest.ContractLab; the folders of the tests are not packages

pytestmark = pytest.mark.integration


def rebuilds(controller: Any, table: str) -> list[int]:
    """How often each broker was told to build the routing of that table anew."""
    return [
        sum(
            note.get("MSG_SUBTYPE") == "REBUILD_ROUTING_TABLE" and table in note.get("tableName", "")
            for note in broker.notes
        )
        for broker in controller.brokers
    ]


def test_r07_an_end_and_a_revert_tell_every_broker_once(controller: Any, controller_lab: ContractLab) -> None:
    lab = controller_lab
    lab.push("old")
    entry = lab.replace({"old"}, {"new"})
    lab.eventually(lambda: rebuilds(controller, lab.table) == [1, 1])
    lab.end(entry)  # a message that was lost is not sent again
    lab.revert(entry)
    lab.eventually(lambda: rebuilds(controller, lab.table) == [2, 2])


def test_e30_an_end_waits_for_one_replica_and_goes_on_when_its_caller_has_gone(
    controller: Any, controller_lab: ContractLab
) -> None:
    lab = controller_lab
    lab.push("old")
    entry = lab.start({"old"}, {"new"})
    first, second = controller.servers
    with second.hold("new"), ExitStack() as held:
        held.enter_context(first.hold("new"))
        lab.pinot.push(lab.table, [lab.stage("new")], staged=STAGED)
        with lab.hurried() as hurried, pytest.raises(SwitchStateUnknown):
            hurried.end_replace_segments(lab.table, entry)
        assert lab.entry(entry).state is LineageState.IN_PROGRESS
        assert lab.visible == {"old"}
        held.close()
        lab.eventually(lambda: lab.entry(entry).state is LineageState.COMPLETED)
        assert lab.visible == {"new"}
        states = lab.pinot.online_replicas(lab.table, ["new"])["new"]
        assert sorted(states.values()) == ["OFFLINE", "ONLINE"]


def test_a_server_that_is_about_to_load_when_the_table_is_deleted_goes_on(
    controller: Any, controller_lab: ContractLab
) -> None:
    lab = controller_lab
    first, second = controller.servers
    with first.hold("gone"):
        lab.pinot.push(lab.table, [lab.stage("gone")], staged=STAGED)
        lab.eventually(lambda: "gone" in second.segments.get(f"{lab.table}_OFFLINE", {}))
        lab.pinot.delete_table(lab.table)
    lab.create_again()
    lab.push("next")
    states = lab.pinot.online_replicas(lab.table, ["next"])["next"]
    assert sorted(states.values()) == ["ONLINE", "ONLINE"]
