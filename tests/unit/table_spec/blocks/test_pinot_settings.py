"""Settings of the table that bear on sessions: refused with the reason, or said."""

from __future__ import annotations

from typing import Any

import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import SpecError
from pinot_assets.table_spec.blocks.pinot_settings import bearings, refuse_settings


def laid(path: tuple[str, ...], value: object) -> JsonObject:
    for step in reversed(path):
        value = {step: value}
    assert isinstance(value, dict)
    return value


PUSH = ("ingestionConfig", "batchIngestionConfig", "consistentDataPush")
ENTRY = ("segmentsConfig", "lineageEntryCleanupRetentionPeriod")
REPLACED = ("segmentsConfig", "replacedSegmentsRetentionPeriod")

TEXT, FST, PROPERTY = ("indexes", "text", "fst"), ("indexes", "fst", "type"), ("properties", "fstType")


def task(name: str) -> tuple[str, ...]:
    return ("task", "taskTypeConfigsMap", name)


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (PUSH, True, "only one program may write a table"),
        (PUSH, "true", "only one program may write a table"),
        (task("SegmentGenerationAndPushTask"), {}, "only one program may write a table"),
        (task("MaterializedViewTask"), {"definedSQL": "SELECT a FROM b"}, "a view of another one"),
        (ENTRY, "59m", "shorter than a switch may take"),
        (ENTRY, "0d", "shorter than a switch may take"),
        (ENTRY, "soon", "not a period"),
        (REPLACED, "1 day", "not a period"),
    ],
)
def test_refused(path: tuple[str, ...], value: object, reason: str) -> None:
    config = laid(path, value)
    (found,) = bearings(config)
    assert found.path == path
    assert reason in found.text
    assert found.fix
    with pytest.raises(SpecError, match=reason) as refusal:
        refuse_settings("flights", config)
    assert ".".join(path) in str(refusal.value)


def test_segments_that_change_where_they_are_are_not_taken_from_peers() -> None:
    config = laid(("segmentsConfig", "peerSegmentDownloadScheme"), "http") | laid(task("PurgeTask"), {})
    refused = [found for found in bearings(config) if found.fix is not None]
    assert [found.path[-1] for found in refused] == ["peerSegmentDownloadScheme"]
    with pytest.raises(SpecError, match="load the old one from a peer"):
        refuse_settings("flights", config)


@pytest.mark.parametrize("name", ["MergeRollupTask", "UpsertCompactMergeTask"])
@pytest.mark.parametrize("mode", ["append", "sync", "swap"])
def test_e23_merging_tasks_are_refused_in_every_mode(folder: Any, name: str, mode: str) -> None:
    modes = {"append": {}, "sync": {"ingestionMode": "sync"}, "swap": {"consistentPushSwapEnabled": "true"}}
    (problem,) = folder.problems(
        modes[mode], change=lambda whole: whole["table"].update(laid(task(name), {"a": "b"}))
    )
    assert problem.key == f"table.task.taskTypeConfigsMap.{name}"
    assert "no file can be replaced or rolled back" in problem.reason


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (ENTRY, "2h", "opened again after half of it"),
        (REPLACED, "7d", "is kept for 7d"),
        (REPLACED, "0d", "no revert is possible"),
        (task("PurgeTask"), {}, "brings the purged rows back"),
        (("segmentsConfig", "peerSegmentDownloadScheme"), "http", "no name is used twice"),
    ],
)
def test_accepted_and_said(path: tuple[str, ...], value: object, told: str) -> None:
    (found,) = bearings(laid(path, value))
    assert told in found.text
    assert found.fix is None
    refuse_settings("flights", laid(path, value))


@pytest.mark.parametrize(
    ("config", "path"),
    [
        (laid(("tableIndexConfig", "fstindexType"), "NATIVE"), ("tableIndexConfig", "fstindexType")),
        ({"fieldConfigList": [laid(TEXT, "native")]}, ("fieldConfigList", 0, *TEXT)),
        ({"fieldConfigList": [{}, laid(FST, "NATIVE")]}, ("fieldConfigList", 1, *FST)),
        ({"fieldConfigList": [laid(PROPERTY, "native")]}, ("fieldConfigList", 0, *PROPERTY)),
    ],
)
def test_a_native_text_or_fst_index_is_told(config: JsonObject, path: tuple[str | int, ...]) -> None:
    (found,) = bearings(config)
    assert (found.path, found.fix) == (path, None)
    assert "Pinot after 1.5.1 has only Lucene's" in found.text


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"fieldConfigList": [laid(TEXT, "LUCENE"), None, "text"]},
        laid(PUSH, False),
        laid(task("RefreshSegmentTask"), {}),
        {"segmentsConfig": "1d", "task": ["MergeRollupTask"], "ingestionConfig": None},
    ],
)
def test_nothing_to_say(config: JsonObject) -> None:
    assert list(bearings(config)) == []


def test_a_note_stands_at_its_line(folder: Any) -> None:
    notes = folder.notes(
        change=lambda w: w["table"]["segmentsConfig"].update(laid(REPLACED, "0d")["segmentsConfig"])
    )
    assert "at its next clean-up" in notes["table.segmentsConfig.replacedSegmentsRetentionPeriod"]


def test_e29_a_realtime_table_is_refused(folder: Any) -> None:
    problems = folder.problems(change=lambda whole: whole["table"].update(tableType="REALTIME"))
    assert [p.key for p in problems] == ["table.tableType"]
    assert "consuming segments cannot be replaced" in problems[0].reason
