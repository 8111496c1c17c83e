"""CONTRIBUTING.md says where things are decided: each place is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PLACES = re.findall(r"^\| .+\? \| `(.+):(.+)` \|$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)


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
