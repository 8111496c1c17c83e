"""What brokers route to, as `pinot_assets.pinot.api.PinotClient` tells it."""

from __future__ import annotations

from typing import Any

ContractLab = Any  # conftest.ContractLab; the folders of the tests are not packages


def test_a_new_table_shows_nothing(routed_lab: ContractLab) -> None:
    assert routed_lab.brokers_show(set())


def test_brokers_show_what_is_there(routed_lab: ContractLab) -> None:
    lab = routed_lab
    lab.push("a", "b")
    lab.eventually(lambda: lab.brokers_show({"a", "b"}))
    lab.pinot.delete_segments(lab.table, ["a"])
    lab.eventually(lambda: lab.brokers_show({"b"}))


def test_brokers_follow_the_switch_and_its_revert(routed_lab: ContractLab) -> None:
    lab = routed_lab
    lab.push("old", "kept")
    lab.eventually(lambda: lab.brokers_show({"old", "kept"}))
    entry = lab.start({"old"}, {"new1", "new2"})
    lab.push("new1", "new2")
    assert lab.brokers_show({"old", "kept"})
    lab.end(entry)
    lab.eventually(lambda: lab.brokers_show({"kept", "new1", "new2"}))
    lab.revert(entry)
    lab.eventually(lambda: lab.brokers_show({"old", "kept"}))


def test_settled_brokers_know_of_every_deletion(routed_lab: ContractLab) -> None:
    lab = routed_lab
    lab.push("a", "b")
    lab.eventually(lambda: lab.brokers_show({"a", "b"}))
    lab.pinot.delete_segments(lab.table, ["a"])
    lab.pinot.settle_brokers(lab.table, seconds=60)
    assert lab.pinot.online_replicas(lab.table, ["a"]) == {"a": {}}  # no server has it
    assert lab.brokers_show({"b"})


def test_rebuilding_the_routing_changes_nothing_that_is_right(routed_lab: ContractLab) -> None:
    lab = routed_lab
    lab.push("old")
    lab.replace({"old"}, {"new"})
    for broker in lab.pinot.brokers(lab.table):
        lab.pinot.rebuild_routing(broker, lab.table)
        assert lab.pinot.broker_visible_segments(broker, lab.table) == {"new"}
