"""The reader's page names every format and every packing that the code has."""

from __future__ import annotations

from fakes.project import ROOT

from pinot_assets.ingest.formats.binary_formats import BATCH_ROWS
from pinot_assets.ingest.formats.content import _PACKED
from pinot_assets.ingest.formats.read import FORMATS
from pinot_assets.session.values.report import MANY, SMALL_BYTES

PAGE = (ROOT / "docs" / "guides" / "formats.md").read_text(encoding="utf-8")


def test_every_format_has_a_line_and_every_packing_is_named() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `") and line.count("|") == 6]
    head, *formats = rows
    assert sorted(row.split("`")[1] for row in formats) == sorted(FORMATS)
    assert [kind.replace("bz2", "bzip2") in head for kind in _PACKED] == [True] * len(_PACKED)


def test_figures_are_the_codes() -> None:
    assert f"{BATCH_ROWS:,} at a time" in PAGE
    assert f"less than {SMALL_BYTES >> 20} MB" in PAGE
    assert MANY == 20
