"""`pinot-assets forget`: what it shows, its question, its JSON and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner, Result

from pinot_assets.cli.commands import forget
from pinot_assets.cli.main import app
from pinot_assets.core.exit_codes import ExitCode, code_of
from pinot_assets.errors import ForgetRefused
from pinot_assets.gc.forget import Forgotten, OnProgress
from pinot_assets.gc.forget_plan import ForgetPlan, StagedGroup, StagedKind, WhyKept
from pinot_assets.table_spec import TableSpec

TAR = "segments/t__cp1-aaaaaa_0_0_0.tar.gz"
PLAN = ForgetPlan(
    table="t",
    mode="append",
    uri="s3://b/t_OFFLINE",
    nodes=("pointer", "cp1"),
    shadow="",
    removed=(
        StagedGroup(StagedKind.SESSION, ("sessions/cp1-aaaaaa/[x]", "sessions/cp1-aaaaaa/y"), 1024),
        StagedGroup(StagedKind.BAD_ROWS, ("sessions/cp1-aaaaaa/bad-rows/z.parquet",), 2048),
    ),
    headers=(),
    kept=(StagedGroup(WhyKept.DOWNLOADED, (TAR,), 4096),),
    segments=3,
    ours=2,
    entries=1,
    holds=True,
    notes=(),
)
NOTHING = replace(PLAN, nodes=(), removed=(), kept=(), holds=False, ours=0)


@dataclass
class Asked:
    """What the command has called."""

    forgotten: list[ForgetPlan] = field(default_factory=list)


def call(
    *arguments: str, plan: ForgetPlan = PLAN, failed: dict[str, str] | None = None, typed: str = ""
) -> tuple[Result, Asked]:
    asked = Asked()

    @contextmanager
    def driver_of(spec: TableSpec, command: str) -> Iterator[None]:
        assert (spec.name, command) == ("t", "forget")
        yield None

    def forget_it(_: object, told: OnProgress) -> Forgotten:
        told(1, 3)
        asked.forgotten.append(plan)
        return Forgotten(plan, failed or {})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forget, "one_table", lambda name, _: SimpleNamespace(name=name))
        patch.setattr(forget, "open_driver", driver_of)
        patch.setattr(forget, "forget_plan", lambda _: plan)
        patch.setattr(forget, "forget_table", forget_it)
        return CliRunner().invoke(app, ["forget", "t", *arguments], input=typed), asked


def test_a_dry_run_says_what_goes_and_what_stays_and_deletes_nothing() -> None:
    result, asked = call("--dry-run")
    assert (result.exit_code, asked.forgotten) == (0, [])
    assert result.output.splitlines()[:6] == [
        "removes  in ZooKeeper: pointer, cp1",
        "removes  in s3://b/t_OFFLINE: 2 × plan, receipt or other object of a session, 1.0 KB",
        "         1 × rows put aside, 2.0 KB",
        "stays    in Pinot: the table, its schema and config, 3 segments, 1 lineage entry; "
        "queries do not change",
        f"stays    in s3://b/t_OFFLINE: 1 object, 4.0 KB, first {TAR}: "
        "segments in Pinot are downloaded from there",
        "stays    the files of the source, the table spec, and the history in Dagster",
    ]


def test_it_says_what_a_later_run_would_do() -> None:
    notes = json.loads(call("--dry-run", "--json")[0].stdout)["notes"]
    (later,) = (note for note in notes if "a later run of t" in note)
    assert "makes its ledger from the 2 segments in Pinot" in later
    assert "in the table twice" in later  # an append table shows a touched file twice
    assert any("a rollback holds changes back" in note for note in notes)
    of_sync = json.loads(call("--dry-run", "--json", plan=replace(PLAN, mode="sync"))[0].stdout)["notes"]
    assert not any("in the table twice" in note for note in of_sync)


def test_it_asks_and_no_is_an_answer() -> None:
    result, asked = call(typed="n\n")
    assert (result.exit_code, asked.forgotten) == (1, [])
    result, asked = call(typed="y\n")
    assert (result.exit_code, asked.forgotten) == (0, [PLAN])
    assert "forgotten: 2 nodes of ZooKeeper and 3 objects (3.0 KB)" in result.output


def test_json_answers_no_question() -> None:
    result, asked = call("--json")
    assert (result.exit_code, asked.forgotten) == (1, [])


def test_values_for_other_programs() -> None:
    values = json.loads(call("--yes", "--json")[0].stdout)
    assert (values["table"], values["forgotten"], values["notRemoved"]) == ("t", True, {})
    assert values["removes"]["nodes"] == ["pointer", "cp1"]
    assert values["removes"]["staged"][1] == {
        "what": "rows put aside",
        "objects": 1,
        "bytes": 2048,
        "first": "sessions/cp1-aaaaaa/bad-rows/z.parquet",
    }
    assert (values["keeps"]["segments"], values["keeps"]["lineageEntries"]) == (3, 1)
    assert values["keeps"]["staged"][0]["first"] == TAR


def test_what_could_not_be_deleted_is_told_with_the_command_to_type() -> None:
    result, _ = call("--yes", failed={"snapshots/1-x.json": "access denied"})
    assert result.exit_code == ExitCode.REFUSED
    assert "  snapshots/1-x.json: access denied" in result.output.splitlines()
    assert result.output.splitlines()[-1] == "  pinot-assets forget t"
    assert json.loads(call("--yes", "--json", failed={"x": "no"})[0].stdout)["forgotten"] is False


def test_nothing_is_left() -> None:
    result, asked = call(plan=NOTHING)
    assert (result.exit_code, asked.forgotten) == (0, [])
    assert result.output.splitlines()[-1] == "nothing is left of t to delete"


def test_a_refusal_has_its_own_exit_code() -> None:
    assert code_of(ForgetRefused("t is not forgotten")) is ExitCode.REFUSED
