"""Nothing that was published is lost in silence: a rewritten file without its rows keeps the gate shut."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import pytest
from fakes.stores.memory import new_memory
from model.world.lives import make_table, planned, remove, rolled_back, write
from model.world.specs import spec_of
from model.world.table import CLUSTER, TABLE, ModelTable, run

from pinot_assets.audit.checks import Finding
from pinot_assets.errors import ListingFailed
from pinot_assets.session.driver import Driver
from pinot_assets.session.plan_report.rendering import risk_lines
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.report import TriggerReport
from pinot_assets.session.values.state import Session
from pinot_assets.table_spec.blocks.audit import Audit, CheckBound, EmptyOutputs, Loss, LossName, RowChange

TEN = " ".join(f"A{n}" for n in range(10))
TWENTY = " ".join(f"A{n}" for n in range(20))


def asks(table: ModelTable, *checks: CheckBound) -> None:
    table.spec_of = lambda options: replace(spec_of(options), audit=Audit(checks=checks))


def allow(name: LossName) -> Loss:
    return Loss(check=name, severity="warn")


def published(mode: str, **files: str) -> ModelTable:
    table = make_table(mode)
    write(**files)(table)
    assert table.start(run).process.error is None
    assert not table.truth.open_session
    return table


def audited(table: ModelTable) -> dict[str, Finding]:
    """A whole job; what its gate found, by the name of the check."""
    by_name: dict[str, Finding] = {}

    def job(driver: Driver) -> TriggerReport:
        report = driver.trigger()
        if report.session is None or not table.truth.open_session:
            return report
        _, findings = driver.audit()
        by_name.update({finding.name: finding for finding in findings})
        if not any(finding.blocks for finding in findings):
            driver.publish()
        return report

    assert table.start(job).process.error is None
    return by_name


def open_session(table: ModelTable) -> Session:
    store = SessionStore(table.zookeeper.client(), CLUSTER, f"{TABLE}_OFFLINE")
    session = store.active_session(store.pointer())
    assert session is not None
    return session


def barred_by(table: ModelTable, name: str, text: str) -> None:
    """The gate is shut by this check alone, queries see what they saw, and no retry is spent."""
    visible = table.pinot.visible_segments(TABLE)
    findings = audited(table)
    assert [each.name for each in findings.values() if each.blocks] == [name]
    assert text in findings[name].message
    assert table.pinot.visible_segments(TABLE) == visible
    session = open_session(table)
    assert session.audit is not None
    assert (session.retry_count, session.audit.waits, session.audit.of_data) == (0, True, True)
    assert text in session.last_error
    texts = [line.text for line in risk_lines(planned(table)) if line.label == "last audit"]
    assert len(texts) == 1
    assert text in texts[0]  # the plan tells what the files showed once they were built


@pytest.mark.parametrize("mode", ["sync", "swap"])
def test_a_rewritten_file_without_rows(mode: str) -> None:
    table = published(mode, A=TEN, B=TWENTY)
    write(A="")(table)
    barred_by(
        table, "emptied_files", "0 of 1 rewritten files that had rows still have some: A changes from 10"
    )
    write(A="A2")(table)  # repaired: only it is read again
    asks(table, allow("shrunk_files"))
    assert audited(table)["emptied_files"].passed
    assert not table.truth.open_session


@pytest.mark.parametrize("mode", ["sync", "swap"])
@pytest.mark.parametrize(("name", "rows"), [("emptied_files", ""), ("shrunk_files", "A0")])
def test_one_word_opens_the_gate_without_another_build(mode: str, name: LossName, rows: str) -> None:
    table = published(mode, A=TWENTY, B=TWENTY)
    write(A=rows)(table)
    barred_by(table, name, "A changes from 20 to")
    asks(table, allow(name))
    findings = audited(table)
    assert (findings[name].passed, findings[name].blocks) == (False, False)
    assert "allowed by" in findings[name].message
    assert not table.truth.open_session
    assert not table.orphans


def test_a_file_that_keeps_a_tenth_of_its_rows_is_taken() -> None:
    table = published("sync", A=TEN)
    write(A="A0")(table)
    assert audited(table)["shrunk_files"].passed
    assert not table.truth.open_session


@pytest.mark.parametrize("change", [write(A="", B=TEN), write(A="A0", B=TEN)])
def test_append_takes_nothing_away(change: Callable[[ModelTable], object]) -> None:
    table = published("append", A=TWENTY)
    visible = table.pinot.visible_segments(TABLE)
    change(table)
    audited(table)
    assert not table.truth.open_session
    assert table.pinot.visible_segments(TABLE) > visible


def test_files_that_are_deleted_or_new_are_judged_by_other_rules() -> None:
    table = published("sync", A=TWENTY, B="B0")
    remove("A")(table)
    write(C="")(table)
    findings = audited(table)
    assert not {"emptied_files", "shrunk_files", "vanished_columns"} & findings.keys()
    assert (findings["empty_outputs"].passed, findings["empty_outputs"].blocks) == (False, False)
    assert not table.truth.open_session


def test_a_swap_by_files_of_other_names_that_loses_most_of_the_table() -> None:
    table = published("swap", A=TWENTY)
    remove("A")(table)
    write(B="B0")(table)
    barred_by(table, "shrunk_table", f"{TABLE} changes from 20 to 1 rows (-95%)")
    asks(table, allow("shrunk_table"))
    audited(table)
    assert not table.truth.open_session


@pytest.mark.parametrize("mode", ["append", "sync", "swap"])
def test_a_first_load_loses_nothing(mode: str) -> None:
    table = make_table(mode)
    write(A="", B="B0")(table)
    findings = audited(table)
    assert not any(finding.blocks for finding in findings.values())
    assert not table.truth.open_session


@pytest.mark.parametrize(
    ("mode", "bound", "name"),
    [
        ("sync", RowChange(check="row_change", of="file", min="-97%"), "shrunk_files"),
        ("swap", RowChange(check="row_change", min="-97%"), "shrunk_table"),
    ],
)
def test_a_bound_of_the_table_spec_takes_its_place(mode: str, bound: RowChange, name: str) -> None:
    table = published(mode, A=TWENTY)
    remove("A")(table) if mode == "swap" else None
    write(**{"B" if mode == "swap" else "A": "A0"})(table)
    asks(table, bound)
    assert name not in audited(table)
    assert not table.truth.open_session


@pytest.mark.parametrize(
    "asked",
    [
        RowChange(check="row_change", of="file", min="-50%", severity="warn"),
        RowChange(check="row_change", of="file", max="50%"),
        EmptyOutputs(check="empty_outputs", severity="warn"),
    ],
)
def test_a_bound_that_only_warns_does_not(asked: CheckBound) -> None:
    table = published("sync", A=TWENTY, B=TWENTY)
    asks(table, asked)
    write(A="A0")(table)
    barred_by(table, "shrunk_files", "A changes from 20 to 1 rows (-95%)")


def test_what_a_rollback_brought_back_is_what_is_lost_from() -> None:
    """And the rollback itself is never barred, however many rows it takes away."""
    table = published("sync", A="A0")
    write(A=TWENTY)(table)
    audited(table)
    rolled_back(table)
    assert table.pinot.visible_segments(TABLE)
    write(A="")(table)
    barred_by(table, "emptied_files", "A changes from 1 to 0 rows")


def test_a_rollback_that_takes_away_nearly_all_is_not_barred() -> None:
    table = published("sync", A="A0")
    before = table.pinot.visible_segments(TABLE)
    write(A=TWENTY)(table)
    audited(table)
    rolled_back(table)
    assert table.pinot.visible_segments(TABLE) == before


def test_a_session_without_a_switch_is_held_back_too() -> None:
    """Pinot has deleted the published segments by time: no segment comes or goes."""
    table = published("sync", A=TEN, B="B0")
    store = SessionStore(table.zookeeper.client(), CLUSTER, f"{TABLE}_OFFLINE")
    ref = store.pointer().current_snapshot
    assert ref is not None
    [uri] = [uri for uri in Staging(table.staging).snapshot(ref).ledger if uri.endswith("A")]
    of_a = Staging(table.staging).snapshot(ref).ledger[uri]
    table.pinot.delete_segments(TABLE, [output.segment for output in of_a.outputs])
    write(A="")(table)
    barred_by(table, "emptied_files", "A changes from 10 to 0 rows")


# --- the table spec is changed, and the files are as they were ---------------------------------------


ONLY_A0 = {"filter": "v = 'A0'"}


def test_a_new_filter_that_leaves_a_file_without_rows() -> None:
    table = published("swap", A="A0 " * 10, B="B0")
    table.options.update(ONLY_A0)
    barred_by(
        table, "emptied_files", "1 of 2 files built again that had rows still have some: B changes from 1"
    )
    assert "1 file has the published content, and the table spec was changed; correct it in the" in (
        open_session(table).last_error
    )
    asks(table, allow("emptied_files"))
    assert audited(table)["emptied_files"].warns
    assert not table.truth.open_session


def test_a_new_filter_that_leaves_a_file_few_rows() -> None:
    table = published("swap", A="A0 " * 30, B=TWENTY)
    table.options.update(ONLY_A0)
    barred_by(table, "shrunk_files", "B changes from 20 to 1 rows (-95%)")
    del table.options["filter"]  # repaired: the session of the slip is given up, and nothing is switched
    before = table.pinot.visible_segments(TABLE)
    audited(table)
    assert not table.truth.open_session
    assert table.pinot.visible_segments(TABLE) == before


def test_a_filter_that_leaves_enough_is_taken() -> None:
    table = published("swap", A="A0 A0 A1", B="A0 B0")
    table.options.update(ONLY_A0)
    findings = audited(table)
    assert all(findings[name].passed for name in ("emptied_files", "shrunk_files", "vanished_columns"))
    assert not table.truth.open_session


def test_a_rollback_does_not_make_the_table_spec_of_now_the_one_that_built_the_files() -> None:
    table = published("swap", A=f"{'A0 ' * 10} A1", B="B0")
    asks(table, *(allow(name) for name in get_args(LossName)))
    table.options.update(ONLY_A0)
    audited(table)
    rolled_back(table)
    asks(table)
    table.start(resume)
    barred_by(table, "emptied_files", "B changes from 1 to 0 rows")


def test_e33_new_patterns_that_leave_most_files_out() -> None:
    table = published("sync", A="A0", B=TWENTY)
    table.options["excludeFileNamePattern"] = "glob:**/B*"
    barred_by(
        table, "shrunk_table", f"{TABLE} changes from 21 to 1 rows (-95.2%); the table spec was changed"
    )
    asks(table, allow("shrunk_table"))
    audited(table)
    assert not table.truth.open_session
    assert len(table.pinot.visible_segments(TABLE)) == 1


def test_new_patterns_that_leave_few_files_out_are_taken() -> None:
    table = published("sync", A="A0", B=TWENTY)
    table.options["excludeFileNamePattern"] = "glob:**/A*"
    assert audited(table)["shrunk_table"].passed
    assert not table.truth.open_session


def test_without_a_change_of_the_table_spec_files_that_are_deleted_go() -> None:
    table = published("sync", A="A0", B=TWENTY)
    remove("B")(table)
    assert "shrunk_table" not in audited(table)
    assert not table.truth.open_session
    assert len(table.pinot.visible_segments(TABLE)) == 1


def test_another_directory_with_few_files() -> None:
    """Every published file is gone from the listing, and one is new."""
    table = published("sync", A=TWENTY)
    table.options["includeFileNamePattern"] = "glob:**/new*"
    write(new="N0")(table)
    barred_by(table, "shrunk_table", f"{TABLE} changes from 20 to 1 rows")


def test_a_table_that_becomes_a_sync_one_keeps_what_its_source_has_not_any_more() -> None:
    table = published("append", A=TWENTY)
    write(B="B0")(table)
    audited(table)
    remove("A")(table)
    table.mode = "sync"
    barred_by(table, "shrunk_table", f"{TABLE} changes from 21 to 1 rows")


@pytest.mark.parametrize("mode", ["sync", "swap"])
def test_e33_another_directory_without_a_file_empties_nothing(mode: str) -> None:
    table = published(mode, A=TEN)
    visible = table.pinot.visible_segments(TABLE)
    table.options["inputDirURI"] = "s3://model/elsewhere"
    published_in, table.source = table.source.uri, new_memory()
    with pytest.raises(ListingFailed, match="matches since the table spec was changed") as refused:
        raise table.start(run).process.error or AssertionError
    assert f"published files are at another place, such as {published_in}/A" in str(refused.value)
    assert table.pinot.visible_segments(TABLE) == visible
    table.options["emptySourceAction"] = "APPLY"
    table.start(run)
    assert not table.pinot.visible_segments(TABLE)


def resume(driver: Driver) -> None:
    driver.resume()
