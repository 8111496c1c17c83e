"""Indexes that queries would never use: the note begins with the line that mends it."""

from __future__ import annotations

import pytest
from fakes.spec_folder import Change, Folder

from pinot_assets.core.json_object import JsonObject

TREES: JsonObject = {"starTreeIndexConfigs": [{"dimensionsSplitOrder": ["carrier"], "maxLeafRecords": 1}]}
FLAG: JsonObject = {"enableDynamicStarTreeCreation": True}
OF_TREES = "table.tableIndexConfig.tierOverwrites.cold"


def indexing(*settings: JsonObject) -> Change:
    def change(whole: JsonObject) -> None:
        for more in settings:
            whole["table"]["tableIndexConfig"] |= more

    return change


def of_tier(trees: JsonObject) -> JsonObject:
    return {"tierOverwrites": {"cold": trees, "other": {"loadMode": "MMAP"}}}


def test_trees_of_a_tier_without_the_flag_name_the_flag_first(folder: Folder) -> None:
    notes = folder.notes(change=indexing(of_tier(TREES)))
    assert notes[OF_TREES].startswith(
        "write enableDynamicStarTreeCreation: true in tableIndexConfig, or no server"
    )
    assert not any(key.endswith(".other") for key in notes)


@pytest.mark.parametrize("settings", [(of_tier(TREES), FLAG), (of_tier({**TREES, **FLAG}),)])
def test_with_the_flag_servers_build_the_trees_of_a_tier(
    folder: Folder, settings: tuple[JsonObject, ...]
) -> None:
    note = folder.notes(change=indexing(*settings))[OF_TREES]
    assert note == "servers build its star-trees when they load a segment on this tier"


def test_a_realtime_table_has_the_note_too(folder: Folder) -> None:
    folder.realtime(change=indexing(of_tier({"enableDefaultStarTree": "true"})))
    _, problems, notes = folder.check()
    assert not problems
    assert [note.text.partition(" in ")[0] for note in notes if note.key == OF_TREES] == [
        "write enableDynamicStarTreeCreation: true"
    ]


def test_a_star_tree_that_is_refused_names_the_flag_first_at_its_own_line(folder: Folder) -> None:
    [problem] = folder.problems(change=indexing(TREES))
    assert problem.key == "table.tableIndexConfig.starTreeIndexConfigs"
    assert problem.fix is not None
    assert problem.fix.startswith("write enableDynamicStarTreeCreation: true in tableIndexConfig")
    assert problem.fix.endswith(", or remove it")
