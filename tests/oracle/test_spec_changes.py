"""Every verdict on a change of a spec beside Pinot's own answer, and what comes of it in a segment.

A segment is built and loaded as its table config wanted it. Then the spec changes, and the segment is loaded
again, as a server does when it reloads. Where the verdict is a reload, the result is what a segment has that
is built anew; where it is a rebuild, it is not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from oracle.conftest import FILES, Oracle, ReadColumn
from oracle.spec_change_kinds import KINDS, VALUES, Kind, Side

from pinot_assets.table_spec.changes.spec_changes import Verdict

_VOLATILE: Final = ("segment.crc", "segment.creation", "segment.index")


def built(oracle: Oracle, side: Side) -> Path:
    """A segment that was built for this spec, and loaded."""
    folder = oracle.segment_folder(side.build().files)
    oracle.load(folder, side.schema, side.config)
    return folder


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_verdict_is_what_pinot_says_and_does(oracle: Oracle, kind: Kind) -> None:
    segment = built(oracle, kind.before)
    assert oracle.needs_reload(segment, kind.before.schema, kind.before.config) is False
    assert oracle.needs_reload(segment, kind.after.schema, kind.after.config) is kind.reloads
    if kind.by_rows or kind.verdict == Verdict.REFUSED:
        return
    fresh = built(oracle, kind.after)
    oracle.load(segment, kind.after.schema, kind.after.config)
    is_done = (
        values(oracle, segment, kind.after) == values(oracle, fresh, kind.after)
        and indexes(segment) == indexes(fresh)
        and (kind.verdict != Verdict.REBUILD or content(segment) == content(fresh))
    )
    assert is_done is (kind.verdict != Verdict.REBUILD)


def values(oracle: Oracle, segment: Path, side: Side) -> dict[str, ReadColumn]:
    fields = [field for specs in side.schema.values() if isinstance(specs, list) for field in specs]
    kinds = {field["name"]: field["dataType"] for field in fields}
    return oracle.read_as(segment, side.schema, side.config, kinds)


def indexes(segment: Path) -> set[str]:
    """What a segment has: `column.index`, star-trees, and files of their own."""
    lines = (segment / "v3" / "index_map").read_text(encoding="utf-8").splitlines()
    found = {line.partition(" = ")[0].rpartition(".")[0] for line in lines if ".size" in line}
    found |= {line for line in properties(segment) if line.startswith("startree.")}
    return found | {path.name for path in (segment / "v3").iterdir() if path.name not in FILES}


def content(segment: Path) -> tuple[bytes, list[str]]:
    return (segment / "v3" / "columns.psf").read_bytes(), properties(segment)


def properties(segment: Path) -> list[str]:
    lines = (segment / "v3" / "metadata.properties").read_text(encoding="utf-8").splitlines()
    return sorted(line for line in lines if not line.startswith(_VOLATILE))


def test_the_rows_of_the_kinds_can_show_a_difference() -> None:
    assert all(len(values) == 40 for values in VALUES.values())
    assert None in VALUES["code"]
    assert None in VALUES["name"]
