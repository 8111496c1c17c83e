"""The whole machine once on a real Pinot, with queries at both brokers all the while."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.pinot.queries import Queries

from pinot_assets.session.values.report import TriggerResult

pytestmark = pytest.mark.integration


def test_push_rewrite_retry_and_rollback(real_world: Any) -> None:
    world = real_world
    world.write("P1", F1="F1a F1b", Q="Q1 Q2 Q3")
    assert world.run().result is TriggerResult.STAGED
    first = ["F1a", "F1b", "P1", "Q1", "Q2", "Q3"]
    for broker in world.brokers:
        assert world.shown_by(broker) == first

    with Queries(world.brokers, world.shown_by) as queries:
        world.write("F2", F1="F1.1")
        world.remove("Q")
        world.builder.failing = {"F2"}
        assert world.run().result is TriggerResult.FAILED
        assert world.pinot.all_segments(world.table) == set(world.read_snapshot().segments)
        world.builder.failing = set()
        assert world.run().result is TriggerResult.STAGED
        assert world.built == ["F2"]
        world.rollback()
        assert world.run().result is TriggerResult.HELD
        second = ["F1.1", "F2", "P1"]
        assert queries.answers() == {broker: [first, second, first] for broker in world.brokers}
    # Pinot deletes what a rollback takes back at once: a query that was on its way to it fails, which its
    # sender sees. What must not be is an answer that looks whole and is neither the one state nor the other.
    assert all("ServerSegmentMissing" in str(error) for error in queries.failed)

    assert world.resume()
    world.run()
    for broker in world.brokers:
        assert world.shown_by(broker) == second
    world.assert_settled()


def test_half_of_a_files_rows_are_gone_and_queries_never_see_it(real_world: Any) -> None:
    world = real_world
    world.audit_block.append({"check": "row_change", "of": "file", "min": "-20%"})
    world.write("F2", F1="a b c d e f g h")
    world.run()
    whole = ["F2", *"abcdefgh"]
    with Queries(world.brokers, world.shown_by) as queries:
        world.write(F1="a b c d")
        assert world.trigger().result is TriggerResult.STAGED
        _, findings = world.audit()
        by_name = {finding.name: finding for finding in findings}
        shut = by_name.pop("row_change of file (-20% to any)")
        assert (shut.blocks, shut.expected, shut.found) == (True, 8, 4)
        assert "F1 changes from 8 to 4 rows (-50%)" in shut.message
        # All else is as it was built, on both servers.
        assert [finding.message for finding in by_name.values() if not finding.passed] == []
        numbers = {name: (finding.expected, finding.found) for name, finding in by_name.items()}
        assert (numbers["rows_as_read"], numbers["crc_on_servers"]) == ((4, 4), (2, 2))
        world.write(F1="a b c d e f g")
        world.run()
        repaired = ["F2", *"abcdefg"]
        assert queries.answers() == {broker: [whole, repaired] for broker in world.brokers}
    world.assert_settled()
