"""Keys of a table config that are written almost as a key of Pinot."""

from __future__ import annotations

import pytest
from fakes.spec_folder import Folder

from pinot_assets.core.json_object import JsonObject


@pytest.mark.parametrize(
    ("part", "key", "meant"),
    [
        ("tableIndexConfig", "invertedIndexColumn", "invertedIndexColumns"),
        ("tableIndexConfig", "sortedcolumn", "sortedColumn"),
        ("segmentsConfig", "retentionTimeUnits", "retentionTimeUnit"),
        ("ingestionConfig", "transformConfig", "transformConfigs"),
    ],
)
def test_a_key_almost_as_one_of_pinot_gets_a_note(folder: Folder, part: str, key: str, meant: str) -> None:
    def change(whole: JsonObject) -> None:
        whole["table"].setdefault(part, {})[key] = []

    assert folder.notes(change=change)[f"table.{part}.{key}"].endswith(f"; write {meant} if that is meant")


def test_so_does_one_of_the_table_and_of_a_column(folder: Folder) -> None:
    def change(whole: JsonObject) -> None:
        whole["table"]["tableIndexConfigs"] = {}
        whole["table"]["fieldConfigList"] = [{"name": "carrier", "encodingTypes": "RAW"}]

    notes = folder.notes(change=change)
    assert "write tableIndexConfig if" in notes["table.tableIndexConfigs"]
    assert "write encodingType if" in notes["table.fieldConfigList[0].encodingTypes"]


def test_a_realtime_table_has_the_note_too(folder: Folder) -> None:
    def change(whole: JsonObject) -> None:
        whole["table"]["tableIndexConfig"]["rangeIndexColums"] = []

    folder.realtime(change=change)
    _, problems, notes = folder.check()
    assert not problems
    assert [note.key for note in notes if "write rangeIndexColumns if that is meant" in note.text] == [
        "table.tableIndexConfig.rangeIndexColums"
    ]


@pytest.mark.parametrize("key", ["textIndexColumns", "invertedIndexColumns", "ofTomorrow"])
def test_any_other_key_gets_none(folder: Folder, key: str) -> None:
    def change(whole: JsonObject) -> None:
        whole["table"]["tableIndexConfig"][key] = ["carrier"]

    assert f"table.tableIndexConfig.{key}" not in folder.notes(change=change)
