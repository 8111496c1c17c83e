"""Standing health beside real trouble: real ZooKeeper and files, a Pinot in memory; once on a real one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from fakes.pinot.server_answers import WithServers
from fakes.waiting import until

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.errors import PinotAssetsError, PinotError, PushRefused, SourceError
from pinot_assets.health import CHECKS, CheckResult, Severity, examine, examine_table, summary
from pinot_assets.health.table_probe import Ports, TableProbe
from pinot_assets.pinot import HttpPinotClient, PinotConnection, ServerDisk, Timeouts
from pinot_assets.settings.environment import Settings
from pinot_assets.source import open_store

pytestmark = pytest.mark.integration

Answers = dict[str, CheckResult]


@pytest.fixture
def world(make_world: Callable[..., Any]) -> Any:
    return _with_two_files(make_world)


def _with_two_files(make_world: Callable[..., Any]) -> Any:
    """A table in sync mode with two published files, and servers that can be asked."""
    world = make_world("sync", consistentPushMaxRetries=3)
    world.servers = WithServers(world.pinot)
    world.write("F1", "F2")
    world.run()
    return world


def look(world: Any, **ports: Any) -> Answers:
    """One look, as the sensor takes it; `ports` replaces what is reached."""
    with world.store() as store:
        reached = {
            "store": lambda: store,
            "pinot": lambda: world.servers,
            "source": lambda: open_store(str(world.source), {}, UNLIMITED),
            "staging": lambda: world.staging,
            **ports,
        }
        answers = examine(TableProbe(world.read_spec(), Ports(**reached), world.now_ms))
    assert [a.name for a in answers] == [c.name for c in CHECKS]
    return {a.name: a for a in answers}


def failed(answers: Answers) -> dict[str, str]:
    """Name → severity of what failed; every failure says what to do next."""
    bad = [a for a in answers.values() if not a.passed]
    assert all(a.next_step for a in bad)
    return {a.name: a.severity.value for a in bad}


def raiser(error: Exception) -> Callable[[], Any]:
    def raises() -> Any:
        raise error

    return raises


def uploaded(world: Any, segment: str, key: str) -> bool:
    """As a person would who follows the next step. Pinot refuses a deleted name for some seconds."""
    tar = world.folder / "again.tar.gz"
    tar.write_bytes(world.staging.store.read(key))
    try:
        world.pinot.uploader(world.table).tar(segment, tar)
    except PushRefused:
        return False
    return True


def pushed_under(world: Any, name: str) -> None:
    """Somebody pushes a published segment once more under another name."""
    output = next(iter(world.read_snapshot().segments.values()))
    again = world.staging.put_renamed(output, name)
    world.pinot.push(world.table, [again], staged=world.staging)


# --- health --------------------------------------------------------------------------------------


def test_a_published_table_is_healthy_and_a_look_changes_nothing(world: Any) -> None:
    world.later(1)
    world.write(F1="F1.1")
    world.run()
    world.later(5)
    staged = sorted((i.key, i.fingerprint) for i in world.staging.store.list())
    before, calls = (world.read_pointer(), world.read_sessions()), len(world.pinot.calls)
    answers = look(world)
    assert failed(answers) == {}
    assert answers["rollback_window"].found == pytest.approx(15, abs=0.1)
    assert answers["replicas_and_crc"].found == 4
    assert answers["orphans"].numbers["staged_objects"] == 0  # the way back still needs the old tar
    assert set(world.pinot.calls[calls:]) <= {
        "all_segments", "get_table_config", "lineage", "online_replicas", "segment_crcs", "table_bytes",
        "version",
    }  # fmt: skip
    assert (world.read_pointer(), world.read_sessions()) == before
    assert sorted((i.key, i.fingerprint) for i in world.staging.store.list()) == staged
    world.later(20)
    later = look(world)
    assert failed(later) == {}
    assert later["rollback_window"].found == 0
    assert later["orphans"].numbers["staged_objects"] == 2


def test_a_table_that_was_never_published_is_healthy(make_world: Callable[..., Any]) -> None:
    world = make_world("sync")
    world.servers = WithServers(world.pinot)
    assert failed(look(world)) == {}


def test_each_moment_of_a_switch_is_healthy(world: Any) -> None:
    for step in ("start_replace_segments", "push", "end_replace_segments"):
        world.write(F1=f"F1.{step}")
        world.pinot.after(step, world.die)
        world.dies()
        assert set(failed(look(world))) <= {"snapshot_equals_source"}, step
        world.run()
        assert failed(look(world)) == {}, step


def test_a_rollback_half_way_is_healthy(world: Any) -> None:
    world.write("F3", F1="F1.1")
    world.run()
    world.pinot.after("revert_replace_segments", world.die)
    with pytest.raises(BaseException, match=r"^$") as death:
        world.rollback()
    assert death.typename == "Died"
    assert world.read_session() is not None
    assert set(failed(look(world))) <= {"snapshot_equals_source"}


# --- trouble -------------------------------------------------------------------------------------


def test_changes_of_the_source_wait(world: Any) -> None:
    world.write("F3", F1="F1.1")
    world.remove("F2")
    answer = look(world)["snapshot_equals_source"]
    assert answer.message == "1 missing (F3); 1 stale (F1); 1 extra (F2)"
    assert (answer.expected, answer.found, answer.severity) == (2, 0, Severity.WARN)


def test_a_foreign_lineage_entry(world: Any) -> None:
    published = min(world.read_snapshot().segments)
    entry = world.pinot.start_replace_segments(world.table, [published], ["merged_0"])
    answers = look(world)
    assert failed(answers) == {"lineage_clean": "WARN"}
    assert entry in answers["lineage_clean"].message
    pushed_under(world, "merged_0")
    world.pinot.end_replace_segments(world.table, entry)
    answers = look(world)
    assert answers["lineage_clean"].severity is Severity.ERROR
    assert published in answers["lineage_clean"].message


def test_a_stray_segment_is_an_error_until_the_next_trigger(world: Any) -> None:
    pushed_under(world, f"{world.table}__cp1-ffffff_0_0_0")
    answers = look(world)
    assert failed(answers) == {"orphans": "ERROR"}
    assert answers["orphans"].numbers["segments_visible"] == 1
    world.trigger()
    assert failed(look(world)) == {}


def test_a_stale_session_node(world: Any) -> None:
    world.write("F3")
    world.run()
    with world.store() as store:
        store.zk.create(f"{store.path}/cp0", b"left behind")
    answers = look(world)
    assert failed(answers) == {"orphans": "WARN"}
    assert "cp0" in answers["orphans"].message


def test_a_deleted_tar(world: Any) -> None:
    name = min(world.read_snapshot().segments)
    world.staging.store.delete(f"segments/{name}.tar.gz")
    answers = look(world)
    assert failed(answers) == {"staged_tars": "ERROR"}
    assert name in answers["staged_tars"].message


def test_a_damaged_ledger_is_an_error_where_it_is_needed_and_nowhere_else(world: Any) -> None:
    (
        world.folder / "staging" / f"{world.table}_OFFLINE" / world.read_pointer().current_snapshot.key
    ).write_text("{}")
    answers = look(world)
    assert answers["snapshot_equals_source"].severity is Severity.ERROR
    assert "restore the object" in answers["snapshot_equals_source"].next_step
    assert answers["session_progress"].passed


def test_broken_replicas_silent_servers_and_wrong_crcs(world: Any) -> None:
    name, (one, two) = min(world.read_snapshot().segments), ("Server_127.0.0.1_7051", "Server_127.0.0.1_7052")
    world.pinot.break_replica(world.table, name, one)
    assert failed(look(world)) == {"replicas_and_crc": "WARN"}
    world.pinot.break_replica(world.table, name, two)
    assert failed(look(world)) == {"replicas_and_crc": "ERROR"}
    for server in (one, two):
        world.pinot.mend_replica(world.table, name, server)
    world.servers.silent = {two}
    answers = look(world)
    assert failed(answers) == {"replicas_and_crc": "WARN", "head_room": "WARN"}
    world.servers.silent = set()
    world.servers.wrong_crcs = {(one, name): 1}
    assert failed(look(world)) == {"replicas_and_crc": "ERROR"}


def test_a_segment_that_somebody_deleted_from_pinot(world: Any) -> None:
    world.pinot.delete_segments(world.table, [min(world.read_snapshot().segments)])
    answers = look(world)
    assert failed(answers) == {"replicas_and_crc": "ERROR"}
    assert (answers["replicas_and_crc"].expected, answers["replicas_and_crc"].found) == (3, 2)


def test_a_server_whose_disk_is_full(world: Any) -> None:
    world.servers.disks = {"Server_127.0.0.1_7051": ServerDisk(total=1000, used=950)}
    answers = look(world)
    assert failed(answers) == {"head_room": "WARN"}
    assert answers["head_room"].numbers["server_disk_used_percent"] == 95.0


def test_a_file_that_keeps_failing_until_it_is_repaired(world: Any) -> None:
    world.write("F3")
    world.builder.failing = {"F3"}
    world.run()
    first = look(world)
    assert failed(first) == {"snapshot_equals_source": "WARN", "session_progress": "WARN"}
    assert first["session_progress"].numbers["retries_left"] == 3
    world.run()
    second = look(world)
    assert set(failed(second)) == {"snapshot_equals_source", "session_progress", "failing_files"}
    assert "F3 in 2 attempts (UNREADABLE: as the test wants it)" in second["failing_files"].message
    assert second["session_progress"].numbers["retries_left"] == 2
    world.builder.failing = set()
    world.run()
    assert failed(look(world)) == {}


def test_what_a_rollback_holds_back(world: Any) -> None:
    world.write("F3")
    world.run()
    world.rollback()
    answers = look(world)
    assert failed(answers) == {"snapshot_equals_source": "WARN"}
    assert "resume" in answers["snapshot_equals_source"].next_step


def test_a_session_whose_driver_died(world: Any) -> None:
    world.write("F3")
    world.builder.die_after = 0
    world.dies()
    world.later(2)
    answers = look(world)
    assert failed(answers) == {"snapshot_equals_source": "WARN", "session_progress": "WARN"}
    assert "driver died" in answers["session_progress"].next_step


# --- what cannot be reached ----------------------------------------------------------------------

NEEDS_PINOT = {"replicas_and_crc", "lineage_clean", "orphans", "rollback_window", "head_room"}


def test_without_pinot_the_other_checks_go_on_and_it_is_asked_once(world: Any) -> None:
    asked = 0

    class Away:
        def __getattr__(self, name: str) -> Any:
            nonlocal asked
            asked += 1
            raise PinotAssetsError("no Pinot", why="connection refused", hint="start it")

    answers = look(world, pinot=Away)
    unknown = {name for name, a in answers.items() if not a.known}
    assert unknown == NEEDS_PINOT
    assert set(failed(answers)) == NEEDS_PINOT
    assert {answers[n].severity for n in unknown} == {Severity.WARN}
    assert answers["lineage_clean"].description == "not known: no Pinot: connection refused\n→ start it"
    assert asked == 1


def test_without_the_source_and_without_the_staging_area(world: Any) -> None:
    away = SourceError("the bucket is away", hint="wait")
    answers = look(world, source=raiser(away))
    assert {n for n, a in answers.items() if not a.known} == {"snapshot_equals_source", "freshness"}
    answers = look(world, staging=raiser(away))
    assert answers["session_progress"].passed
    assert answers["replicas_and_crc"].known is False
    assert answers["snapshot_equals_source"].severity is Severity.WARN


def test_without_settings_nothing_is_raised(world: Any) -> None:
    answers = examine_table(world.read_spec(), raiser(PinotAssetsError("there is no Pinot to connect to")))
    assert summary(answers).startswith("12 checks, 12 failed: snapshot_equals_source (not known)")


def test_a_check_that_breaks_is_a_failed_check_with_its_reason(world: Any) -> None:
    answers = look(world, source=raiser(ZeroDivisionError("bug")))
    assert "ZeroDivisionError('bug')" in answers["snapshot_equals_source"].message
    assert answers["replicas_and_crc"].passed


def test_a_closed_port(make_addressed_world: Callable[..., Any]) -> None:
    world = _with_two_files(make_addressed_world)
    connection = PinotConnection("http://127.0.0.1:1", timeouts=Timeouts(connect=0.2, call=0.5))
    settings = Settings(connection, world.zookeeper, "pinot")
    started = time.monotonic()
    answers = {a.name: a for a in examine_table(world.read_spec(), lambda: settings)}
    assert {n for n, a in answers.items() if not a.known} == NEEDS_PINOT
    assert time.monotonic() - started < 5


def test_a_look_knows_that_a_run_moved_the_table_meanwhile(world: Any) -> None:
    with world.store() as store:
        source = open_store(str(world.source), {}, UNLIMITED)
        probe = TableProbe(
            world.read_spec(),
            Ports(lambda: store, lambda: world.servers, lambda: source, lambda: world.staging),
            world.now_ms,
        )
        examine(probe)
        assert not probe.ask_if_moved()
        world.write("F3")
        world.run()
        assert probe.ask_if_moved()


# --- a real Pinot --------------------------------------------------------------------------------


def test_on_a_real_pinot(real_world: Any) -> None:
    world = real_world

    def answers() -> Answers:
        settings = Settings(world.pinot.connection, world.zookeeper, "pinot")
        return {a.name: a for a in examine_table(world.read_spec(), lambda: settings)}

    def set_quota(storage: str) -> None:
        """In Pinot alone: what holds is what it says, not the spec."""
        config = world.pinot.get_table_config(world.table)
        world.pinot.update_table({**config, "quota": {"storage": storage}})

    set_quota("1G")
    assert failed(answers()) == {}  # nothing published, and no server reports a size yet
    world.write("F1", "F2")
    world.run()
    world.write(F1="F1.1")
    world.run()
    healthy = answers()
    assert failed(healthy) == {}
    assert (healthy["replicas_and_crc"].expected, healthy["replicas_and_crc"].found) == (4, 4)
    assert healthy["rollback_window"].found == pytest.approx(20, abs=0.1)
    used = world.pinot.table_bytes(world.table)  # three segments, hidden ones too, on two servers
    room = healthy["head_room"].numbers
    assert room["quota_total_bytes"] - room["quota_free_bytes"] == used > 3 * 2 * 500
    set_quota(str(used // 2))
    assert failed(answers()) == {"head_room": "WARN"}
    set_quota("1G")

    with HttpPinotClient(world.pinot.connection) as servers:
        names = {
            s
            for r in world.pinot.online_replicas(world.table, world.read_snapshot().segments).values()
            for s in r
        }
        crcs = world.pinot.segment_crcs(world.table)
        assert servers.crcs_on_servers(world.table, names) == dict.fromkeys(names, crcs)
        assert len(crcs) == 3
        assert servers.crcs_on_servers("no_such_table", names) == {name: {} for name in names}
        gone = servers.crcs_on_servers(world.table, ["Server_nowhere_1"])["Server_nowhere_1"]
        assert isinstance(gone, PinotError)
        disks = servers.server_disks([*names, "Server_nowhere_1"])  # 0.11 tells of none
        assert set(disks) <= {*names, "Server_nowhere_1"}
        assert isinstance(disks["Server_nowhere_1"], PinotError)

    (one,) = (s for s in world.read_snapshot().segments if world.read_snapshot().session in s)
    (other,) = set(world.read_snapshot().segments) - {one}
    entry = world.pinot.start_replace_segments(world.table, [one], ["merged_0"])
    assert failed(answers()) == {"lineage_clean": "WARN", "rollback_window": "WARN"}
    world.pinot.force_revert_replace_segments(world.table, entry)
    pushed_under(world, f"{world.table}__cp1-ffffff_0_0_0")
    until(lambda: "orphans" in failed(answers()), 20)
    assert failed(answers()) == {"orphans": "ERROR"}
    world.pinot.delete_segments(world.table, [f"{world.table}__cp1-ffffff_0_0_0", other])
    until(lambda: failed(answers()) == {"replicas_and_crc": "ERROR"}, 20)
    lost = answers()["replicas_and_crc"]
    assert other in lost.message
    assert lost.numbers["segments_lost"] == 1
    key = f"segments/{other}.tar.gz"
    assert key in lost.next_step
    until(lambda: uploaded(world, other, key), 20)
    until(lambda: failed(answers()) == {}, 20)
