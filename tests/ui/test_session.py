"""One session as a person sees it: materialize, failing check, repair, retry, switch, rollback.

What the pages say stands beside what queries see. The screenshots are those of the documentation.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect
from ui.console import Console
from ui.flights import Flights

pytestmark = pytest.mark.timeout(2400)

ROWS = {"2013-01-01": 842, "2013-01-02": 943, "2013-01-03": 914, "2013-01-04": 915, "2013-01-05": 720}
BROKEN = "2013-01-05"
REWRITTEN, MORE_ROWS = "2013-01-01", 850
ALL = sum(ROWS.values())


def test_a_session(console: Console, flights: Flights) -> None:
    for day, rows in ROWS.items():
        flights.write(day, rows)
    flights.corrupt(BROKEN)

    files_become_partitions(console)
    a_broken_file_shuts_the_gate(console)
    assert flights.served() is None

    flights.write(BROKEN, ROWS[BROKEN])
    the_retry_builds_that_file_alone(console)
    assert flights.served() is None

    first = the_switch_shows_what_queries_see(console)
    assert flights.served() == ALL

    flights.write(REWRITTEN, MORE_ROWS)
    a_rewritten_file_is_stale(console)
    assert flights.served() == ALL

    the_files_sensor_starts_the_job(console)
    assert flights.served() == ALL + MORE_ROWS - ROWS[REWRITTEN]
    assert published(console, ALL + MORE_ROWS - ROWS[REWRITTEN]) != first

    the_launchpad_rolls_back(console)
    assert flights.served() == ALL
    assert published(console, ALL) == first
    console.shot("table")
    console.asset("flights/snapshot", "lineage")
    console.says("100% filled", "6 partitions")


def files_become_partitions(console: Console) -> None:
    console.asset("flights/source_files")
    console.press("Observe")
    assert console.run() == "Success"
    console.asset("flights/segments", "partitions")
    console.says("Missing (6)", *(f"{day}.csv" for day in ROWS), "all files")


def a_broken_file_shuts_the_gate(console: Console) -> None:
    console.graph()
    console.press("Materialize all (3)")
    console.launch("all files")
    assert console.run() == "Failure"
    console.logs(f"built 4 of 5 files listed, 1 failed ({BROKEN}.csv)", "listed")
    console.shot("run-failed")

    console.asset("flights/segments", "checks")
    console.says(
        "This is a blocking asset check.",
        re.compile(rf"^4 of 5 files are built: {BROKEN}\.csv: UNREADABLE.* Nothing is switched: nothing"),
        "Evaluation result",
    )
    expect(console.metadata("files_built_expected")).to_have_text("5")
    expect(console.metadata("files_built_found")).to_have_text("4")
    console.shot("check-failed")

    console.asset("flights/segments", "partitions")
    console.says("Failed (1)", "Materialized (4)", "Missing (1)")  # the whole, the built ones, the broken one
    console.asset("flights/snapshot")
    console.says("Failed in", "No metadata found")  # it was never run: there is nothing of it


def the_retry_builds_that_file_alone(console: Console) -> None:
    console.asset("flights/segments")
    console.press("Materialize")
    console.launch(f"{BROKEN}.csv")
    assert console.run() == "Success"
    console.logs("built 1 of 5 files listed, kept 4; staged, hidden", "listed")

    console.asset("flights/segments", "checks")
    console.says("Passed", re.compile("^5 of 5 files are built"))
    console.shot("check-passed")


def the_switch_shows_what_queries_see(console: Console) -> str:
    """The data version of the Pinot table."""
    console.asset("flights/snapshot")
    console.press("Materialize")
    assert console.run() == "Success"

    console.asset("flights/snapshot")
    expect(console.metadata("files")).to_have_text("5")
    expect(console.metadata("rows")).to_have_text(str(ALL))
    expect(console.metadata("retry_count")).to_have_text("1")
    expect(console.metadata("lineage_entry")).to_have_text(re.compile("^[0-9a-f-]{36}$"))
    expect(console.metadata("rollback_until")).to_have_text("no way back")
    console.says_not("Unsynced")
    console.asset("flights/snapshot", "events")
    console.says("rollback_until")
    console.shot("snapshot")

    console.asset("flights/segments", "partitions")
    console.says("Materialized (6)", "Missing (0)")
    return published(console, ALL)


def a_rewritten_file_is_stale(console: Console) -> None:
    console.asset("flights/source_files")
    console.press("Observe")
    assert console.run() == "Success"
    a_partition_is_stale(console)
    console.shot("partition-stale")


def a_partition_is_stale(console: Console) -> None:
    console.asset("flights/segments", "partitions")
    console.page.get_by_text(f"{REWRITTEN}.csv").first.click()
    console.says("Materialized (6)", "Unsynced (1)")


def the_files_sensor_starts_the_job(console: Console) -> None:
    console.sensor("flights_files")
    console.switch_on()
    console.says("1 run requested")
    console.shot("sensor")
    assert console.run_of_tick() == "Success"
    console.logs("built 1 of 5 files listed; staged, hidden", "listed")
    console.runs()
    console.says("0 new, 1 rewritten, 0 deleted; launched")
    console.shot("runs")


def the_launchpad_rolls_back(console: Console) -> None:
    console.job("pinot_rollback", "playground")
    console.choose_partition("flights")
    console.press("Launch Run")
    assert console.ended() == "Success"
    console.logs(f"now: 5 files, {ALL:,} rows", "queries")
    a_partition_is_stale(console)  # the file was rewritten, and what queries see is older


def published(console: Console, rows: int) -> str:
    """The data version of the Pinot table, which its page shows beside the number of rows."""
    console.asset("flights")
    expect(console.metadata("rows")).to_have_text(str(rows))
    console.asset("flights", "events")
    console.show_tags()
    return console.metadata("data_version").inner_text()
