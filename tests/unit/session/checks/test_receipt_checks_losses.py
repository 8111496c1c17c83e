"""A column that vanished from a rewritten file is found in what real builds leave behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.builder import make_order, tasks_of

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.core.json_object import JsonObject
from pinot_assets.ingest.contract.accepted_rows import EmptyColumns
from pinot_assets.ingest.contract.build_spec import BuildSpec
from pinot_assets.ingest.task import build_file
from pinot_assets.session.checks.receipt_checks import loss_findings
from pinot_assets.session.stores.staging import Staging, kept_receipts
from pinot_assets.session.values.state import Mode
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Receipt
from pinot_assets.source import open_store
from pinot_assets.table_spec.blocks.audit import Audit, CheckBound, Loss

WHOLE = "name,count,at\na,1,2020-01-01T00:00:00Z\nb,2,2020-01-01T00:00:00Z\n"
RENAMED = WHOLE.replace("count", "Count", 1)
SEVENS = "name,count,at\na,7,2020-01-01T00:00:00Z\nb,7,2020-01-01T00:00:00Z\n"
NULL = "name,count,at\na,,2020-01-01T00:00:00Z\nb,,2020-01-01T00:00:00Z\n"


@pytest.fixture
def build_spec(tmp_path: Path) -> BuildSpec:
    return make_order(tmp_path)


def built(root: Path, build_spec: BuildSpec, text: str) -> Receipt:
    (root / "in" / "a.csv").write_text(text)
    [task] = tasks_of(build_spec)
    receipt = build_file(build_spec, task)
    assert isinstance(receipt, Receipt), receipt
    return receipt


def rebuilt(
    root: Path, build_spec: BuildSpec, before: str | Receipt, after: str, *checks: CheckBound, **changed: Any
) -> JsonObject:
    """What is found where a file was published and is built again, by the name of the check.

    :param changed: what the table spec says otherwise since, as keys of the order.
    """
    former = built(root, build_spec, before) if isinstance(before, str) else before
    file = PublishedFile.from_receipt(former, build_spec.session)
    current = SimpleNamespace(
        ledger={former.uri: file}, rows=2, mode=Mode.SWAP, config_fingerprint="before", recipes=()
    )
    later = replace(
        build_spec, session="cp8-abc", staging_uri=build_spec.staging_uri.replace("cp7", "cp8"), **changed
    )
    run: Any = SimpleNamespace(
        current_snapshot=lambda: current,
        spec=SimpleNamespace(audit=Audit(checks=checks)),
        table="names",
        staging=Staging(open_store((root / "staging").as_uri(), {}, UNLIMITED)),
    )
    session: Any = SimpleNamespace(mode=Mode.SWAP, config_fingerprint="now" if changed else "before")
    return {f.name: f for f in loss_findings(run, session, [built(root, later, after)])}


@pytest.mark.parametrize("after", [RENAMED, NULL])
def test_a_renamed_column_and_one_that_is_null_throughout(
    tmp_path: Path, build_spec: BuildSpec, after: str
) -> None:
    finding = rebuilt(tmp_path, build_spec, WHOLE, after)["vanished_columns"]
    assert (finding.blocks, finding.of_data) == (True, True)
    assert "a.csv has no value in count;" in finding.message


def test_a_column_that_the_table_spec_makes_null(tmp_path: Path, build_spec: BuildSpec) -> None:
    """The file is as it was: it is not rewritten, and its column is lost all the same."""
    found = rebuilt(tmp_path, build_spec, SEVENS, SEVENS, reader={"nullStringValue": "7"})
    finding = found["vanished_columns"]
    assert (finding.blocks, finding.of_data) == (True, True)
    assert (
        "0 of 1 files built again have values in the columns that had some: a.csv has no value in count"
        in (finding.message)
    )
    assert found["emptied_files"].passed


def test_of_one_table_spec_a_file_that_is_as_it_was_is_not_looked_at(
    tmp_path: Path, build_spec: BuildSpec
) -> None:
    assert rebuilt(tmp_path, build_spec, NULL, NULL).keys() == {"shrunk_table"}


def test_a_column_that_the_schema_has_since_has_not_vanished(tmp_path: Path, build_spec: BuildSpec) -> None:
    more = {"name": "more", "dataType": "STRING"}
    schema = {**build_spec.schema, "dimensionFieldSpecs": [*build_spec.schema["dimensionFieldSpecs"], more]}
    assert rebuilt(tmp_path, build_spec, WHOLE, WHOLE, schema=schema)["vanished_columns"].passed


def test_it_may_be_allowed(tmp_path: Path, build_spec: BuildSpec) -> None:
    asked = Loss(check="vanished_columns", severity="warn")
    finding = rebuilt(tmp_path, build_spec, WHOLE, RENAMED, asked)["vanished_columns"]
    assert (finding.passed, finding.blocks) == (False, False)


@pytest.mark.parametrize(("before", "after"), [(RENAMED, NULL), (NULL, RENAMED), (RENAMED, WHOLE)])
def test_a_column_that_had_no_value_has_not_vanished(
    tmp_path: Path, build_spec: BuildSpec, before: str, after: str
) -> None:
    assert rebuilt(tmp_path, build_spec, before, after)["vanished_columns"].passed


def test_a_receipt_of_an_earlier_release_names_only_what_the_file_lacks(
    tmp_path: Path, build_spec: BuildSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column that was null throughout before the upgrade has not vanished after it."""
    with monkeypatch.context() as patch:
        patch.setattr(EmptyColumns, "missing", lambda _, lacking: lacking)
        former = built(tmp_path, build_spec, NULL)
    assert former.missing == ()
    assert rebuilt(tmp_path, build_spec, former, NULL + "c,,2020-01-01T00:00:00Z\n")[
        "vanished_columns"
    ].passed


def test_receipts_of_published_files_are_found_by_their_versions(
    tmp_path: Path, build_spec: BuildSpec
) -> None:
    receipt = built(tmp_path, build_spec, WHOLE)
    staging = Staging(open_store((tmp_path / "staging").as_uri(), {}, UNLIMITED))
    assert kept_receipts(staging, build_spec.session, {receipt.uri: receipt.read.token}) == {
        receipt.uri: receipt
    }
    assert kept_receipts(staging, build_spec.session, {receipt.uri: "another"}) == {}
    assert kept_receipts(staging, "cp1-fff", {receipt.uri: receipt.read.token}) == {}
