"""CONTRIBUTING.md says where things are decided, and what only `make test-all` runs: each place is there."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from fakes.project import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
PLACES = re.findall(r"^\| .+\? \| `(.+):(.+)` \|$", TEXT, re.MULTILINE)
ONLY_IN_ALL = re.findall(r"^\| (.*tests/(?:slow|pauseless).*) \| ([^|]+) \| ([^|]+) \|$", TEXT, re.MULTILINE)


def test_ten_questions_are_answered() -> None:
    assert len(PLACES) == 10


@pytest.mark.parametrize(("file", "name"), PLACES)
def test_what_decides_is_where_the_map_says(file: str, name: str) -> None:
    inside: list[ast.stmt] = ast.parse((ROOT / file).read_text()).body
    for part in name.split("."):
        [found] = [
            node for node in inside if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == part
        ]
        inside = found.body


def test_what_only_test_all_runs_is_listed_with_its_seconds_and_what_covers_it() -> None:
    listed = {name for what, *_ in ONLY_IN_ALL for name in re.findall(r"`(tests/[^`]+)`", what)}
    there = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests" / "slow").glob("test_*.py")}
    assert {name for name in listed if name.startswith("tests/slow/")} == there
    assert "tests/pauseless" in listed
    for _, seconds, covered in ONLY_IN_ALL:
        assert re.search(r"[1-9][0-9]*", seconds)
        places = re.findall(r"`([^`]+)`", covered)
        assert places
        beside = Path(places[0]).parent
        for place in places:
            assert (ROOT / place).exists() or (ROOT / beside / place).exists(), place


def test_no_other_test_is_left_out_of_make_test() -> None:
    """Besides those that need a browser or servers of their own, which have targets of their own."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert {name for name in options["norecursedirs"] if "/" in name} == {
        *("tests/slow", "tests/pauseless"),  # of `make test-all`
        *(
            "tests/ui",
            "tests/clouds",
            "tests/helm",
        ),  # of `make ui-test`, `make clouds-test`, `make helm-test`
    }


def test_make_test_all_collects_them_all(tmp_path: Path) -> None:
    """Of `pytest tests tests/slow`, pytest drops the inner folder, and never enters it.

    pytest is asked about folders of the same names with one test each: the real ones take half a minute.
    """
    [recipe] = re.findall(r"^test-all: check.*\n\t@(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert "tests" not in re.sub("'.+?'", "", recipe)  # it names no folder: all of testpaths
    command = recipe.replace("$(BIN)/pytest $(SPREAD)", f"{sys.executable} -m pytest -p no:xdist")
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "conftest.py").write_text(
        "def pytest_addoption(parser): parser.addoption('--whole', action='store_true')\n"
    )
    folders = sorted(f.parent.relative_to(ROOT) for f in (ROOT / "tests").rglob("test_*.py"))
    for number, folder in enumerate(dict.fromkeys(folders)):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / f"test_{number}.py").write_text("def test_one() -> None: ...\n")
    collected = subprocess.run(
        [*shlex.split(command), "--collect-only", "-q"],
        cwd=tmp_path, env={**os.environ, "PYTEST_ADDOPTS": ""}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = {Path(f).parent for f in re.findall(r"^tests/\S+\.py", collected.stdout, re.MULTILINE)}
    assert {f for f in folders if f.parts[1] not in ("ui", "clouds", "helm")} == found, collected
    assert {Path("tests/slow"), Path("tests/pauseless")} < found
