"""`tables apply` on a published table of a real Pinot: segments get what earlier releases never gave them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from fakes.pinot.staged import STAGED
from fakes.tables import document, write_table
from fakes.waiting import until

from pinot_assets.errors import PinotError, SpecError
from pinot_assets.pinot import HttpPinotClient, PinotConnection, wait_online
from pinot_assets.segment import SegmentSpec, build_segment, metadata_tar, write_tar
from pinot_assets.settings.local_stack import StackState
from pinot_assets.snapshot.receipt import Output
from pinot_assets.table_spec import TableSpec
from pinot_assets.table_spec.changes.spec_changes import Verdict
from pinot_assets.table_spec.tables.apply import ApplyPlan, apply_plan, plan_apply

SEGMENTS, ROWS = 10, 500


class Table:
    """A published table with the column `v` and the metric `n`, both of them known to the test."""

    def __init__(self, pinot: HttpPinotClient, folder: Path) -> None:
        self.pinot = pinot
        self.name = f"evolve_{time.time_ns()}"
        self.document = document(self.name, {"v": "STRING"}, {}, n="INT")
        self._spec = write_table(folder, self.name)
        apply_plan(self.planned(), pinot)
        outputs = [self._stage(folder, f"{self.name}_{number}") for number in range(SEGMENTS)]
        pinot.push(self.name, outputs, staged=STAGED)
        wait_online(pinot, self.name, [output.segment for output in outputs], seconds=120)
        until(lambda: self.count("") == SEGMENTS * ROWS, 60)

    def _stage(self, folder: Path, segment: str) -> Output:
        schema, config = self.document["schema"], self.document["table"]
        built = build_segment(
            pa.table({"v": [f"v{row % 50}" for row in range(ROWS)], "n": [*range(ROWS)]}),
            SegmentSpec.from_pinot(schema, config, write_for="0.11"),
            name=segment,
            table_name=self.name,
            creation_time_ms=1,
            now_ms=1,
        )
        tar, metadata = folder / f"{segment}.tar.gz", folder / f"{segment}.metadata.tar.gz"
        info = write_tar(built, tar)
        metadata.write_bytes(metadata_tar(built))
        return Output(segment, built.crc, ROWS, tar.as_uri(), info.bytes, info.sha256, metadata.as_uri())

    @property
    def spec(self) -> TableSpec:
        return replace(self._spec, schema_json=self.document["schema"], table_json=self.document["table"])

    def planned(self) -> ApplyPlan:
        return plan_apply(self.spec, self.pinot)

    def count(self, condition: str) -> int:
        """The rows that the table counts; -1 where the answer is not complete."""
        sql = f"SELECT COUNT(*) FROM {self.name}_OFFLINE {condition}"
        with suppress(PinotError):
            ((rows,),) = self.pinot.query_broker(self.pinot.brokers(self.name)[0], sql).rows
            return int(str(rows))
        return -1


@pytest.fixture
def table(stack: StackState, tmp_path: Path) -> Iterator[Table]:
    with HttpPinotClient(PinotConnection(stack.controller_url)) as pinot:
        made = Table(pinot, tmp_path)
        yield made
        pinot.delete_table(made.name)
        pinot.delete_schema(made.name)


def test_an_index_and_a_column_come_to_published_segments(table: Table) -> None:
    table.document["table"]["tableIndexConfig"]["invertedIndexColumns"] = ["v"]
    table.document["schema"]["dimensionFieldSpecs"].append({"name": "extra", "dataType": "STRING"})
    plan, progress = table.planned(), list[tuple[int, int]]()
    assert {one.verdict for one in plan.changes} == {Verdict.RELOAD}
    assert set(plan.reload.reasons) == {"column extra", "inverted index of v"}
    assert "extra" in plan.warnings[0]

    apply_plan(plan, table.pinot, lambda done, of: progress.append((done, of)))
    assert progress[-1] == (SEGMENTS, SEGMENTS)
    assert table.count("WHERE extra = 'null'") == SEGMENTS * ROWS
    assert table.count("WHERE v = 'v7'") == SEGMENTS * ROWS // 50
    assert table.planned().changes_nothing


def test_what_an_earlier_release_left_is_found(table: Table) -> None:
    """It wrote the schema and reloaded nothing: rows are missing without a word."""
    table.document["schema"]["dimensionFieldSpecs"].append({"name": "extra", "dataType": "STRING"})
    table.pinot.put_schema(table.document["schema"])
    assert table.count("WHERE extra = 'null'") != SEGMENTS * ROWS
    plan = table.planned()
    assert (plan.schema.action, plan.table.action) == ("keep", "keep")
    assert len(plan.reload.segments) == SEGMENTS
    apply_plan(plan, table.pinot)
    assert table.count("WHERE extra = 'null'") == SEGMENTS * ROWS


def test_a_number_becomes_wider(table: Table) -> None:
    """Its segments stay as they are, and answer; a rebuild changes them."""
    table.document["schema"]["metricFieldSpecs"][0]["dataType"] = "LONG"
    plan = table.planned()
    assert [(one.column, one.setting, one.verdict) for one in plan.changes] == [
        ("n", "dataType", Verdict.REBUILD)
    ]
    apply_plan(plan, table.pinot)
    assert table.planned().changes_nothing
    assert table.count("WHERE n < 100") == SEGMENTS * 100


@pytest.mark.parametrize("column", ["v", "n"])
def test_what_segments_do_not_allow_is_refused(table: Table, column: str) -> None:
    schema = table.document["schema"]
    table.document["schema"] = {
        key: value
        for key, value in schema.items()
        if not key.endswith("FieldSpecs") or value[0]["name"] != column
    }
    with pytest.raises(SpecError, match="Pinot never removes a column"):
        apply_plan(table.planned(), table.pinot)
    assert table.count("") == SEGMENTS * ROWS
