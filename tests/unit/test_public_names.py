"""What can be imported from `pinot_assets` itself, and that it costs nothing before it is asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fakes.project import ROOT
from fakes.tables import write_table

import pinot_assets
from pinot_assets.errors import SpecError
from pinot_assets.table_spec import load_table

PAGE = ROOT / "docs" / "library.md"


def test_importing_it_loads_neither_dagster_nor_spark() -> None:
    code = "import sys, pinot_assets; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"dagster", "pyspark", "pydantic", "pyarrow"}.isdisjoint(done.stdout.split())


@pytest.mark.parametrize("name", pinot_assets.__all__)
def test_every_public_name_is_there_and_on_the_page(name: str) -> None:
    assert callable(getattr(pinot_assets, name))
    assert f"`{name}(" in PAGE.read_text()


def test_there_are_no_others() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'build_everything'"):
        pinot_assets.build_everything  # noqa: B018


def test_one_table_spec(tmp_path: Path) -> None:
    written = write_table(tmp_path, "flights")
    assert load_table(tmp_path / "tables" / "flights.yaml") == written
    with pytest.raises(SpecError, match=r"the table specs have 1 problem:\n.*none\.yaml:1: "):
        load_table(tmp_path / "none.yaml")
