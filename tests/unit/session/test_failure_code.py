from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import pinot_assets.build
from pinot_assets.build import task
from pinot_assets.build.rejected import FileRejected
from pinot_assets.pinot import port  # noqa: F401  # what sessions import first
from pinot_assets.session import publisher
from pinot_assets.session.failure_code import CODES, is_transient

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "errors.md"


def _kinds(kind: type[FileRejected]) -> list[type[FileRejected]]:
    return [kind, *(found for child in kind.__subclasses__() for found in _kinds(child))]


@pytest.mark.parametrize("code", ["VANISHED", "CHANGED_DURING_READ", "STORE", "OUT_OF_MEMORY", "MACHINE"])
def test_what_time_alone_may_mend_is_transient(code: str) -> None:
    assert is_transient(code)


@pytest.mark.parametrize(
    "code",
    [
        "UNREADABLE",
        "TYPE_MISMATCH",
        "TOO_LARGE",
        "SETTINGS",
        "WORKER_DIED",
        "AUDIT",
        "INTERNAL",
        "OF_TOMORROW",
    ],
)
def test_what_somebody_must_mend_is_not(code: str) -> None:
    assert not is_transient(code)


def test_every_code_that_a_file_can_fail_with_is_listed() -> None:
    for module in pkgutil.iter_modules(pinot_assets.build.__path__):
        if module.name != "worker_daemon":
            importlib.import_module(f"pinot_assets.build.{module.name}")
    codes = {kind.code for kind in _kinds(FileRejected)} | {code for _, code in task._CODES}
    assert codes | {publisher.REFUSED} <= CODES.keys()


def test_the_page_of_codes_has_them_all() -> None:
    section = DOCS.read_text().partition("## Codes of failed files")[2].partition("\n## ")[0]
    told = set(
        re.findall(
            r"`([A-Z_]+)`", "".join(line.split("|")[1] for line in section.splitlines() if "|" in line)
        )
    )
    assert told == CODES.keys()
