from __future__ import annotations

import importlib
import pkgutil
import re

import pytest
from fakes.project import ROOT

import pinot_assets.ingest
from pinot_assets.core.file_errors import FileRejected
from pinot_assets.ingest.contract import failures
from pinot_assets.session.commit import per_file_push
from pinot_assets.snapshot.receipt import CODES, is_transient
from tools.docs import error_codes

DOCS = ROOT / "docs" / "reference" / "errors.md"


def _kinds(kind: type[FileRejected]) -> list[type[FileRejected]]:
    return [kind, *(found for child in kind.__subclasses__() for found in _kinds(child))]


TIME_MENDS = {"VANISHED", "CHANGED_DURING_READ", "STORE", "OUT_OF_MEMORY", "MACHINE"}
"""Tried again by itself, without a retry."""
A_PERSON_MENDS = {
    *(
        "UNREADABLE",
        "TYPE_MISMATCH",
        "COLUMN_MISSING",
        "TOO_MANY_BAD_ROWS",
        "TIMESTAMP_STRING_ZONE_DEPENDENT",
    ),
    *("READER_SETTINGS", "TOO_LARGE", "BECAME_FOLDER", "EXPRESSION", "SPARK", "SETTINGS", "STAGING_CONFLICT"),
    *("UNSUPPORTED", "REJECTED"),
}
"""The file, the table spec, or where it is run."""
TRIED_AGAIN_COSTS_A_RETRY = {"WORKER_DIED", "AUDIT", "NOT_PUBLISHED", "BUILD", "INTERNAL"}
"""May be well the next time, and must not be tried for ever: it costs a worker, segments, or is not known."""


def test_each_code_is_classed_on_purpose() -> None:
    """A new code has to be put into one of them."""
    classes = (TIME_MENDS, A_PERSON_MENDS, TRIED_AGAIN_COSTS_A_RETRY)
    assert sum(map(len, classes)) == len(CODES)
    assert set().union(*classes) == CODES.keys() == error_codes.CODES.keys()


@pytest.mark.parametrize("code", [*CODES, "OF_TOMORROW"])
def test_what_time_alone_may_mend_is_transient_and_nothing_else(code: str) -> None:
    assert is_transient(code) is (code in TIME_MENDS)


def test_every_code_that_a_file_can_fail_with_is_listed() -> None:
    for module in pkgutil.walk_packages(pinot_assets.ingest.__path__, "pinot_assets.ingest."):
        importlib.import_module(module.name)
    codes = {kind.code for kind in _kinds(FileRejected)} | {code for _, code in failures._CODES}
    assert codes | {per_file_push.REFUSED} <= CODES.keys()


def test_the_page_of_codes_has_them_all() -> None:
    section = DOCS.read_text().partition("## Codes of failed files")[2].partition("\n## ")[0]
    told = set(
        re.findall(
            r"`([A-Z_]+)`", "".join(line.split("|")[1] for line in section.splitlines() if "|" in line)
        )
    )
    assert told == CODES.keys()
