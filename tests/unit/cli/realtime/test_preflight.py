"""`pinot-assets realtime`: what it lists, and the preflight from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from fakes.realtime.memory import FakeRealtime
from typer.testing import CliRunner

from pinot_assets.cli.main import app
from pinot_assets.cli.realtime import preflight, table
from pinot_assets.core.connections import PinotConnection
from pinot_assets.errors import PinotNotFound, PinotUnreachable, PreflightRefused, SpecError
from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.realtime.preflight.facts import Facts
from pinot_assets.realtime.preflight.gather import gather
from pinot_assets.realtime.read.stream import StreamRetention
from pinot_assets.settings.environment import Settings
from pinot_assets.table_spec import load_tables
from pinot_assets.table_spec.tables.apply import ApplyPlan, plan_apply

COMMANDS = ("preflight", "status", "health", "repair", "restart-from", "pauseless", "rebalance", "drill")


@pytest.fixture
def fake() -> FakeRealtime:
    made = FakeRealtime()
    made.segment(sequence=0)
    return made


@pytest.fixture
def run(fake, monkeypatch, tmp_path) -> Callable[..., object]:
    """Runs a command against the fake, in a folder without table specs unless a test makes some."""

    def read(pinot: RealtimePinot, table: str, config: dict, *aim: object) -> Facts:
        return gather(pinot, table, config, *aim, read_stream=lambda _: StreamRetention(7 * 86_400_000))

    settings = Settings(PinotConnection("http://controller:9000"), "127.0.0.1:1", "test")
    for module in (preflight, table):
        monkeypatch.setattr(module, "load_settings", lambda: settings)
        monkeypatch.setattr(module, "RealtimePinot", lambda _: fake.pinot())
    monkeypatch.setattr(preflight, "gather", read)
    monkeypatch.setenv("PINOT_ASSETS_TABLES", str(tmp_path))
    return lambda *words: CliRunner().invoke(app, ["realtime", *words])


def test_help_lists_every_command(run):
    output = run("--help").output
    assert all(command in output for command in COMMANDS)
    assert "pinot-assets realtime preflight TABLE" in output
    assert "REALTIME tables" in CliRunner().invoke(app, ["--help"]).output


def test_the_other_commands_do_not_wait_for_these():
    code = "import sys, pinot_assets.cli.main; print('pinot_assets.cli.realtime.group' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_every_rule_is_shown_with_its_fix(run):
    result = run("preflight", "clicks")
    assert result.exit_code == 0
    assert "clicks_REALTIME for bypass, pauseless, Pinot 1.5.1" in result.output
    assert "✓ one_stream: one stream" in result.output
    assert "→ set pinot.broker.new.segment.expiration.seconds=60" in result.output
    assert "warn" in result.output.splitlines()[-1]


def test_a_refusal_is_exit_code_2(run, fake):
    fake.version = "0.11.0"
    result = run("preflight", "clicks_REALTIME", "--json")
    assert result.exit_code == 2
    told = json.loads(result.output)
    assert told["refused"] is True
    assert {"rule": "version", "verdict": "refuse"}.items() <= told["answers"][0].items()


def test_what_is_to_be_switched_on(run, fake):
    fake.config["ingestionConfig"]["streamIngestionConfig"]["pauselessConsumptionEnabled"] = False
    assert json.loads(run("preflight", "clicks", "--json").output)["for"] == ["bypass"]
    told = json.loads(run("preflight", "clicks", "--for", "pauseless", "--json").output)
    assert told["for"] == ["bypass", "pauseless"]


def spec_of(fake: FakeRealtime, folder: Path, **segments: str) -> Path:
    schema = {
        "schemaName": "clicks",
        "dimensionFieldSpecs": [{"name": "id", "dataType": "STRING"}],
        "dateTimeFieldSpecs": [
            {"name": "at", "dataType": "TIMESTAMP", "format": "TIMESTAMP", "granularity": "1:SECONDS"}
        ],
    }
    table = {
        **{key: value for key, value in fake.config.items() if key != "upsertConfig"},
        "segmentsConfig": {**fake.config["segmentsConfig"], "timeColumnName": "at", **segments},
        "tenants": {},
        "tableIndexConfig": {},
        "metadata": {},
    }
    file = folder / "clicks.yaml"
    file.write_text(yaml.safe_dump({"schema": schema, "table": table, "realtime": {}}))
    return file


def test_the_table_spec_comes_first(run, fake, tmp_path):
    spec_of(fake, tmp_path, replication="1")
    result = run("preflight", "clicks")
    assert result.exit_code == 2
    assert "✗ peer_scheme: Pinot refuses a peer scheme with replication 1" in result.output


def test_a_wrong_name_says_which_there_are(run):
    result = run("preflight", "click")
    assert isinstance(result.exception, PinotNotFound)
    assert "did you mean clicks?" in str(result.exception)


def test_its_own_spec_that_is_wrong_is_told(run, tmp_path):
    (tmp_path / "clicks.yaml").write_text("[")
    assert isinstance(run("preflight", "clicks").exception, SpecError)


def test_the_spec_of_another_table_stops_nothing(run, tmp_path):
    (tmp_path / "x.yaml").write_text("[")
    result = run("preflight", "clicks")
    assert not isinstance(result.exception, SpecError)
    assert f"warning: left out: {tmp_path / 'x.yaml'}:1: " in result.stderr


def test_a_pinot_that_is_away_is_told(run, fake):
    fake.away.add("/tables")
    assert isinstance(run("preflight", "clicks").exception, PinotUnreachable)


def test_the_gate_refuses_what_the_preflight_refuses(run, fake, tmp_path, capsys):
    class Held:
        def get_schema(self, name: str) -> None:
            return None

        def get_realtime_config(self, table: str) -> dict:
            return fake.config

    def plan() -> ApplyPlan:
        return plan_apply(load_tables(tmp_path).realtime["clicks"], Held())

    spec_of(fake, tmp_path, replication="1")
    with pytest.raises(PreflightRefused, match="peer_scheme"):
        preflight.gate(plan())
    assert "✗ peer_scheme" in capsys.readouterr().out
    spec_of(fake, tmp_path)
    preflight.gate(plan())
