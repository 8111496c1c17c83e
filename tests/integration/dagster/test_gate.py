"""Nothing gets round the gate: whatever is picked, reported or run elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from fakes.builder import InProcessBuilder
from fakes.locations.code_location import (
    LocationTable,
    failure,
    gate_evaluations,
    materializations,
    staged_and_published,
    values,
)
from kazoo.exceptions import ConnectionLoss

from pinot_assets.assets.partitions import ALL_FILES
from pinot_assets.errors import PinotUnreachable
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.contract.builder import ignore_rows
from pinot_assets.resources import consistent_push
from pinot_assets.session.driver import Driver
from pinot_assets.session.values.state import State
from pinot_assets.snapshot.receipt import Failure, Receipt

pytestmark = pytest.mark.integration


def unchecked(table: LocationTable, *names: str) -> dg.AssetSelection:
    return dg.AssetSelection.assets(*(table.key(name) for name in names)).without_checks()


def gate(table: LocationTable) -> dg.AssetCheckKey:
    return dg.AssetCheckKey(table.key("segments"), "consistent_push")


def assert_shut(table: LocationTable, why: str) -> None:
    """`snapshot` alone is refused, for this reason."""
    result = table.materialize(unchecked(table, "snapshot"), None)
    assert "SnapshotIncomplete" in failure(result)
    assert why in failure(result)
    assert materializations(result, "snapshot") == []
    assert table.observe().holder is None, "a refused switch keeps the lease"


# --- what a person picks ---------------------------------------------------------------------------


def test_snapshot_alone_switches_nothing(table: LocationTable) -> None:
    table.write(F1="a")
    assert_shut(table, "no session is open")
    assert table.materialize(unchecked(table, "segments")).success
    assert_shut(table, "has not been audited")
    assert table.shown() == []


def test_a_selection_without_checks_switches_nothing(table: LocationTable) -> None:
    table.write(F1="a")
    result = table.materialize(unchecked(table, "segments", "snapshot"))
    assert "has not been audited" in failure(result)
    assert gate_evaluations(result) == []
    built, published = staged_and_published(result)
    assert (built.keys(), published.keys()) == ({"F1.csv"}, set())
    assert table.shown() == []

    table.corrupt("F2")
    result = table.materialize(unchecked(table, "segments", "snapshot"))
    assert "SnapshotIncomplete" in failure(result)
    assert table.shown() == []

    table.write(F2="b")
    table.publish()
    assert table.shown() == ["a", "b"]


def test_a_pass_of_an_earlier_switch_opens_nothing(table: LocationTable) -> None:
    table.write(F1="a")
    segments_and_gate = dg.AssetSelection.assets(table.key("segments"))
    assert table.evaluation(table.materialize(segments_and_gate)).passed
    first = table.observe().session
    assert first is not None
    assert first.gate_open

    table.write(F2="b")
    assert table.materialize(unchecked(table, "segments")).success
    second = table.observe().session
    assert second is not None
    assert (second.id, second.switch) == (first.id, first.switch + 1)
    assert_shut(table, "has not been audited")

    table.corrupt("F3")
    assert table.materialize(unchecked(table, "segments")).success
    assert_shut(table, "could not be built")
    assert table.shown() == []

    # The same steps by hand, each in a process of its own, with the gate among them.
    table.write(F3="c")
    assert table.materialize(unchecked(table, "segments")).success
    assert table.evaluation(table.materialize(dg.AssetSelection.checks(gate(table)), None)).passed
    assert table.materialize(unchecked(table, "snapshot"), None).success
    assert table.shown() == ["a", "b", "c"]


# --- what Dagster is told of the gate --------------------------------------------------------------


def test_what_others_report_of_the_gate_opens_nothing(table: LocationTable) -> None:
    table.write(F1="a")
    assert table.materialize(unchecked(table, "segments")).success
    for passed, severity in ((True, dg.AssetCheckSeverity.ERROR), (False, dg.AssetCheckSeverity.WARN)):
        table.instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(
                asset_key=gate(table).asset_key,
                check_name=gate(table).name,
                passed=passed,
                metadata={},
                severity=severity,
                blocking=True,
            )
        )
        assert_shut(table, "has not been audited")
    assert table.shown() == []


def test_a_gate_of_severity_warn_opens_nothing(table: LocationTable) -> None:
    """A check of the same name, softened: Dagster goes on to `snapshot` after it, and that refuses."""
    table.write(F1="a")
    table.publish()
    table.corrupt("F2")

    @dg.asset_check(asset=gate(table).asset_key, name=gate(table).name, blocking=True)
    def softened() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=False, severity=dg.AssetCheckSeverity.WARN)

    result = table.materialize(
        dg.AssetSelection.assets(table.key("segments"), table.key("snapshot")), check=softened
    )
    assert table.evaluation(result).severity is dg.AssetCheckSeverity.WARN
    assert [event.step_key for event in result.get_step_failure_events()] == [f"{table.name}__snapshot"]
    assert "could not be built" in failure(result)
    assert table.shown() == ["a"]


def test_what_an_audit_warns_of_and_its_numbers_stand_in_the_last_word_of_the_gate(
    table: LocationTable,
) -> None:
    """Dagster shows the newest evaluation: it must not say that all was well."""
    path = table.spec.path
    path.write_text(f"{path.read_text()}\naudit: [{{check: empty_outputs, severity: warn}}]\n")
    table.write(F1="a", F2="")
    before, after = gate_evaluations(table.publish())
    for evaluation in (before, after):
        assert (evaluation.passed, evaluation.severity) == (False, dg.AssetCheckSeverity.WARN)
        assert evaluation.metadata["empty_outputs_expected"].value == 2
        assert evaluation.metadata["empty_outputs_found"].value == 1
        assert evaluation.metadata["rows_as_read_found"].value == 1
    assert after.description == "empty_outputs: found 1, expected 2"
    assert table.shown() == ["a"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PinotUnreachable("ZooKeeper went away"), "ZooKeeper went away. The gate stays shut"),
        (ConnectionLoss("gone"), "ConnectionLoss('gone'). The gate stays shut"),
    ],
)
def test_a_gate_that_breaks_is_shut_and_says_so(
    table: LocationTable, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    table.write(F1="a")

    def broken(self: Driver) -> Any:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Driver, "audit", broken)
        result = table.run()
    assert not result.success
    evaluation = table.evaluation(result)
    assert (evaluation.passed, evaluation.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert evaluation.description == said
    assert materializations(result, "snapshot") == []
    session = table.observe().session
    assert session is not None
    assert (session.state, session.audit) == (State.SWITCH, None)
    assert_shut(table, "has not been audited")
    table.publish()
    assert table.shown() == ["a"]


def test_failed_files_fail_the_gate_and_not_the_build(table: LocationTable) -> None:
    table.write(F1="a b")
    table.corrupt("F2")
    result = table.run()
    assert [event.step_key for event in result.get_step_success_events()] == [f"{table.name}__segments"]
    assert f"{table.name}__snapshot" not in {event.step_key for event in result.all_events}
    evaluation = table.evaluation(result)
    assert evaluation.description is not None
    assert evaluation.description.startswith("1 of 2 files are built: F2.csv: ")
    assert evaluation.description.endswith(". Nothing is switched: nothing is published yet")
    shown = values(evaluation.metadata)
    assert (shown["files_built_expected"], shown["files_built_found"]) == (2, 1)
    assert table.shown() == []


# --- another code location -------------------------------------------------------------------------


class Meanwhile(InProcessBuilder):
    """Does something else, in a thread of its own, while it builds."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__()
        self._act = act

    def build(
        self,
        build_spec: BuildSpec,
        tasks: Sequence[FileTask],
        on_done: Callable[[Receipt | Failure], None],
        on_rows: Callable[[int], None] = ignore_rows,
    ) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self._act).result()
        super().build(build_spec, tasks, on_done, on_rows)


def test_e10_of_two_code_locations_one_proceeds(
    table: LocationTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.write(F1="a")
    refused: list[dg.ExecuteInProcessResult] = []
    (tmp_path / "other").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "other")) as instance:
        other = table.elsewhere(instance)
        act = Meanwhile(lambda: refused.append(other.run()))
        with monkeypatch.context() as patch:
            patch.setattr(consistent_push, "SparkBuilder", lambda *_: act)
            result = table.publish()
        (beside,) = refused
        assert f"{table.name}_OFFLINE is paused: held by {result.run_id} on " in failure(beside)
        assert " since 20" in failure(beside)
        assert (gate_evaluations(beside), other.shown()) == ([], ["a"])

        # What one of them staged, the other one does not publish without an audit of that switch.
        table.write(F2="b")
        assert table.materialize(unchecked(table, "segments")).success
        assert_shut(other, "has not been audited")
        result = other.publish()
        assert staged_and_published(result)[0].keys() == set(), "built a second time"
        assert staged_and_published(result)[1].keys() == {"F1.csv", "F2.csv", ALL_FILES}
        assert table.shown() == ["a", "b"]


def test_the_gate_names_the_assertion_that_fails_and_shows_what_was_found(table: LocationTable) -> None:
    """Two may be answered in the same words. Dagster takes a description for Markdown: COUNT(*) twice would
    become italics outside of backticks."""
    path = table.spec.path
    good, bad = (f"SELECT COUNT(*) FROM {table.name} WHERE v = '{value}'" for value in ("b", "a"))
    asked = "".join(f'  - {{sql: "{sql}", expect: "= 0"}}\n' for sql in (good, bad))
    path.write_text(f"{path.read_text()}\naudit:\n{asked}")
    table.write(F1="a")
    evaluation = table.evaluation(table.run())
    said, name = "answers are = 0: COUNT(*) is 1", f"sql: {bad} (= 0)"
    answers = evaluation.metadata[f"{name}_answers"].value
    expected = f"`{name}`: `0 of {answers} {said}`. Nothing is switched: "
    assert (evaluation.description or "").startswith(expected)
    assert evaluation.metadata[name].value == f"0 of {answers} {said}"
    assert evaluation.metadata[f"{name}_answers_as_expected"].value == 0
    assert evaluation.metadata[f"sql: {good} (= 0)_answers_as_expected"].value == answers
