"""`plan`: what people see first, and what programs read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from model.world.lives import failed, lived, make_table, planned, remove, run_now, write
from model.world.table import TABLE, ModelTable
from model.world.table import run as trigger
from typer.testing import CliRunner, Result

from pinot_assets.cli.commands import plan as plan_command
from pinot_assets.cli.main import app
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import ListingFailed, SwitchConflict
from pinot_assets.pinot import LineageEntry, LineageState, ServerDisk
from pinot_assets.session.plan_report.plan_report import PlanReport
from pinot_assets.session.plan_report.rendering import SHOWN
from pinot_assets.session.values.state import Owner
from pinot_assets.table_spec.blocks.audit import Audit, RowChange

CHANGED = "a new, a rewritten, a deleted"


def call(found: PlanReport | Exception, *options: str) -> Result:
    class Stub:
        def plan(self) -> PlanReport:
            if isinstance(found, Exception):
                raise found
            return found

    @contextmanager
    def driver_of(spec: Any, command: str) -> Iterator[Any]:
        assert (spec, command) == ("model", "plan")
        yield Stub()

    def spec_of(name: str, tables: Path | None) -> Any:
        return name

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_command, "one_table", spec_of)
        patch.setattr(plan_command, "open_driver", driver_of)
        return CliRunner().invoke(app, ["plan", "model", *options])


def said(found: PlanReport) -> list[str]:
    """Each line, its blanks as one."""
    result = call(found)
    assert result.exit_code == 0, result.output
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


def has(lines: list[str], *texts: str) -> None:
    for text in texts:
        assert any(text in line for line in lines), (text, lines)


def test_files_and_versions() -> None:
    plan = planned(lived("sync", CHANGED))
    (rewritten,) = plan.of_kind("rewritten")
    assert rewritten.before is not None
    assert rewritten.after is not None
    lines = said(plan)
    has(
        lines,
        "→ a new session builds 2 files of 4 B, removes 1 file",
        f"listed 2 files in {plan.source}",
        f"~ A 2 B {rewritten.before.token} → 2 B {rewritten.after.token}",
        "new 1 file, 2 B",
        "deleted 1 file, 2 B",
        "segments 2 → about 2: 2 replaced, about 2 new",
        "rows 2 → about 2: 2 removed, about 2 added (estimated from the published files)",
        "quota none is set",
        "disk of 2 servers: not known (Pinot's servers report it since 1.3)",
        "way back after the switch: by one revert for 20 h (until 2023-11-15",
        "sync 2 files, 4 B 2 segments this table's mode",
        "swap 2 files, 4 B 2 segments",
        "append 2 files, 4 B 0 segments",
    )
    assert lines[-1] == f"pinot-assets run model --plan {plan.planned.plan_basis.hash}"


def test_without_a_ledger_rows_are_unknown() -> None:
    has(
        said(planned(lived("sync", "first files"))),
        "rows 0 → unknown: 0 removed, unknown added",
        "after the switch: none, this is the first snapshot",
    )


def test_rows_that_are_built_are_counted() -> None:
    has(
        said(planned(lived("sync", "a driver died at the push"))), "rows 1 → 2: 0 removed, 1 added", "keeps 1"
    )


def test_nothing_to_do() -> None:
    lines = said(planned(lived("sync", "all published")))
    has(lines, "→ nothing to do: 1 file listed, all published", "append 0 files, 0 B 0 segments")
    assert "the switch" not in lines


def test_what_a_rollback_holds() -> None:
    plan = planned(lived("sync", "a rollback holds"))
    has(said(plan), "held back 1 file after a rollback, until `resume`", "h B 2 B")


def test_a_retry_is_a_warning_when_it_is_the_last() -> None:
    has(said(planned(failed())), "→ retry 1 of 3 of session", "retries spends one: 1 of 3 then")
    has(said(planned(failed(consistentPushMaxRetries=0))), "is given up (no retry left after 0); a new one")


def test_a_gate_that_was_shut_is_told_before_it_is_tried_again() -> None:
    """Nothing is to be built, and the switch may well not happen."""
    table = make_table("sync")
    write(A="A1", B="B1")(table)
    run_now(table)
    spec = replace(table.spec, audit=Audit(checks=(RowChange(check="row_change", min="-20%"),)))
    table.spec_of = lambda options: spec
    remove("B")(table)
    run_now(table)
    has(said(planned(table)), ": removes 1 file", "last audit kept the gate shut: row_change of table")


def generations(**options: Any) -> ModelTable:
    """Two swaps, of which the first may still be reverted to, and something to do."""
    table = make_table("swap", **options)
    for version in ("A1", "A2"):
        write(A=version)(table)
        run_now(table)
    write(A="A3")(table)
    return table


@pytest.mark.parametrize(
    ("options", "when"),
    [({}, "right before the switch"), ({"rollbackWindow": "pinotDefault"}, "before anything is pushed")],
)
def test_what_a_forced_start_deletes_is_what_is_gone_afterwards(options: JsonObject, when: str) -> None:
    table = generations(**options)
    plan = planned(table)
    assert plan.switching is not None
    doomed = plan.switching.force_cleanup_loss.segments
    has(said(plan), f"forced start {when}, deletes 1 segment of the snapshot before the current one")
    has(said(plan), "way back now: by one revert until")
    before = table.pinot.all_segments(TABLE)
    run_now(table)
    assert before - table.pinot.all_segments(TABLE) == set(doomed)


def test_a_plan_that_would_be_refused_says_so_and_what_to_do() -> None:
    plan = planned(lived("sync", "somebody merged"))
    has(
        said(plan),
        ", and will be refused (see below)",
        "refused model is paused: another program replaced segments of this table: 1 published segments",
        "→ does a merge or rollup task run on this table? Turn it off",
    )
    told = json.loads(call(plan, "--json").stdout)
    assert "is paused" in told["refused"]
    assert "Turn it off" in told["hint"]


def test_a_plan_and_a_run_stop_at_an_entry_that_completes_itself_before_anything_is_built() -> None:
    table = make_table("sync")
    write(A="A1")(table)
    names = frozenset[str](), frozenset({"other"})
    entry = LineageEntry("e-self", *names, LineageState.IN_PROGRESS, 0, completes_itself=True)
    table.pinot.put_entry(TABLE, entry)
    has(said(planned(table)), "refused model is paused: an open lineage entry completes itself: entry e-self")
    error = table.start(trigger).process.error
    assert isinstance(error, SwitchConflict)
    assert not table.truth.open_session


def test_who_holds_the_lease_is_told() -> None:
    plan = replace(planned(lived("sync", CHANGED)), holder=Owner("run-7", "host", 1, 0))
    has(
        said(plan),
        "lease held by run-7 on host (pid 1) since 1970",
        "no run can begin until it releases the lease",
    )


def test_disks_and_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    table = lived("sync", "a driver died at the push")
    disks = {"Server_127.0.0.1_7051": ServerDisk(10**9, 0), "Server_127.0.0.1_7052": ServerDisk(10**9, 10**9)}
    monkeypatch.setattr(table.pinot, "server_disks", lambda _: disks)
    has(said(planned(table)), "7051: 953.7 MB free → 953.7 MB", "7052: 0 B free → ")
    run_now(table)
    write(C="C1 C2")(table)
    has(said(planned(table)), "7051: 953.7 MB free → 953.7 MB", "the tars while they load: DOES NOT FIT")


def test_long_lists_are_cut_and_json_has_them_all() -> None:
    table = make_table("sync")
    write(**{f"F{n:03}": "x" for n in range(50)})(table)
    plan = planned(table)
    lines = said(plan)
    assert sum(line.startswith("+ ") for line in lines) == SHOWN
    has(lines, "and 30 more (new)")
    values = json.loads(call(plan, "--json").stdout)
    assert len(values["files"]["new"]) == 50
    assert len(values["build"]["files"]) == 50


def test_json() -> None:
    values = json.loads(call(planned(lived("sync", CHANGED)), "--json").stdout)
    assert (values["table"], values["step"], values["mode"]) == ("model_OFFLINE", "BEGIN", "sync")
    assert len(values["plan"]) == 40
    (rewritten,) = values["files"]["rewritten"]
    assert rewritten["old"]["version"] != rewritten["new"]["version"]
    assert values["files"]["deleted"][0]["new"] is None
    assert values["switch"]["rows"]["added"] == {"total": 2, "known": 0, "estimated": 2, "exact": False}
    assert len(values["segments"]["replaced"]) == 2
    assert {m["mode"]: (m["builds"], m["removes"]) for m in values["modes"]} == {
        "append": (2, 0),
        "sync": (2, 2),
        "swap": (2, 2),
    }


def test_a_listing_that_fails_is_the_runs_own_error() -> None:
    error = ListingFailed("the listing broke off")
    assert call(error).exception is error


@pytest.mark.parametrize(("mode", "warned"), [("sync", True), ("swap", True), ("append", False)])
def test_a_rewritten_file_that_lost_most_of_its_bytes(mode: str, warned: bool) -> None:
    """Its rows are not known before the build, but what would shut the gate is told before."""
    table = make_table(mode)
    write(A=" ".join(f"A{n}" for n in range(10)))(table)
    run_now(table)
    write(A="A")(table)
    told = [
        line
        for line in said(planned(table))
        if "stays shut if rows are lost in the same proportion as bytes" in line
    ]
    assert bool(told) == warned
    assert all("by more than 90%: A 29 B" in line for line in told)
