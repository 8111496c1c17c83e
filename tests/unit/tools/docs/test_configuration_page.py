"""docs/reference/configuration.md says what the code says, and of all that the code reads."""

from __future__ import annotations

import re

from fakes.project import ROOT

from pinot_assets.settings import environment
from pinot_assets.settings.variables import VARIABLES
from pinot_assets.table_spec.blocks.audit import Assertion
from pinot_assets.table_spec.blocks.dagster import DagsterSettings
from pinot_assets.table_spec.blocks.ingestion import FAMILIES, FileIngestion
from pinot_assets.table_spec.blocks.realtime import RealtimeBlock
from pinot_assets.table_spec.tables.editor_schema import described_schema
from tools.docs.configuration_page import configuration_page

PAGE = ROOT / "docs" / "reference" / "configuration.md"
NAMES = [variable.name for group in VARIABLES.values() for variable in group]


def test_the_page_is_fresh() -> None:
    # Write it with: python -m tools.docs.configuration_page > docs/reference/configuration.md
    assert PAGE.read_text(encoding="utf-8") == configuration_page()


def test_every_key_has_a_line_and_a_meaning() -> None:
    lines = PAGE.read_text().splitlines()
    for model in (FileIngestion, RealtimeBlock, Assertion, DagsterSettings):
        for key in described_schema(model)["properties"]:
            shown = f"{key}.*" if key in FAMILIES else key
            (line, *_) = [line for line in lines if line.startswith(f"| `{shown}` |")]
            assert not line.endswith("|  |"), line


def test_the_variables_listed_are_those_that_are_read() -> None:
    files = [
        path for folder in ("pinot_assets", "resources", "sensors") for path in (ROOT / folder).rglob("*.py")
    ]
    files = [path for path in files if path.name != "variables.py"] + [ROOT / "tables" / "flights.yaml"]
    said = "\n".join(path.read_text() for path in files)
    read = set(
        re.findall(r"\b(?:PINOT_(?!ASSETS\b)[A-Z_]*[A-Z]|(?:JAVA|DAGSTER)_HOME|DAGSTER_[A-Z]+_URL)\b", said)
    )
    assert read <= set(NAMES)
    assert set(environment.FIELDS.values()) <= set(NAMES)
    assert [name for name in NAMES if not re.search(rf"\b{name}\b", said)] == []
    assert len(NAMES) == len(set(NAMES))
