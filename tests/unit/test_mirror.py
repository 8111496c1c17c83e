"""Tests lie where what they test lies: those of `audit/checks.py` in `audit/test_checks.py`.

What one module does not hold, or what is another subject, is in `test_checks_<subject>.py` beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from fakes.project import ROOT

UNIT: Final = ROOT / "tests" / "unit"

BESIDE_THE_PACKAGE: Final = ("demos", "resources", "sensors", "tools")
"""Folders of the project that have tests here, too."""

OF_TESTS: Final = ("fakes", "simulator")
"""Folders of `tests/` that are programs of their own."""

WITHOUT_MODULES: Final = {"docs": "of pages; a test is named after what it looks for"}

OWN_NAMES: Final = {
    "expressions/test_doors.py": "that the whole package has one door each to Spark's SQL and Pinot's",
    "expressions/test_generated.py": "Spark's expressions and Pinot's, side by side",
    "expressions/test_names.py": "the lists of Spark's functions and of Pinot's, side by side",
    "realtime/health/test_age.py": "what checks of several modules leave alone while it is young",
    "resources/test_profiles.py": "all resources together, in each profile",
    "session/test_golden.py": "what each release stored, through the readers of all its kinds",
    "session/test_poison.py": "what somebody else stored, through the readers of all its kinds",
    "table_spec/test_expressions.py": "each place of a table spec that takes SQL, and where it is handed on",
    "table_spec/test_permissions.py": "what a table spec may reach, at `validate` and where the run opens it",
    "test_benchmarks.py": "of benchmarks/",
    "test_crash_results.py": "of tests/crash, without a server",
    "test_deploy.py": "of deploy/",
    "test_imports.py": "of the contracts in pyproject.toml",
    "test_mirror.py": "of tests/unit",
    "test_monitoring.py": "of deploy/prometheus and deploy/grafana",
    "test_mutants.py": "of tests/mutants",
    "test_names.py": "of the names of the whole package",
    "test_public_names.py": "of the package as users import it",
    "test_public_surface.py": "of tests/public_surface.json",
    "test_soak.py": "of tests/soak, without a server",
    "test_typing_debt.py": "of tests/typing_debt.toml",
}
"""Test modules of a whole folder or of the project, with what they are of."""

AT_MOST: Final = 21
"""How many of them there were when they were last counted: a number that only falls."""

TESTS: Final = sorted(path.relative_to(UNIT) for path in UNIT.rglob("test_*.py"))


def mirrored(folder: Path) -> Path:
    """The folder whose modules are tested in this one."""
    top = folder.parts[0] if folder.parts else ""
    if top in BESIDE_THE_PACKAGE:
        return ROOT / folder
    return ROOT / ("tests" if top in OF_TESTS else "pinot_assets") / folder


def modules(folder: Path) -> set[str]:
    return {path.stem for path in mirrored(folder).glob("*.py")} - {"__init__", "__main__"}


def is_of_a_module(test: Path) -> bool:
    name = test.stem.removeprefix("test_")
    return any(name == module or name.startswith(f"{module}_") for module in modules(test.parent))


def test_every_folder_is_one_of_what_is_tested() -> None:
    folders = {test.parent for test in TESTS} - {Path(name) for name in WITHOUT_MODULES}
    assert [str(folder) for folder in sorted(folders) if not any(mirrored(folder).glob("*.py"))] == []


@pytest.mark.parametrize("test", [str(test) for test in TESTS if test.parts[0] not in WITHOUT_MODULES])
def test_every_name_begins_with_that_of_a_module(test: str) -> None:
    assert is_of_a_module(Path(test)) or test in OWN_NAMES, "no such module in its folder"


def test_the_list_of_own_names_only_shrinks() -> None:
    gone = OWN_NAMES.keys() - {str(test) for test in TESTS}
    assert gone == set()
    assert [name for name in OWN_NAMES if is_of_a_module(Path(name))] == []
    assert len(OWN_NAMES) == AT_MOST, "write the smaller number"
    assert {name for name in WITHOUT_MODULES if modules(Path(name))} == set()


def test_a_name_is_that_of_a_module_or_goes_on_with_a_subject() -> None:
    assert is_of_a_module(Path("audit/test_checks.py"))
    assert is_of_a_module(Path("audit/test_checks_bounds.py"))
    assert not is_of_a_module(Path("audit/test_checksum.py"))
    assert not is_of_a_module(Path("test_audit.py"))
    assert modules(Path("no such folder")) == set()
