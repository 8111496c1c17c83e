"""Segments of one partition and one time slice: what they need, and what would prune nothing."""

from __future__ import annotations

import pytest

PARTITIONS = {"columnPartitionMap": {"carrier": {"functionName": "Murmur", "numPartitions": 4}}}
TWO = {
    "columnPartitionMap": PARTITIONS["columnPartitionMap"]
    | {"distance": {"functionName": "Murmur", "numPartitions": 2}}
}
NOT_THERE = {"columnPartitionMap": {"carier": {"functionName": "Murmur", "numPartitions": 4}}}
OF_PARTITIONS = "table.tableIndexConfig.segmentPartitionConfig.columnPartitionMap.carrier"


def layout(block, partitions=None, pruners=None, **segments):
    def change(whole):
        whole["layout"] = block
        whole["table"]["segmentsConfig"].update(segments)
        if partitions:
            whole["table"]["tableIndexConfig"]["segmentPartitionConfig"] = partitions
        if pruners:
            whole["table"]["routing"] = {"segmentPrunerTypes": pruners}

    return change


@pytest.mark.parametrize(
    ("block", "cells"),
    [
        ({"partition": True}, (True, None)),
        ({"timeSlice": "day"}, (False, "DAY")),
        ({"timeSlice": "Month", "partition": "true"}, (True, "MONTH")),
        ({"partition": False}, None),
        ({}, None),
    ],
)
def test_what_decides_which_rows_share_a_segment(folder, block, cells):
    spec = folder.load(change=layout({"pack": True, **block}, PARTITIONS))
    found = spec.layout.cells
    assert (None if found is None else (found.partition, found.time_slice)) == cells
    without = folder.load(change=layout({"pack": True}, PARTITIONS))
    assert (spec.config_fingerprint("1") == without.config_fingerprint("1")) == (cells is None)
    huge = 1 << 50
    assert (huge < spec.layout.small_below) == (cells is not None), "then large files are packed, too"


@pytest.mark.parametrize(
    ("block", "partitions", "segments", "key", "reason"),
    [
        ({"partition": True}, None, {}, "partition", "needs a partitioned column"),
        ({"partition": True}, NOT_THERE, {}, "partition", "needs a partitioned column"),
        ({"partition": True}, TWO, {}, "partition", "the table config has carrier, distance"),
        ({"timeSlice": "DAY"}, None, {"timeColumnName": None}, "timeSlice", "needs a time column"),
        ({"timeSlice": "HOUR"}, None, {}, "timeSlice", "is not one of DAY, WEEK, MONTH, YEAR"),
        ({"timeSlice": "wek"}, None, {}, "timeSlice", "did you mean WEEK?"),
        ({"timeSlice": "DAY", "pack": False}, None, {}, "timeSlice", "has no meaning without packs"),
        ({"partition": True, "pack": False}, PARTITIONS, {}, "partition", "has no meaning without packs"),
    ],
)
def test_what_cannot_be_is_refused_at_its_key(folder, block, partitions, segments, key, reason):
    [problem] = folder.problems(change=layout({"pack": True, **block}, partitions, **segments))
    assert problem.key == f"layout.{key}"
    assert reason in problem.reason


@pytest.mark.parametrize(
    ("pruners", "first"),
    [
        (
            None,
            "write routing: {segmentPrunerTypes: [partition]} in the table config, and write layout",
        ),
        (
            ["time"],
            "write routing: {segmentPrunerTypes: [time, partition]} in the table config, and write l",
        ),
        (["Partition", "time"], "write layout: {pack: true, partition: true} beside fileIngestion"),
    ],
)
def test_partitions_that_no_segment_has_alone_name_what_mends_it(folder, pruners, first):
    note = folder.notes(change=layout({"pack": True}, PARTITIONS, pruners))[OF_PARTITIONS]
    assert note.startswith(first)
    assert "all partitions of carrier" in note


def test_of_two_partitioned_columns_the_files_decide(folder):
    notes = folder.notes(change=layout({"pack": True}, TWO, ["partition"]))
    assert notes[OF_PARTITIONS].startswith(
        "deliver files that each have the rows of one partition of carrier"
    )


def test_cells_without_a_pruner_name_it(folder):
    both = {"pack": True, "partition": True, "timeSlice": "DAY"}
    notes = folder.notes(change=layout(both, PARTITIONS, ["partition"]))
    assert notes == {
        "layout.timeSlice": "write routing: {segmentPrunerTypes: [partition, time]} in the table config, or "
        "brokers ask all segments"
    }
    both_lack = folder.notes(change=layout(both, PARTITIONS))
    assert [*both_lack] == ["layout.partition", "layout.timeSlice"]
    assert all("segmentPrunerTypes: [partition, time]}" in note for note in both_lack.values())
    assert not folder.notes(change=layout(both, PARTITIONS, ["PARTITION", "time"]))
