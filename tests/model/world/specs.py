"""Table specs of the model, read back from YAML as the code location reads them, each once."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import get_args

from fakes.tables import write_table
from model.world.table import TABLE

from pinot_assets.core.json_object import JsonObject
from pinot_assets.table_spec import TableSpec
from pinot_assets.table_spec.blocks.audit import Audit, Loss, LossName

FOLDERS = {"inputDirURI": "s3://model/source", "output.segment.dir.uri": "s3://model/staging"}


def spec_of(options: JsonObject) -> TableSpec:
    """With these keys of the ingestion block; its folders are names only, the stores are in memory: the same
    for all, so that two specs differ in nothing but these keys."""
    return _spec(frozenset(options.items()))


def losing_spec_of(options: JsonObject) -> TableSpec:
    """The same for a table whose files may lose their rows: the gate does not ask."""
    allowed = tuple(Loss(check=name, severity="warn") for name in get_args(LossName))
    return replace(spec_of(options), audit=Audit(checks=allowed))


@cache
def _spec(options: frozenset[tuple[str, object]]) -> TableSpec:
    with tempfile.TemporaryDirectory(prefix="pinot-assets-model-") as folder:
        return write_table(Path(folder), TABLE, {**FOLDERS, **dict(options)})
