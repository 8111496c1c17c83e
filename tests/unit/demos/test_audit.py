"""What the audit demo does to its files and tars, and what its last line says."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fakes.segment_info import read_segment_info

from demos.audit import (
    BY_FILE,
    BY_SERVERS,
    BY_SHADOW,
    AuditLine,
    StorySummary,
    kind_of,
    verdict,
    write_spec,
    wrong_on_the_way,
)
from demos.load import LoadReport, PhaseReport
from demos.steps import LEAST_ANSWERS, World
from pinot_assets.audit.checks import Finding
from pinot_assets.segment import SegmentSpec, build_segment, write_tar
from pinot_assets.snapshot.receipt import Output
from pinot_assets.table_spec import load_tables

SCHEMA = {"schemaName": "t", "dimensionFieldSpecs": [{"name": "v", "dataType": "STRING"}]}
TABLE = {"tableName": "t", "tableType": "OFFLINE", "tableIndexConfig": {}}


def tar(folder: Path, name: str, rows: int) -> Path:
    spec = SegmentSpec.from_pinot(SCHEMA, TABLE, write_for="0.11")
    data, now = pa.table({"v": ["a"] * rows}), 1_700_000_000_000
    segment = build_segment(data, spec, name=name, table_name="t", creation_time_ms=now, now_ms=now)
    path = folder / f"{name}.tar.gz"
    write_tar(segment, path)
    return path


@dataclass
class RecordingPinot:
    """A Pinot that keeps what came to it."""

    came: dict[str, bytes] = field(default_factory=dict)
    fails: bool = False

    def push(self, table: str, outputs: list[Output], **options: Any) -> Any:
        for output in outputs:
            self.came[output.segment] = Path(output.tar_uri.removeprefix("file://")).read_bytes()
        if self.fails:
            raise OSError("cut off")

    def version(self) -> str:
        return "1.5.1"


@pytest.mark.parametrize("fails", [False, True])
def test_another_tar_comes_to_pinot_than_lies_there_before_and_after(tmp_path: Path, fails: bool) -> None:
    built, half = tar(tmp_path, "whole", 8), tar(tmp_path, "other", 4)
    content, pinot = built.read_bytes(), RecordingPinot(fails=fails)
    wrong = wrong_on_the_way(pinot, half)
    output = Output("whole", 1, 8, built.as_uri(), len(content), "", "")
    if fails:
        with pytest.raises(OSError, match="cut off"):
            wrong.push("t", [output])
    else:
        wrong.push("t", [output])
    assert built.read_bytes() == content
    arrived = tmp_path / "arrived.tar.gz"
    arrived.write_bytes(pinot.came["whole"])
    info = read_segment_info(arrived)
    assert (info.name, info.rows) == ("whole", 4)
    assert wrong.version() == "1.5.1"


@pytest.mark.parametrize("block", [[], BY_FILE, BY_SERVERS, BY_SHADOW])
def test_the_audit_blocks_are_taken(tmp_path: Path, block: list[dict[str, str]]) -> None:
    write_spec(tmp_path, block)
    audit = load_tables(tmp_path)["flights"].audit
    assert len(audit.checks) + len(audit.assertions) == len(block)


def test_half_of_a_file_gets_lost_and_comes_back(tmp_path: Path) -> None:
    world = World(tmp_path, 1)
    day = world.day(0)
    world.add(day)
    whole, expected = lines(world.path(day)), world.answer()
    world.halve(day)
    assert len(lines(world.path(day))) - 1 == len(whole) // 2
    assert world.answer() == expected
    world.repair(day)
    assert lines(world.path(day)) == whole


def lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("row_change of file (-20% to any)", "row_change of file"),
        ("rows_as_built", "rows_as_built"),
        ("sql via shadow: SELECT AVG(a) FROM t (> 1)", "sql via shadow"),
    ],
)
def test_a_finding_is_known_by_its_kind(name: str, kind: str) -> None:
    assert kind_of(Finding(name, False, 1, 0, "")) == kind


def report(**counts: int) -> LoadReport:
    phase = {"queries": LEAST_ANSWERS, "mixed": 0, "errors": 0, **counts}
    right = phase.pop("queries") - phase["mixed"] - phase["errors"]
    return LoadReport((PhaseReport("1", (), [right], **phase),))


def steps(*tiers: int) -> list[AuditLine]:
    stopped = [AuditLine(str(tier), "", tier, 1.0, ("a check",)) for tier in tiers]
    return [*stopped, *(AuditLine(f"{tier}b", "", tier, 1.0, ()) for tier in (0, 1, 2, 3))]


def test_the_last_line() -> None:
    found = verdict(steps(1, 2, 3, 3), report())
    assert str(found) == "stopped by tiers: 3 of 3, mixed answers: 0"
    assert found.well


@pytest.mark.parametrize(
    ("tiers", "counts"),
    [
        ((1, 2), {}),
        ((1, 3, 3), {}),
        ((1, 2, 3), {"mixed": 1}),
        ((1, 2, 3), {"errors": 1}),
        ((1, 2, 3), {"queries": LEAST_ANSWERS - 1}),
    ],
)
def test_what_is_not_well(tiers: tuple[int, ...], counts: dict[str, int]) -> None:
    found: StorySummary = verdict(steps(*tiers), report(**counts))
    assert not found.well
