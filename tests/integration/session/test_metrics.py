"""Metrics of tables that live: real ZooKeeper and files, a Pinot in memory; scraped once of a real one."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from fakes.monitoring.pushgateway import Numbers, numbers, pushgateway
from fakes.pinot.server_answers import WithServers
from fakes.waiting import until

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.errors import SessionHeld, SnapshotIncomplete
from pinot_assets.health.table_probe import Ports, TableProbe
from pinot_assets.metrics.exposition import prometheus_text
from pinot_assets.metrics.health import samples_of_probe
from pinot_assets.metrics.pushing import GATEWAY, pushed_after
from pinot_assets.metrics.session import samples_of_store
from pinot_assets.settings.local_stack import StackState
from pinot_assets.source import open_store

pytestmark = pytest.mark.integration

HOUR = 3600


def numbers_of(world: Any) -> Numbers:
    """Both parts of a look, without prefix and table."""
    with world.store() as store:
        ports = Ports(
            store=lambda: store,
            pinot=lambda: WithServers(world.pinot),
            source=lambda: open_store(str(world.source), {}, UNLIMITED),
            staging=lambda: world.staging,
        )
        samples = [
            *samples_of_store(world.read_spec(), store, world.staging),
            *samples_of_probe(TableProbe(world.read_spec(), ports, world.now_ms)),
        ]
    return plain(prometheus_text(samples), world.table)


def plain(text: str, table: str) -> Numbers:
    return {
        (key[0].removeprefix("pinot_assets_"), *(label for label in key[1:] if label != table)): value
        for key, value in numbers(text).items()
    }


def test_the_life_of_a_table_in_numbers(make_world: Callable[..., Any]) -> None:
    world = make_world("sync", consistentPushMaxRetries=3)
    before = numbers_of(world)
    assert ("last_publish_timestamp_seconds",) not in before
    assert before["source_files",] == 0

    world.write("F1", "F2")
    assert numbers_of(world)["source_changes", "new"] == 2
    world.run()
    published = numbers_of(world)
    assert published["last_publish_timestamp_seconds",] == world.read_snapshot().published_ms / 1000
    assert [published[f"published_{what}",] for what in ("files", "segments", "rows")] == [2, 2, 2]
    assert published["audit_passed",] == 1
    of_check = [published[f"audit_check_{what}", "rows_as_built"] for what in ("passed", "expected", "found")]
    assert of_check == [1, 4, 4], "two replicas of two segments with one row each"
    assert published["last_switch_duration_seconds",] >= 0
    assert ("oldest_change_timestamp_seconds",) not in published
    assert not any(value for key, value in published.items() if key[0] == "health_check_failed")

    world.write("F3", F2="new")
    world.builder.failing = {"F3"}
    world.run()
    failed = numbers_of(world)
    assert (failed["session_open",], failed["session_failed",]) == (1, 1)
    assert failed["session_state", "IN_PROGRESS"] == 1
    assert (failed["session_files", "failed"], failed["session_files", "done"]) == (1, 1)
    assert (failed["source_changes", "new"], failed["source_changes", "rewritten"]) == (1, 1)
    assert failed["health_check_failed", "session_progress", "warn"] == 1
    assert failed["last_publish_timestamp_seconds",] == published["last_publish_timestamp_seconds",]
    world.run()
    assert (numbers_of(world)["session_retries",], numbers_of(world)["session_retries_left",]) == (1, 2)

    world.builder.failing = set()
    world.run()
    again = numbers_of(world)
    assert (again["session_open",], again["session_failed",], again["published_files",]) == (0, 0, 3)
    window = again["rollback_window_end_timestamp_seconds",] - again["last_publish_timestamp_seconds",]
    assert 19 * HOUR < window <= 20 * HOUR

    world.rollback()
    assert numbers_of(world)["held_back_changes",] == 2


def left_out(world: Any) -> float:
    return numbers_of(world)["source_files_left_out",]


def test_files_that_were_left_out_are_told_while_they_are_there_as_they_were(
    make_world: Callable[..., Any],
) -> None:
    world = make_world("append", consistentPushEnabled=False, consistentPushMaxRetries=0)
    world.write("F1", "F2", "F3")
    world.builder.failing = {"F2", "F3"}
    world.run()
    assert left_out(world) == 2
    assert numbers_of(world)["source_changes", "new"] == 2
    world.remove("F2")
    assert left_out(world) == 1
    world.write(F3="repaired")
    assert left_out(world) == 0


def test_a_session_that_is_cleared_leaves_nothing_out(make_world: Callable[..., Any]) -> None:
    world = make_world("sync")
    world.write("F1", "F2")
    world.builder.failing = {"F2"}
    world.run()
    assert left_out(world) == 0, "the open session tells of them"
    world.clear()
    assert (left_out(world), numbers_of(world)["session_open",]) == (0, 0)


def test_a_run_is_pushed_with_what_it_did(make_world: Callable[..., Any]) -> None:
    world = make_world("sync")
    world.write("F1", "F2")
    said: list[str] = []
    with pushgateway() as gateway:
        with (
            world.driver() as driver,
            pushed_after(driver, said.append, {GATEWAY: gateway.url}),
        ):
            driver.trigger()
            driver.audit()
            driver.publish()
        (group,) = gateway.groups.values()
        name = world.table
        assert group["pinot_assets_run_success", name] == 1
        assert group["pinot_assets_run_files", "built", name] == 2
        assert group["pinot_assets_run_rows", name] == 2
        assert ("pinot_assets_lease_held", name) not in group, "that is the endpoint's to tell"
        assert group["pinot_assets_audit_check_passed", "files_built", name] == 1
    assert said == []


def test_a_run_that_fails_or_is_turned_away(make_world: Callable[..., Any]) -> None:
    world = make_world("sync")
    with pushgateway() as gateway:
        with world.driver() as holds, world.driver() as driver:
            holds.take()
            with (
                pytest.raises(SessionHeld),
                pushed_after(driver, print, {GATEWAY: gateway.url}),
            ):
                driver.trigger()
        assert gateway.groups == {}, "the other one's numbers stay"
        with (
            world.driver() as driver,
            pytest.raises(SnapshotIncomplete),
            pushed_after(driver, print, {GATEWAY: gateway.url}),
        ):
            driver.publish()
        (group,) = gateway.groups.values()
    assert group["pinot_assets_run_success", world.table] == 0
    assert group["pinot_assets_run_step_duration_seconds", "publish", world.table] > 0


@contextmanager
def served(world: Any, stack: StackState) -> Iterator[str]:
    """`pinot-assets metrics` as a person starts it; gives the address that it says."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PINOT_")}
    environment |= {
        "PINOT_CONTROLLER_URL": stack.controller_url,
        "PINOT_ZOOKEEPER": stack.zookeeper,
        "PYTHONUNBUFFERED": "1",
    }
    tables = str(world.folder / "tables")
    process = subprocess.Popen(
        [sys.executable, "-m", "pinot_assets", "metrics", "--tables", tables, "--listen", "127.0.0.1:0"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        (url,) = re.findall(r"http://127\.0\.0\.1:\d+/metrics", process.stdout.readline())
        yield url
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        process.stdout.close()


def test_a_real_table_is_scraped(real_world: Any, stack: StackState) -> None:
    world = real_world
    world.write("F1", F2="a b")
    world.run()
    with served(world, stack) as url:

        def scraped() -> Numbers:
            return plain(httpx.get(url).raise_for_status().text, world.table)

        until(lambda: {("up", "session"), ("up", "health")} <= scraped().keys())
        values = scraped()
    assert (values["up", "session"], values["up", "health"]) == (1, 1)
    assert [values[f"published_{what}",] for what in ("files", "segments", "rows")] == [2, 2, 3]
    assert values["source_files",] == 2
    assert values["audit_check_passed", "replicas_online"] == 1
    failing = {key for key, value in values.items() if key[0].startswith("health_check_failed") and value}
    assert failing == set()
    assert values["last_publish_timestamp_seconds",] == world.read_snapshot().published_ms / 1000
