"""What `pinot_assets.pinot.port.Pinot` promises, held against the fake and against a real cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from pinot_assets.errors import PinotError, PinotNotFound, PushRefused, SwitchConflict, SwitchStateUnknown
from pinot_assets.pinot import LineageState, Pinot
from pinot_assets.pinot.versions import takes_empty_outputs

Lab = Any  # conftest.Lab; the folders of the tests are not packages


def read(uri: str) -> bytes:
    return Path(unquote(urlsplit(uri).path)).read_bytes()


# --- push and what can be read back ------------------------------------------------------------------


def test_a_new_table_is_empty(lab: Lab) -> None:
    assert lab.all == lab.visible == set()
    assert lab.pinot.lineage(lab.table).entries == ()
    assert lab.brokers_show(set())


def test_a_segment_pushed_without_an_entry_is_visible_at_once(lab: Lab) -> None:
    lab.push("a", "b")
    assert lab.all == lab.visible == {"a", "b"}
    lab.eventually(lambda: lab.brokers_show({"a", "b"}))


def test_everything_the_audit_needs_reads_back_as_built(lab: Lab) -> None:
    small, large = lab.stage("small", rows=3), lab.stage("large", rows=500)
    report = lab.pinot.push(lab.table, [small, large], read=read)
    assert set(report.pushed) == {"small", "large"}
    assert report.fallback is None
    lab.push("other")
    lab.wait_online("small", "large")

    assert lab.pinot.segment_crcs(lab.table)["small"] == small.crc
    assert lab.pinot.segment_crcs(lab.table)["large"] == large.crc
    rows = lab.pinot.rows_on_servers(lab.table, ["small", "large", "nosuch"])
    assert {name: list(servers.values()) for name, servers in rows.items()} == {
        "small": [3, 3],
        "large": [500, 500],
        "nosuch": [],
    }
    replicas = lab.pinot.online_replicas(lab.table, ["small", "nosuch"])
    assert list(replicas["small"].values()) == ["ONLINE", "ONLINE"]
    assert replicas["small"].keys() == rows["small"].keys()
    assert replicas["nosuch"] == {}
    metadata = lab.pinot.segment_metadata(lab.table, "large")
    assert (metadata.crc, metadata.total_docs) == (large.crc, 500)
    assert metadata.custom["pinotAssets.session"] == "cp7-ab"
    assert metadata.custom["pinotAssets.uri"] == "s3://lake/a b=1/été.csv"
    assert metadata.download_url.endswith("large")
    assert lab.pinot.table_bytes(lab.table) > 0


def test_live_segments_do_not_need_the_staging_area(lab: Lab) -> None:
    staged = lab.stage("a")
    lab.pinot.push(lab.table, [staged], read=read)
    assert lab.pinot.segment_metadata(lab.table, "a").download_url != staged.tar_uri


def test_pushing_again_skips_what_is_there(lab: Lab) -> None:
    first, second = lab.stage("a"), lab.stage("b")
    lab.pinot.push(lab.table, [first], read=read)
    report = lab.pinot.push(lab.table, [first, second], read=read)
    assert (report.pushed, report.skipped) == (("b",), ("a",))


def test_a_name_with_another_content_is_refused_and_nothing_is_pushed(lab: Lab) -> None:
    lab.push("a")
    other = lab.stage("a", rows=9)
    with pytest.raises(PushRefused):
        lab.pinot.push(lab.table, [lab.stage("b"), other], read=read)
    assert lab.all == {"a"}
    assert lab.pinot.segment_metadata(lab.table, "a").total_docs == 3


def test_deleting(lab: Lab) -> None:
    lab.push("a", "b", "c")
    lab.pinot.delete_segments(lab.table, ["a", "c", "nosuch"])
    assert lab.all == lab.visible == {"b"}
    assert lab.pinot.online_replicas(lab.table, ["a"])["a"].keys() <= set(
        lab.pinot.online_replicas(lab.table, ["b"])["b"]
    )
    lab.eventually(lambda: lab.brokers_show({"b"}))


def test_an_empty_list_of_segments_to_delete_deletes_nothing(lab: Lab) -> None:
    lab.push("a")
    with pytest.raises(ValueError, match="empty list"):
        lab.pinot.delete_segments(lab.table, [])
    assert lab.all == {"a"}


# --- the switch --------------------------------------------------------------------------------------


def test_outputs_are_hidden_until_the_switch_and_sources_from_then_on(lab: Lab) -> None:
    lab.push("old", "kept")
    entry = lab.start({"old"}, {"new1", "new2"})
    lab.push("new1", "new2")
    assert lab.all == {"old", "kept", "new1", "new2"}
    assert lab.visible == {"old", "kept"}
    assert lab.brokers_show({"old", "kept"})

    lab.pinot.end_replace_segments(lab.table, entry)

    assert lab.visible == {"kept", "new1", "new2"}
    assert lab.all == {"old", "kept", "new1", "new2"}
    lab.eventually(lambda: lab.brokers_show({"kept", "new1", "new2"}))
    (found,) = lab.pinot.lineage(lab.table)
    assert (found.id, found.state) == (entry, LineageState.COMPLETED)
    assert (found.segments_from, found.segments_to) == ({"old"}, {"new1", "new2"})


def test_an_entry_without_sources_adds(lab: Lab) -> None:
    lab.push("old")
    entry = lab.start(set(), {"new"})
    lab.push("new")
    assert lab.visible == {"old"}
    lab.pinot.end_replace_segments(lab.table, entry)
    assert lab.visible == {"old", "new"}


def test_an_entry_without_outputs_deletes_where_pinot_takes_it(lab: Lab) -> None:
    lab.push("old", "kept")
    assert takes_empty_outputs(lab.pinot.version()) == lab.empty_outputs
    if lab.empty_outputs:
        lab.pinot.end_replace_segments(lab.table, lab.start({"old"}, set()))
        assert lab.visible == {"kept"}
    else:
        with pytest.raises(PinotError, match="segmentsTo"):
            lab.start({"old"}, set())
        assert lab.visible == {"old", "kept"}
        assert lab.pinot.lineage(lab.table).entries == ()


def test_reverting_brings_the_sources_back_and_deletes_the_outputs(lab: Lab) -> None:
    lab.push("old")
    entry = lab.replace({"old"}, {"new"})
    lab.pinot.revert_replace_segments(lab.table, entry)
    assert lab.visible == lab.all == {"old"}
    assert lab.pinot.lineage(lab.table).get(entry).state is LineageState.REVERTED
    lab.eventually(lambda: lab.brokers_show({"old"}))


def test_the_newest_of_a_chain_is_all_that_shows(lab: Lab) -> None:
    lab.push("a")
    first = lab.replace({"a"}, {"b"})
    second = lab.replace({"b"}, {"c"})
    assert lab.visible == {"c"}
    assert [entry.id for entry in lab.pinot.lineage(lab.table)] == [first, second]


# --- refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("segments_from", "segments_to"),
    [
        pytest.param({"nosuch"}, {"x"}, id="source missing"),
        pytest.param({"replaced"}, {"x"}, id="source replaced already"),
        pytest.param({"hidden"}, {"x"}, id="source hidden"),
        pytest.param({"a"}, {"b"}, id="output visible"),
        pytest.param({"busy"}, {"x"}, id="source of an open entry"),
        pytest.param(set(), {"hidden"}, id="output of an open entry"),
    ],
)
def test_a_start_that_cannot_be_is_refused(lab: Lab, segments_from: set[str], segments_to: set[str]) -> None:
    lab.push("a", "b", "replaced", "busy")
    lab.replace({"replaced"}, {"replacement"})
    lab.start({"busy"}, {"hidden"})
    lab.push("hidden")
    before = lab.pinot.lineage(lab.table)
    with pytest.raises(SwitchConflict):
        lab.start(segments_from, segments_to)
    assert lab.pinot.lineage(lab.table) == before


def test_a_start_of_nothing_or_of_a_torn_name_is_a_mistake_of_the_caller(lab: Lab) -> None:
    with pytest.raises(ValueError, match="nothing"):
        lab.start(set(), set())
    with pytest.raises(ValueError, match="tear"):
        lab.start(set(), {"a,b"})
    assert lab.pinot.lineage(lab.table).entries == ()


def test_the_names_of_a_reverted_entry_are_free_for_a_start(lab: Lab) -> None:
    lab.push("old")
    entry = lab.start({"old"}, {"new"})
    lab.pinot.force_revert_replace_segments(lab.table, entry)
    assert lab.start({"old"}, {"new"}) != entry


def test_ending(lab: Lab) -> None:
    lab.push("old")
    entry = lab.start({"old"}, {"new"})
    with pytest.raises(SwitchConflict):  # the output is not there
        lab.pinot.end_replace_segments(lab.table, entry)
    assert lab.visible == {"old"}
    lab.push("new")
    lab.pinot.end_replace_segments(lab.table, entry)
    lab.pinot.end_replace_segments(lab.table, entry)  # twice does nothing
    assert lab.visible == {"new"}
    with pytest.raises(SwitchConflict):
        lab.pinot.end_replace_segments(lab.table, "6e1b8e6e-no-such-entry")
    lab.pinot.revert_replace_segments(lab.table, entry)
    with pytest.raises(SwitchConflict):  # it is reverted
        lab.pinot.end_replace_segments(lab.table, entry)
    assert lab.visible == {"old"}


def test_reverting_what_is_open_needs_force(lab: Lab) -> None:
    lab.push("old")
    entry = lab.start({"old"}, {"new"})
    lab.push("new")
    with pytest.raises(SwitchConflict):
        lab.pinot.revert_replace_segments(lab.table, entry)
    assert lab.all == {"old", "new"}
    lab.pinot.force_revert_replace_segments(lab.table, entry)
    assert lab.all == lab.visible == {"old"}


def test_reverts_that_cannot_be_are_refused(lab: Lab) -> None:
    lab.push("a")
    first = lab.replace({"a"}, {"b"})
    second = lab.replace({"b"}, {"c"})
    with pytest.raises(SwitchConflict):  # the second builds on it
        lab.pinot.revert_replace_segments(lab.table, first)
    with pytest.raises(SwitchConflict):
        lab.pinot.revert_replace_segments(lab.table, "6e1b8e6e-no-such-entry")
    lab.pinot.revert_replace_segments(lab.table, second)
    for revert in (lab.pinot.revert_replace_segments, lab.pinot.force_revert_replace_segments):
        with pytest.raises(SwitchConflict):  # it is reverted
            revert(lab.table, second)
    assert lab.visible == {"b"}


def test_a_revert_to_deleted_sources_is_refused(lab: Lab) -> None:
    lab.push("old", "kept")
    entry = lab.replace({"old"}, {"new"})
    lab.pinot.delete_segments(lab.table, ["old"])
    lab.eventually(lambda: not lab.pinot.online_replicas(lab.table, ["old"])["old"])
    with pytest.raises(SwitchConflict):
        lab.pinot.revert_replace_segments(lab.table, entry)
    assert lab.visible == {"kept", "new"}


# --- force -------------------------------------------------------------------------------------------


def test_a_forced_start_with_the_same_names_takes_the_entry_over(lab: Lab) -> None:
    lab.push("old")
    first = lab.start({"old"}, {"new"})
    lab.push("new")
    second = lab.pinot.force_start_replace_segments(lab.table, {"old"}, {"new"})
    assert [entry.id for entry in lab.pinot.lineage(lab.table)] == [second] != [first]
    assert (lab.all, lab.visible) == ({"old", "new"}, {"old"})


def test_a_forced_start_deletes_what_it_does_not_keep(lab: Lab) -> None:
    lab.push("old")
    first = lab.start({"old"}, {"stale", "new"})
    lab.push("stale", "new")
    second = lab.pinot.force_start_replace_segments(lab.table, {"old"}, {"new", "more"})
    lineage = lab.pinot.lineage(lab.table)
    assert (lineage.get(first).state, lineage.get(first).segments_to) == (
        LineageState.REVERTED,
        {"stale"},
    )
    assert lineage.get(second).state is LineageState.IN_PROGRESS
    assert (lab.all, lab.visible) == ({"old", "new"}, {"old"})
    with pytest.raises(SwitchConflict):
        lab.pinot.end_replace_segments(lab.table, first)


def test_a_forced_start_leaves_a_disjoint_entry_alone(lab: Lab) -> None:
    lab.push("a", "b")
    first = lab.start({"a"}, {"new"})
    lab.pinot.force_start_replace_segments(lab.table, {"b"}, {"other"})
    assert lab.pinot.lineage(lab.table).get(first).state is LineageState.IN_PROGRESS


def test_a_forced_start_keeps_two_snapshots_of_a_refresh_table(lab: Lab) -> None:
    lab.push("a")
    first = lab.replace({"a"}, {"b"})
    lab.pinot.force_start_replace_segments(lab.table, {"b"}, {"c"})
    assert lab.all == {"b"}
    with pytest.raises(SwitchConflict):  # no way back
        lab.pinot.revert_replace_segments(lab.table, first)


# --- lost calls and lost replies ---------------------------------------------------------------------


def test_after_a_lost_start_the_lineage_tells(lab: Lab) -> None:
    lab.push("old")
    lab.trouble.lose_call("start_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        lab.start({"old"}, {"new"})
    assert lab.pinot.lineage(lab.table).find({"old"}, {"new"}) == ()

    lab.trouble.lose_reply("start_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        lab.start({"old"}, {"new"})
    (entry,) = lab.pinot.lineage(lab.table).find({"old"}, {"new"})
    assert entry.state is LineageState.IN_PROGRESS
    with pytest.raises(SwitchConflict):  # not idempotent
        lab.start({"old"}, {"new"})


def test_after_a_lost_end_the_lineage_tells(lab: Lab) -> None:
    lab.push("old")
    entry = lab.start({"old"}, {"new"})
    lab.push("new")
    lab.trouble.lose_call("end_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        lab.pinot.end_replace_segments(lab.table, entry)
    assert lab.pinot.lineage(lab.table).get(entry).state is LineageState.IN_PROGRESS

    lab.trouble.lose_reply("end_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        lab.pinot.end_replace_segments(lab.table, entry)
    assert lab.pinot.lineage(lab.table).get(entry).state is LineageState.COMPLETED
    assert lab.visible == {"new"}


def test_after_a_lost_revert_the_lineage_tells(lab: Lab) -> None:
    lab.push("old")
    entry = lab.replace({"old"}, {"new"})
    lab.trouble.lose_reply("revert_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        lab.pinot.revert_replace_segments(lab.table, entry)
    assert lab.pinot.lineage(lab.table).get(entry).state is LineageState.REVERTED
    assert lab.visible == {"old"}


# --- tables, schemas, brokers ------------------------------------------------------------------------


def test_schema_and_table_config_read_back(lab: Lab) -> None:
    wider = {
        **lab.schema,
        "metricFieldSpecs": [*lab.schema["metricFieldSpecs"], {"name": "miles", "dataType": "INT"}],
    }
    lab.pinot.put_schema(wider)
    assert {spec["name"] for spec in lab.pinot.get_schema(lab.table)["metricFieldSpecs"]} == {
        "delay",
        "miles",
    }
    changed = {**lab.config, "quota": {"storage": "10G"}}
    lab.pinot.update_table(changed)
    found = lab.pinot.get_table_config(lab.table)
    assert found["tableName"] == f"{lab.table}_OFFLINE"
    assert found["quota"]["storage"] == "10G"
    with pytest.raises(PinotError):  # it exists
        lab.pinot.create_table(lab.config)


def test_a_dropped_table_is_gone(lab: Lab) -> None:
    lab.push("a")
    lab.pinot.delete_table(lab.table)
    assert lab.pinot.get_table_config(lab.table) is None
    with pytest.raises(PinotNotFound):
        lab.pinot.delete_table(lab.table)


def test_what_was_never_there_is_none(lab: Lab) -> None:
    assert lab.pinot.get_schema("nosuch") is None
    assert lab.pinot.get_table_config("nosuch") is None
    with pytest.raises(PinotNotFound):
        lab.pinot.delete_schema("nosuch")


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda pinot: pinot.all_segments("nosuch"), id="all_segments"),
        pytest.param(lambda pinot: pinot.visible_segments("nosuch"), id="visible_segments"),
        pytest.param(lambda pinot: pinot.lineage("nosuch"), id="lineage"),
        pytest.param(lambda pinot: pinot.segment_crcs("nosuch"), id="segment_crcs"),
        pytest.param(lambda pinot: pinot.online_replicas("nosuch", ["a"]), id="online_replicas"),
        pytest.param(lambda pinot: pinot.segment_metadata("nosuch", "a"), id="segment_metadata"),
        pytest.param(lambda pinot: pinot.rows_on_servers("nosuch", ["a"]), id="rows_on_servers"),
        pytest.param(lambda pinot: pinot.table_bytes("nosuch"), id="table_bytes"),
        pytest.param(lambda pinot: pinot.push("nosuch", [], read=read), id="push"),
        pytest.param(lambda pinot: pinot.delete_segments("nosuch", ["a"]), id="delete_segments"),
        pytest.param(lambda pinot: pinot.start_replace_segments("nosuch", [], ["a"]), id="start"),
        pytest.param(lambda pinot: pinot.end_replace_segments("nosuch", "a"), id="end"),
        pytest.param(lambda pinot: pinot.revert_replace_segments("nosuch", "a"), id="revert"),
        pytest.param(lambda pinot: pinot.brokers("nosuch"), id="brokers"),
    ],
)
def test_a_table_that_is_not_there(lab: Lab, call: Callable[[Pinot], object]) -> None:
    with pytest.raises(PinotNotFound):
        call(lab.pinot)


def test_a_table_that_is_not_there_cannot_be_updated(lab: Lab) -> None:
    with pytest.raises(PinotNotFound):
        lab.pinot.update_table({**lab.config, "tableName": f"{lab.table}x"})


def test_a_segment_that_is_not_there(lab: Lab) -> None:
    with pytest.raises(PinotNotFound):
        lab.pinot.segment_metadata(lab.table, "nosuch")


def test_rebuilding_the_routing_changes_nothing_that_is_right(lab: Lab) -> None:
    lab.push("old")
    lab.replace({"old"}, {"new"})
    for broker in lab.pinot.brokers(lab.table):
        lab.pinot.rebuild_routing(broker, lab.table)
        assert lab.pinot.broker_visible_segments(broker, lab.table) == {"new"}
