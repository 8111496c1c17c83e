"""What a person may call files, and what cannot be published file by file."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.world.lives import make_table, remove, write
from model.world.specs import spec_of
from model.world.table import ModelTable, run

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import RebuildRefused
from pinot_assets.session.decide.rebuilds import file_pattern
from pinot_assets.session.driver import Driver
from pinot_assets.session.values.outdated import RebuildRequest
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.source.file_patterns import compile_pattern, path_of_uri
from pinot_assets.table_spec import TableSpec


@pytest.mark.parametrize(
    ("text", "uri", "is_named"),
    [
        ("*.csv", "s3://b/in/day=1/a.csv", True),
        ("day=1/*", "s3://b/in/day=1/a.csv", True),
        ("day=2/*", "s3://b/in/day=1/a.csv", False),
        ("/day=1/a.csv", "file:///in/day=1/a.csv", True),
        ("glob:**/in/*", "s3://b/in/day=1/a.csv", False),
        ("regex:.*day=[12].*", "s3://b/in/day=1/a.csv", True),
    ],
)
def test_files_are_named_from_any_folder_on(text: str, uri: str, is_named: bool) -> None:
    assert compile_pattern(file_pattern(text)).those_of([path_of_uri(uri)]) == [is_named]


# --- types that one query cannot combine ----------------------------------------------------------


def typed_spec_of(options: JsonObject) -> TableSpec:
    """The spec of the model with a number beside its text, of a type that the options name."""
    options = dict(options)
    kind = str(options.pop("numbers", "INT"))
    spec = spec_of(options)
    columns = [*spec.schema_json["dimensionFieldSpecs"], {"name": "n", "dataType": kind}]
    return replace(spec, schema_json={**spec.schema_json, "dimensionFieldSpecs": columns})


def retyped(mode: str) -> ModelTable:
    table = ModelTable(typed_spec_of, "sync" if mode == "plain" else mode, make_table(mode).options)
    write(A="A1", B="B1")(table)
    assert table.start(run).process.error is None
    table.options["numbers"] = "LONG"
    table.pinot._schemas["model"] = dict(table.spec.schema_json)  # as a person forces it
    return table


def rebuild(driver: Driver) -> object:
    request = RebuildRequest()
    report = driver.trigger_planned(driver.plan(request).planned.plan_basis.hash, request)
    driver.audit()
    driver.publish()
    return report


@pytest.mark.parametrize("mode", ["append", "sync"])
def test_a_run_publishes_no_file_beside_segments_that_a_query_cannot_combine_with_it(mode: str) -> None:
    table = retyped(mode)
    quiet = table.start(run)
    assert quiet.report is not None
    assert quiet.report.result is TriggerResult.NOTHING
    write(C="C1")(table)
    error = table.start(run).process.error
    assert isinstance(error, RebuildRefused)
    assert "the type of n was changed" in error.what
    done = table.start(rebuild)
    assert done.process.error is None
    assert done.report is not None
    assert (len(done.report.new), len(done.report.rebuilt)) == (1, 2)
    assert not table.truth.violations


def test_not_even_a_rebuild_does_if_a_file_is_gone() -> None:
    table = retyped("append")
    remove("A")(table)
    error = table.start(rebuild).process.error
    assert isinstance(error, RebuildRefused)
    assert "the source lacks A" in str(error)


def test_nor_a_part_of_them() -> None:
    table = retyped("sync")

    def some(driver: Driver) -> object:
        return driver.plan(RebuildRequest("A"))

    error = table.start(some).process.error
    assert isinstance(error, RebuildRefused)
    assert "all 2 files of before have to come in one switch" in str(error)


def test_nor_a_plain_push() -> None:
    error = retyped("plain").start(rebuild).process.error
    assert isinstance(error, RebuildRefused)
    assert "a plain push shows file after file" in str(error)


@pytest.mark.parametrize("is_open", [False, True])
def test_a_pattern_that_names_no_published_file_is_refused(is_open: bool) -> None:
    """With an open session, too: it would be continued, as if that had been asked for."""
    table = make_table("sync")
    write(A="A1", B="B1")(table)
    assert table.start(run).process.error is None
    if is_open:
        write(C="!")(table)
        table.start(run)

    def asks(driver: Driver) -> object:
        return driver.plan(RebuildRequest("*.parquet"))

    error = table.start(asks).process.error
    assert isinstance(error, RebuildRefused)
    assert "no published file of model matches '*.parquet'" in str(error)
