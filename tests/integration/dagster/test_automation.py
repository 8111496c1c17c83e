"""A table with `dagster: {automation: true}`: what is asked for, and that those runs pass the gate, too."""

from __future__ import annotations

import dagster as dg
import pytest
import yaml
from dagster._core.storage.tags import ASSET_EVALUATION_ID_TAG
from fakes.locations.code_location import LocationTable, failure

from pinot_assets.assets.partitions import ALL_FILES
from pinot_assets.table_spec import load_table

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:Parameter `include_sources`"),  # Dagster's own tester of conditions
]


class Automated:
    """The automation sensor's daemon: evaluates the conditions and starts what they ask for."""

    def __init__(self, table: LocationTable) -> None:
        file = table.folder / "tables" / f"{table.name}.yaml"
        document = {**yaml.safe_load(file.read_text()), "dagster": {"automation": True}}
        file.write_text(yaml.safe_dump(document, sort_keys=False))
        table.spec = load_table(file)
        self.table = table
        self._cursor: dg.AssetDaemonCursor | None = None
        self._ticks = 0

    def tick(self) -> tuple[set[str], bool]:
        """Partitions of `segments` that are asked for, and whether `snapshot` is."""
        result = dg.evaluate_automation_conditions(
            self.table.definitions, self.table.instance, cursor=self._cursor
        )
        self._cursor = result.cursor
        self._ticks += 1
        segments = result.get_requested_partitions(self.table.key("segments"))
        return {key for key in segments if key is not None}, bool(
            result.get_num_requested(self.table.key("snapshot"))
        )

    def observe(self) -> tuple[set[str], bool]:
        """A tick after somebody looked at the files."""
        looked = self.table.materialize(dg.AssetSelection.assets(self.table.key("source_files")), None)
        assert looked.success
        return self.tick()

    def build(self, partition: str) -> dg.ExecuteInProcessResult:
        tags = {ASSET_EVALUATION_ID_TAG: str(self._ticks)}
        return self.table.materialize(dg.AssetSelection.assets(self.table.key("segments")), partition, tags)

    def switch(self) -> dg.ExecuteInProcessResult:
        return self.table.materialize(dg.AssetSelection.assets(self.table.key("snapshot")), None)


NOTHING: tuple[set[str], bool] = (set(), False)


def test_files_are_asked_for_and_the_gate_decides(table: LocationTable) -> None:
    automated = Automated(table)
    table.write(F1="a", F2="b")
    assert automated.observe() == ({"F1.csv", "F2.csv", ALL_FILES}, False)
    assert automated.tick() == NOTHING
    assert automated.build("F1.csv").success
    # Dagster starts one run for each contiguous range; they are one trigger, and the gate stays open.
    again = automated.build("F2.csv")
    assert again.get_asset_materialization_events() == []
    assert table.evaluation(again).passed
    assert automated.tick() == (set(), True)
    assert automated.switch().success
    assert table.shown() == ["a", "b"]
    assert automated.observe() == NOTHING

    # Rewritten and broken: the gate is shut, and nothing is asked for again before it is repaired.
    table.corrupt("F1")
    assert automated.observe() == ({"F1.csv", ALL_FILES}, False)
    assert not table.evaluation(automated.build("F1.csv")).passed
    assert automated.tick() == NOTHING
    assert automated.observe() == NOTHING
    assert "could not be built" in failure(automated.switch())
    assert automated.tick() == NOTHING
    assert table.shown() == ["a", "b"]

    # Repaired, and a new file, and one that has gone.
    table.write(F1="longer", F3="c")
    (table.folder / "source" / "F2.csv").unlink()
    assert automated.observe() == ({"F1.csv", "F2.csv", "F3.csv", ALL_FILES}, False)
    assert automated.build("F1.csv").success
    assert automated.tick() == (set(), True)
    assert automated.switch().success
    assert table.shown() == ["c", "longer"]
    assert automated.observe() == NOTHING
