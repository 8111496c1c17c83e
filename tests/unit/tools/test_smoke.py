from __future__ import annotations

from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from tools.smoke import Interpreter, interpreters

ALLOWED = SpecifierSet(">=3.11,<3.14")


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    """Two folders of interpreters that only tell a version, or fail as a shim of pyenv does."""
    scripts = {
        "first/python3.12": "exit 127",
        "first/python3.10": "echo 3.10.1",
        "first/python3.11": "echo 3.11.7",
        "first/python3.11-config": "echo 3.11.7",
        "second/python3.11": "echo 3.11.9",
        "second/python3.12": "echo 3.12.1",
        "second/python3.14": "echo 3.14.0",
    }
    for name, script in scripts.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    return [tmp_path / "first", tmp_path / "second", tmp_path / "missing"]


def test_one_working_interpreter_of_each_allowed_version(folders: list[Path]) -> None:
    assert interpreters(folders, ALLOWED) == [
        Interpreter("3.11", folders[0] / "python3.11"),
        Interpreter("3.12", folders[1] / "python3.12"),
    ]
