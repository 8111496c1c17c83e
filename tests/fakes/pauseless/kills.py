"""What is done to the servers of a pauseless table: both killed while they commit, a store given to them."""

from __future__ import annotations

from fakes.pauseless.table import Rows, committing

from pinot_assets.realtime.health.all_checks import examine_state

SMALL = {"realtime.segment.flush.threshold.rows": "2000"}
"""Of two partitions: 1000 rows of each make a segment."""

GIVES_UP_SOON = {"realtime.segment.pauseless.download.timeoutSeconds": "15"}
"""A server looks once for a segment that is COMMITTING, then gives it up. Only for tests in which nobody has
it: there are 30 s between one look and the next."""


def kill_both_while_they_commit(rows: Rows) -> frozenset[str]:
    """One segment of each of two partitions; answers the segments."""
    for server in rows.cluster.servers:
        server.hold_builds()
    rows.send(3_000)
    state = rows.until_committing(2)
    kill_both(rows)
    for server in rows.cluster.servers:
        server.open_gate()
    return frozenset(segment.name for segment in committing(state))


def kill_both(rows: Rows) -> None:
    """At the same time."""
    for server in rows.cluster.servers:
        server.kill()


def start_both(rows: Rows) -> None:
    """Start them again; they are not ready yet."""
    for server in rows.cluster.servers:
        rows.cluster.start(server)


def until_given_up(rows: Rows) -> None:
    """Wait until both have given up what is COMMITTING, since they were started."""
    rows.cluster.until_ready()
    rows.until(lambda state: [len(s.in_state("ERROR")) for s in committing(state)] == [2, 2])


def numbers(rows: Rows, check: str) -> dict[str, float]:
    """What a check of health tells of the table now."""
    answers = {one.name: one for one in examine_state(rows.look())}
    assert not answers[check].passed
    return dict(answers[check].numbers)
