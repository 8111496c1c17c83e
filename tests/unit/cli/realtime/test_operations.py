"""`realtime repair`, `restart-from`, `pauseless`, `rebalance` and `drill`, against the in-memory Pinot."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from fakes.realtime.memory import S1, S2, FakeRealtime
from fakes.zookeeper.memory import FakeZooKeeper
from typer.testing import CliRunner

from pinot_assets.cli.main import app
from pinot_assets.cli.realtime import operations as operation_commands
from pinot_assets.cli.realtime import table
from pinot_assets.core.connections import PinotConnection
from pinot_assets.errors import PinotAssetsError, PreflightRefused, SessionError, SpecDrift
from pinot_assets.realtime.lease import OperationsLease, OperationsStore
from pinot_assets.realtime.operations import pauseless, table_operation
from pinot_assets.realtime.operations.drill import DrillObservation
from pinot_assets.realtime.read.reading import read_state
from pinot_assets.realtime.repair import apply
from pinot_assets.session.values.state import Owner
from pinot_assets.settings.environment import Settings


@pytest.fixture
def fake() -> FakeRealtime:
    made = FakeRealtime()
    made.segment(0, 0)
    made.segment(0, 1, "IN_PROGRESS", start=100, end=200)
    return made


Run = Callable[..., Result]


@pytest.fixture
def run(fake: FakeRealtime, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs a command; what is remembered lasts from one to the next."""
    zookeeper = FakeZooKeeper()
    zookeeper.client().ensure_path("/test/PROPERTYSTORE")
    settings = Settings(PinotConnection("http://controller:9000"), "127.0.0.1:1", "test")

    @contextmanager
    def operations(_: Settings, table: str) -> Iterator[OperationsStore]:
        yield OperationsStore(zookeeper.client(), "test", table)  # type: ignore[arg-type]

    @contextmanager
    def hold(given: Settings, table: str, command: str) -> Iterator[OperationsLease]:
        with operations(given, table) as store, store.take(Owner(command, "host", 1, 1)) as lease:
            yield lease

    def look(*args: Any, **options: Any) -> Any:
        stream = fake.look().stream
        return read_state(*args, **options, read_stream=lambda _: stream, clock=lambda: fake.now_ms / 1000)

    monkeypatch.setattr(table, "load_settings", lambda: settings)
    monkeypatch.setattr(table, "RealtimePinot", lambda _: fake.pinot())
    monkeypatch.setattr(table_operation, "read_state", look)
    monkeypatch.setattr(table_operation, "open_operations", operations)
    monkeypatch.setattr(table_operation, "hold_table", hold)
    monkeypatch.setattr(apply, "FIRST_LOOK_S", 0.01)
    monkeypatch.setattr(pauseless, "PAUSE_S", 0.01)
    monkeypatch.setattr(operation_commands, "before_drain", lambda pinot: lambda state, goal: ())
    monkeypatch.setenv("PINOT_ASSETS_TABLES", str(tmp_path))
    fake.controller_config["controller.data.dir"] = str(tmp_path)

    def invoke(*words: str) -> Result:
        return CliRunner().invoke(app, ["realtime", *words], env={"COLUMNS": "300"})

    return invoke


# --- repair -------------------------------------------------------------------------------------------


def test_a_healthy_table(run: Run) -> None:
    found = run("repair", "clicks")
    assert (found.exit_code, found.output) == (0, "nothing to repair\n")


def test_a_plan_says_all_that_a_step_promises(run: Run, fake: FakeRealtime) -> None:
    name = fake.segment(1, 0, url="")
    fake.segment(1, 1, "IN_PROGRESS", start=100, end=200)
    fake.stream[1] = (0, 200)
    found = run("repair", "clicks")
    assert found.exit_code == 2
    assert f"step upload {name}: only servers have it" in found.output
    assert found.output.endswith("nothing was done; to do it, add --apply\n")
    for label in ("by", "only if", "effect", "seen by", "if not"):
        assert f"      {label:<8}" in found.output
    assert not [call for call in fake.asked if "uploadFromServer" in call]
    told = json.loads(run("repair", "clicks", "--json").output)
    assert told["steps"][0]["verified_by"].startswith("the segment's node has status DONE")
    assert told["done"] == []


def test_what_is_planned_is_done(run: Run, fake: FakeRealtime) -> None:
    name = fake.segment(1, 0, url="")
    fake.segment(1, 1, "IN_PROGRESS", start=100, end=200)
    fake.stream[1] = (0, 200)
    found = run("repair", "clicks", "--apply")
    assert found.exit_code == 0, found.output
    assert f"✓ upload {name}: done" in found.output
    assert "nothing to repair" in found.output
    assert fake.nodes[name].fields["segment.download.url"]


@pytest.mark.parametrize("version", ["0.11.0", "1.0.0", "1.2.0", "1.3.0", "1.4.0", "1.5.1"])
def test_every_release_is_mended_by_what_it_has(run: Run, fake: FakeRealtime, version: str) -> None:
    fake.version = version
    if version < "1.4":
        fake.config["ingestionConfig"]["streamIngestionConfig"]["pauselessConsumptionEnabled"] = False
    peers_only = fake.segment(1, 0, url="")
    broken = fake.segment(1, 1, states={S1: "ONLINE", S2: "ERROR"}, start=100, end=200)
    fake.segment(1, 2, "IN_PROGRESS", start=200, end=300)
    fake.segment(2, 0)  # nobody consumes its partition
    fake.stream |= {1: (0, 300), 2: (0, 200)}
    found = run("repair", "clicks", "--apply")
    assert found.exit_code == 0, (found.output, found.exception)
    assert found.output.count("✓") == 3
    assert fake.nodes[peers_only].fields["segment.download.url"]
    assert fake.external[broken] == {S1: "ONLINE", S2: "ONLINE"}
    assert any(name.startswith("clicks__2__1__") for name in fake.nodes)


def test_what_is_not_mended_is_told(run: Run, fake: FakeRealtime) -> None:
    fake.segment(1, 0, url="", states={})
    fake.kill(S1)
    fake.kill(S2)
    found = run("repair", "clicks", "--apply")
    assert found.exit_code == 2
    assert "not repaired" in found.output
    assert "→ start one of them" in found.output


def test_a_left_over_upload_is_swept(run: Run, fake: FakeRealtime, tmp_path: Path) -> None:
    import os

    folder = tmp_path / "clicks"
    folder.mkdir()
    left = folder / "clicks__0__0__20260202T0240Z.tmp.1"
    left.write_bytes(b"x")
    os.utime(left, (fake.now_ms / 1000 - 7200,) * 2)
    assert run("repair", "clicks", "--apply").exit_code == 0
    assert not left.exists()


def test_a_plan_needs_no_zookeeper(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: object) -> None:
        raise SessionError("ZooKeeper does not answer")

    monkeypatch.setattr(table_operation, "open_operations", silent)
    found = run("repair", "clicks")
    assert found.exit_code == 0
    assert "what was tried before cannot be read" in found.stderr
    assert json.loads(run("repair", "clicks", "--json").stdout)["steps"] == []


# --- restart-from -------------------------------------------------------------------------------------


def lost(fake: FakeRealtime) -> str:
    fake.config["dedupConfig"] = {"dedupEnabled": True}
    fake.segment(1, 0)
    name = fake.segment(1, 1, "COMMITTING", states={S1: "ERROR", S2: "ERROR"}, start=100, end=200)
    fake.segment(1, 2, "IN_PROGRESS", start=200, end=300)
    fake.stream[1] = (0, 300)
    return name


def test_nothing_is_deleted_without_the_tables_name(run: Run, fake: FakeRealtime) -> None:
    name = lost(fake)
    assert "restart-from" in run("repair", "clicks").output
    shown = run("restart-from", "clicks", name, "--dry-run")
    assert shown.exit_code == 0
    assert f"delete {name}" in shown.output
    unsure = run("restart-from", "clicks", name, "--confirm", "other")
    assert unsure.exit_code == 2
    assert "--confirm clicks" in unsure.output
    refused = run("restart-from", "clicks", "nope", "--confirm", "clicks")
    assert (refused.exit_code, "no segment nope" in refused.output) == (2, True)
    assert name in fake.nodes


def test_a_lost_segment_is_read_again(run: Run, fake: FakeRealtime) -> None:
    name = lost(fake)
    found = run("restart-from", "clicks", name, "--confirm", "clicks")
    assert found.exit_code == 0, (found.output, found.exception)
    assert "segments deleted" in found.output
    # The same place in the partition, read anew from where the lost one began.
    again = fake.nodes[name].fields
    assert again["segment.realtime.status"] == "IN_PROGRESS"
    assert again["segment.realtime.startOffset"] == "100"


# --- pauseless ----------------------------------------------------------------------------------------


def test_what_is_on_already(run: Run) -> None:
    found = run("pauseless", "enable", "clicks")
    assert (found.exit_code, "was on already" in found.output) == (0, True)
    assert "nothing to do" in run("pauseless", "enable", "clicks", "--dry-run").output


def test_the_way_is_shown(run: Run, fake: FakeRealtime) -> None:
    found = run("pauseless", "disable", "clicks", "--dry-run")
    assert found.exit_code == 0
    assert "first: pause" in found.output
    assert not [call for call in fake.asked if call.startswith(("POST controller", "PUT"))]


def test_an_interrupted_one_says_how_to_go_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pauseless.PauselessChange, "run", dies)
    found = run("pauseless", "disable", "clicks")
    assert found.exit_code == 130
    assert "interrupted; clicks_REALTIME may be paused; run the same command again" in found.stderr


def test_the_spec_comes_first(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Spec:
        path = "tables/clicks.yaml"
        table_json = FakeRealtime().config

    monkeypatch.setattr(operation_commands, "realtime_table", lambda name, _: {"clicks": Spec()}[name])
    found = run("pauseless", "disable", "clicks")
    assert isinstance(found.exception, SpecDrift)
    assert "pauselessConsumptionEnabled: false" in str(found.exception)


# --- rebalance ----------------------------------------------------------------------------------------


def test_a_rebalance_is_judged(run: Run, fake: FakeRealtime) -> None:
    found = run("rebalance", "clicks")
    assert found.exit_code == 0, found.output
    assert "0 segments would move" in found.output
    refused = run("rebalance", "clicks", "--option", "downtime=true")
    assert refused.exit_code == 2
    assert "REFUSE downtime" in refused.output
    told = json.loads(run("rebalance", "clicks", "--option", "bestEfforts=true", "--json").output)
    assert [one["name"] for one in told["objections"]] == ["bestEfforts"]
    assert told["refused"] is False


def test_a_refused_rebalance_is_not_begun(run: Run, fake: FakeRealtime) -> None:
    found = run(
        "rebalance", "clicks", "--apply", "--option", "minAvailableReplicas=0", "--option", "downtime=true"
    )
    assert isinstance(found.exception, PreflightRefused)
    assert not [call for call in fake.asked if call.endswith("/rebalance") and "dryRun" not in call][1:]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("downtime", "write name=value"),
        ("dryRun=false", "write name=value"),
        ("minAvailableReplica=1", "did you mean minAvailableReplicas?"),
        ("minAvailableReplicas=some", "invalid literal"),
    ],
)
def test_an_option_that_is_none(run: Run, fake: FakeRealtime, option: str, words: str) -> None:
    found = run("rebalance", "clicks", "--option", option)
    assert isinstance(found.exception, PinotAssetsError)
    assert words in str(found.exception)
    assert fake.asked == []  # Pinot would ignore it, and do something else


# --- drill --------------------------------------------------------------------------------------------


def test_no_drill_on_a_table_that_was_not_named_twice(run: Run) -> None:
    found = run("drill", "clicks", "--break", "true", "--mend", "true", "--yes-this-is-a-test-table", "x")
    assert isinstance(found.exception, PinotAssetsError)
    assert "the drill on clicks_REALTIME was not started" in str(found.exception)


@pytest.mark.parametrize(
    ("command", "words"),
    [("sh -c 'unclosed", "No closing quotation"), ("no-such-command x", "no command no-such-command")],
)
def test_a_command_that_cannot_run_is_told_before_anything_is_broken(
    run: Run, fake: FakeRealtime, tmp_path: Path, command: str, words: str
) -> None:
    broken = tmp_path / "broken"
    found = run(
        *("drill", "clicks", "--yes-this-is-a-test-table", "clicks"),
        *("--break", f"touch {broken}", "--mend", command),
    )
    assert isinstance(found.exception, PinotAssetsError)
    assert words in str(found.exception)
    assert not broken.exists()


def test_a_drill_runs_its_commands(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Short(operation_commands.Drill):
        def run(self) -> tuple[DrillObservation, ...]:
            self.query()
            try:
                self.break_store()
            finally:
                self.mend_store()
            return (
                DrillObservation("ingestion", True, "ratio 0.99"),
                DrillObservation("back-fill", False, "1 left"),
            )

    monkeypatch.setattr(operation_commands, "Drill", Short)
    words = ["drill", "clicks", "--yes-this-is-a-test-table", "clicks"]
    broken, mended = tmp_path / "broken", tmp_path / "mended"
    found = run(*words, "--break", f"touch {broken}", "--mend", f"touch {mended}")
    assert found.exit_code == 2
    assert "✓ ingestion: ratio 0.99" in found.output
    assert broken.exists()
    assert mended.exists()
    assert (
        json.loads(run(*words, "--break", "true", "--mend", "true", "--json").output)["back-fill"]["passed"]
        is False
    )
    mended.unlink()
    failed = run(*words, "--break", "false", "--mend", f"touch {mended}")
    assert isinstance(failed.exception, PinotAssetsError)
    assert mended.exists()
    assert isinstance(run(*words, "--break", " ", "--mend", "true").exception, PinotAssetsError)
    secret = run(*words, "--break", "false --key GEHEIM", "--mend", "true")
    assert isinstance(secret.exception, PinotAssetsError)
    assert "exit status 1" in str(secret.exception)
    assert "GEHEIM" not in str(secret.exception)
