"""How many rows a query at each broker counts."""

from __future__ import annotations

from typing import Any


def test_every_broker_counts_the_visible_rows(routed_lab: Any) -> None:
    lab = routed_lab
    brokers = lab.pinot.brokers(lab.table)
    assert [lab.pinot.broker_rows(broker, lab.table) for broker in brokers] == [0, 0]
    lab.push("old", "kept")
    lab.eventually(lambda: lab.brokers_show({"old", "kept"}))
    assert [lab.pinot.broker_rows(broker, lab.table) for broker in brokers] == [6, 6]
    entry = lab.start({"old"}, {"new"})
    lab.push("new")
    assert [lab.pinot.broker_rows(broker, lab.table) for broker in brokers] == [6, 6]
    lab.end(entry)
    lab.eventually(lambda: lab.brokers_show({"kept", "new"}))
    lab.pinot.delete_segments(lab.table, ["kept"])
    lab.eventually(lambda: lab.brokers_show({"new"}))
    assert [lab.pinot.broker_rows(broker, lab.table) for broker in brokers] == [3, 3]
