"""Table specs of the model, read back from YAML as the code location reads them, each once."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from fakes.tables import write_table
from model.table import TABLE

from pinot_assets.spec import TableSpec

FOLDERS = {"inputDirURI": "s3://model/source", "output.segment.dir.uri": "s3://model/staging"}


def spec_of(options: dict[str, Any]) -> TableSpec:
    """With these keys of the ingestion block; its folders are names only, the stores are in memory: the same
    for all, so that two specs differ in nothing but these keys."""
    return _spec(frozenset(options.items()))


@cache
def _spec(options: frozenset[tuple[str, Any]]) -> TableSpec:
    with tempfile.TemporaryDirectory(prefix="pinot-assets-model-") as folder:
        return write_table(Path(folder), TABLE, {**FOLDERS, **dict(options)})
