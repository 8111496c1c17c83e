from __future__ import annotations

import pytest

from pinot_assets.table_spec.blocks.layout import LayoutSettings
from pinot_assets.table_spec.changes.recipe import recipe_of
from pinot_assets.table_spec.changes.spec_changes import Verdict, spec_changes

FILE = {"name": "source_file", "dataType": "STRING"}


def with_layout(block, field=FILE, **others):
    def change(whole):
        whole["schema"]["dimensionFieldSpecs"].append(field)
        whole["layout"] = block
        whole["fileIngestion"].update(others)

    return change


def problems(folder, block, field=FILE, **others):
    return folder.problems(change=with_layout(block, field, **others))


def test_a_spec_without_the_block_has_the_defaults(folder):
    assert folder.load().layout == LayoutSettings()
    assert folder.load(change=lambda whole: whole.update(layout={})).layout == LayoutSettings()


def test_the_column_is_part_of_the_spec_and_of_its_fingerprint(folder):
    spec = folder.load(change=with_layout({"provenanceColumn": "source_file"}))
    assert spec.layout.provenance_column == "source_file"
    without = folder.load(change=with_layout({}))
    assert spec.config_fingerprint("1") != without.config_fingerprint("1")


@pytest.mark.parametrize(
    ("block", "field", "reason"),
    [
        ("source_file", FILE, "is not a mapping"),
        ({"provenance": "source_file"}, FILE, "is not a key of the layout block"),
        ({"provenanceColumn": 7}, FILE, "is not the name of a column"),
        ({"provenanceColumn": ""}, FILE, "is not the name of a column"),
        ({"provenanceColumn": ["a"]}, FILE, "is not the name of a column"),
        ({"provenanceColumn": "${TABLE_X}"}, FILE, "refers to the environment"),
        ({"provenanceColumn": "source_fil"}, FILE, "source_fil is no column of the schema"),
        ({"provenanceColumn": "source_file"}, FILE | {"dataType": "BYTES"}, "is BYTES, and has to be STRING"),
        ({"provenanceColumn": "distance"}, FILE, "is a column of dateTimeFieldSpecs or metricFieldSpecs"),
        (None, FILE, "is empty"),
        (
            {"provenanceColumn": "source_file"},
            FILE | {"singleValueField": False},
            "has several values a row",
        ),
        (
            {"provenanceColumn": "source_file"},
            FILE | {"singleValueField": "false"},
            "has several values a row",
        ),
        ({"provenanceColumn": "source_file"}, FILE | {"notNull": True}, "has notNull"),
    ],
)
def test_what_is_wrong_with_it_has_a_line(folder, block, field, reason):
    (problem,) = problems(folder, block, field)
    assert reason in str(problem)
    assert problem.key.startswith("layout")
    assert problem.fix
    assert problem.line > 1


def test_a_name_that_is_nearly_right_is_offered(folder):
    (problem,) = problems(folder, {"provenanceColumn": "source_fil"})
    assert problem.fix == "did you mean source_file?"


def test_expressions_neither_make_nor_read_it(folder):
    block = {"provenanceColumn": "source_file"}
    (made,) = problems(folder, block, **{"transforms.source_file": "upper(x)"})
    assert "transforms.source_file cannot fill it" in made.reason
    (read,) = problems(folder, block, filter="source_file like '%.csv' and source_files is null")
    assert "filter cannot read source_file" in read.reason
    for text in (
        "source_files is null or a_source_file = 'x'",
        "carrier = 'source_file' -- not source_file",
        "carrier.source_file is null",
        "exists(array(carrier), source_file -> source_file = 'x')",
        "carrier = `source_file `",
    ):
        assert not problems(folder, block, filter=text), text
    assert problems(folder, block, filter="`source_file` is null")


@pytest.mark.parametrize("key", ["provenanceColumn", "layout.provenanceColumn"])
def test_in_the_ingestion_block_it_says_where_it_belongs(folder, key):
    (problem,) = folder.problems(change=lambda whole: whole["fileIngestion"].update({key: "source_file"}))
    assert "beside the ingestion block" in str(problem.fix)


def test_a_realtime_table_has_none(folder):
    file = folder.spec()
    file.write_text(file.read_text().replace("fileIngestion:", "layout: {}\nrealtime: {}\nfileIngestion:"))
    assert any("is only for OFFLINE tables" in problem.reason for problem in folder.check()[1])


def test_published_files_lack_it_until_they_are_read_again(folder):
    before = recipe_of(folder.load())
    now = recipe_of(folder.load(change=with_layout({"provenanceColumn": "source_file"})))
    (added,) = spec_changes(before, now)
    assert (added.column, added.verdict) == ("source_file", Verdict.REBUILD)

    plain = recipe_of(folder.load(change=with_layout({})))
    named = {change.setting: change.verdict for change in spec_changes(plain, now)}
    assert named == dict.fromkeys(("provenanceColumn", "inputDirURI"), Verdict.REBUILD)
    moved = folder.load(change=with_layout({"provenanceColumn": "source_file"}, inputDirURI="../elsewhere"))
    (elsewhere,) = spec_changes(now, recipe_of(moved))
    assert (elsewhere.setting, elsewhere.verdict) == ("inputDirURI", Verdict.REBUILD)
    same = folder.load(
        change=with_layout({"provenanceColumn": "source_file"}, inputDirURI="s3a://flights-in/2013/")
    )
    assert not spec_changes(now, recipe_of(same)), "the same folder, written otherwise"
    assert not spec_changes(plain, recipe_of(folder.load(change=with_layout({}, inputDirURI="../elsewhere"))))


APPEND = {"ingestionMode": "append", "consistentPushEnabled": True}


def test_packs_have_a_target_and_a_class_of_files(folder):
    layout = folder.load(change=with_layout({"pack": True}, **APPEND)).layout
    assert (layout.target_bytes, layout.small_below, layout.wait_for) == (300 << 20, 75 << 20, None)
    wait = {"minutes": "30", "bytes": "100MB"}
    block = {"pack": "true", "targetSegmentSize": "8m", "waitFor": wait}
    layout = folder.load(change=with_layout(block, **APPEND)).layout
    assert (layout.target_bytes, layout.small_below) == (8 << 20, 2 << 20)
    assert (layout.wait_for.minutes, layout.wait_for.enough_bytes) == (30, 100 << 20)
    without = folder.load(change=with_layout({}, **APPEND))
    assert without.layout.small_below == 0
    packed = folder.load(change=with_layout({"pack": True}, **APPEND))
    assert packed.config_fingerprint("1") != without.config_fingerprint("1")


@pytest.mark.parametrize(
    ("block", "others", "key", "reason"),
    [
        ({"pack": "yes"}, APPEND, "layout.pack", "is neither true nor false"),
        ({"pack": None}, APPEND, "layout.pack", "has no value"),
        ({"paks": True}, APPEND, "layout.paks", "is not a key of the layout block"),
        ({"pack": True}, {"ingestionMode": "append", "consistentPushEnabled": False}, "layout.pack", "plain"),
        ({"targetSegmentSize": "1g"}, APPEND, "layout.targetSegmentSize", "has no meaning without packs"),
        ({"pack": True, "targetSegmentSize": "x"}, APPEND, "layout.targetSegmentSize", "is not a size"),
        (
            {"pack": True, "targetSegmentSize": "1k"},
            APPEND,
            "layout.targetSegmentSize",
            "smallest target is 1 MB",
        ),
        ({"pack": True, "targetSegmentSize": "10t"}, APPEND, "layout.targetSegmentSize", "is above 2 GB"),
        (
            {"pack": True, "waitFor": {"minutes": 5, "bytes": 0}},
            APPEND,
            "layout.waitFor.bytes",
            "is 0, so no",
        ),
        ({"waitFor": {"minutes": 5}}, APPEND, "layout.waitFor", "has no meaning without packs"),
        ({"pack": True, "waitFor": 5}, APPEND, "layout.waitFor", "is not a mapping"),
        ({"pack": True, "waitFor": {"bytes": "1g"}}, APPEND, "layout.waitFor", "says no minutes"),
        ({"pack": True, "waitFor": {"minutes": 0}}, APPEND, "layout.waitFor.minutes", "is not above 0"),
        (
            {"pack": True, "waitFor": {"minute": 1, "minutes": 1}},
            APPEND,
            "layout.waitFor.minute",
            "not a key",
        ),
        (
            {"pack": True, "waitFor": {"minutes": 1}},
            {"consistentPushSwapEnabled": True},
            "layout.waitFor",
            "a swap, which reads all files",
        ),
    ],
)
def test_what_is_wrong_with_packs_has_a_line(folder, block, others, key, reason):
    (problem,) = problems(folder, block, FILE, **others)
    assert (problem.key, reason in str(problem)) == (key, True), str(problem)
    assert problem.line > 1


def test_a_swap_may_pack(folder):
    assert folder.load(change=with_layout({"pack": True}, consistentPushSwapEnabled=True)).layout.pack
