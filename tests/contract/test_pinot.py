"""What `pinot_assets.pinot.api.PinotClient` promises of segments, schemas and tables, held against every
subject.

The rest of the contract: `test_replacement.py`, `test_force.py`, `test_retention.py`, `test_races.py` and
`test_brokers.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fakes.pinot.staged import STAGED

from pinot_assets.errors import PinotError, PinotNotFound, PushRefused
from pinot_assets.pinot import PinotClient

ContractLab = Any  # conftest.ContractLab; the folders of the tests are not packages


# --- push and what can be read back ------------------------------------------------------------------


def test_a_new_table_is_empty(lab: ContractLab) -> None:
    assert lab.all == lab.visible == set()
    assert lab.pinot.lineage(lab.table).entries == ()


def test_a_segment_pushed_without_an_entry_is_visible_at_once(lab: ContractLab) -> None:
    lab.push("a", "b")
    assert lab.all == lab.visible == {"a", "b"}


def test_everything_the_audit_needs_reads_back_as_built(lab: ContractLab) -> None:
    small, large = lab.stage("small", rows=3), lab.stage("large", rows=500)
    report = lab.pinot.push(lab.table, [small, large], staged=STAGED)
    assert set(report.pushed) == {"small", "large"}
    assert report.fallback is None
    lab.push("other")
    lab.wait_online("small", "large")

    assert lab.pinot.segment_crcs(lab.table)["small"] == small.crc
    assert lab.pinot.segment_crcs(lab.table)["large"] == large.crc
    rows = lab.pinot.rows_on_servers(lab.table, ["small", "large", "nosuch"], lab.servers)
    assert {name: list(servers.values()) for name, servers in rows.items()} == {
        "small": [3, 3],
        "large": [500, 500],
        "nosuch": [],
    }
    one, _ = lab.servers
    assert lab.pinot.rows_on_servers(lab.table, ["small"], [one]) == {"small": {one: 3}}
    crcs = lab.pinot.crcs_on_servers(lab.table, lab.servers)
    assert list(crcs) == list(lab.servers)
    for there in crcs.values():
        assert not isinstance(there, PinotError)
        assert (there["small"], there["large"]) == (small.crc, large.crc)
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


def test_r09_live_segments_do_not_need_the_staging_area(lab: ContractLab) -> None:
    staged = lab.stage("a")
    lab.pinot.push(lab.table, [staged], staged=STAGED)
    assert lab.pinot.segment_metadata(lab.table, "a").download_url != staged.tar_uri


def test_pushing_again_skips_what_is_there(lab: ContractLab) -> None:
    first, second = lab.stage("a"), lab.stage("b")
    lab.pinot.push(lab.table, [first], staged=STAGED)
    report = lab.pinot.push(lab.table, [first, second], staged=STAGED)
    assert (report.pushed, report.skipped) == (("b",), ("a",))


def test_a_name_with_another_content_is_refused_and_nothing_is_pushed(lab: ContractLab) -> None:
    lab.push("a")
    other = lab.stage("a", rows=9)
    with pytest.raises(PushRefused):
        lab.pinot.push(lab.table, [lab.stage("b"), other], staged=STAGED)
    assert lab.all == {"a"}
    assert lab.pinot.segment_metadata(lab.table, "a").total_docs == 3


def test_deleting(lab: ContractLab) -> None:
    lab.push("a", "b", "c")
    lab.pinot.delete_segments(lab.table, ["a", "c", "nosuch"])
    assert lab.all == lab.visible == {"b"}
    assert lab.pinot.online_replicas(lab.table, ["a"])["a"].keys() <= set(
        lab.pinot.online_replicas(lab.table, ["b"])["b"]
    )


def test_an_empty_list_of_segments_to_delete_deletes_nothing(lab: ContractLab) -> None:
    lab.push("a")
    with pytest.raises(ValueError, match="list of segments to delete is empty"):
        lab.pinot.delete_segments(lab.table, [])
    assert lab.all == {"a"}


# --- tables and schemas -------------------------------------------------------------------------------


def test_schema_and_table_config_read_back(lab: ContractLab) -> None:
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
    config = lab.pinot.get_table_config(lab.table)
    assert config["tableName"] == f"{lab.table}_OFFLINE"
    assert config["quota"]["storage"] == "10G"
    with pytest.raises(PinotError):  # it exists
        lab.pinot.create_table(lab.config)


def test_a_time_boundary_that_was_set_by_hand_is_known(lab: ContractLab) -> None:
    assert lab.pinot.fixed_time_boundary_ms(lab.table) is None
    lab.inside.fix_time_boundary(lab.table, 1_700_000_000_000)
    assert lab.pinot.fixed_time_boundary_ms(lab.table) == 1_700_000_000_000


def test_a_new_table_is_looked_at_before_anything_of_it_is_there(lab: ContractLab) -> None:
    name = f"{lab.table}new"
    schema = {**lab.schema, "schemaName": name}
    config = {**lab.config, "tableName": name, "segmentsConfig": {"replication": "2"}}
    lab.pinot.validate_table(schema, config)
    timed = {**config, "segmentsConfig": {"replication": "2", "timeColumnName": "departed"}}
    with pytest.raises(PinotError, match="departed"):  # the schema has no such column
        lab.pinot.validate_table(schema, timed)
    with pytest.raises(PinotError, match="schemaName"):
        lab.pinot.validate_table(lab.schema, config)
    assert lab.pinot.get_schema(name) is None
    assert lab.pinot.get_table_config(name) is None


def test_a_table_that_is_there_is_looked_at_too(lab: ContractLab) -> None:
    lab.pinot.validate_table(lab.schema, {**lab.config, "quota": {"storage": "10G"}})
    assert (lab.pinot.get_table_config(lab.table) or {}).get("quota", {}).get("storage") is None


def test_a_dropped_table_is_gone(lab: ContractLab) -> None:
    lab.push("a")
    lab.pinot.delete_table(lab.table)
    assert lab.pinot.get_table_config(lab.table) is None
    with pytest.raises(PinotNotFound):
        lab.pinot.delete_table(lab.table)


def test_what_was_never_there_is_none(lab: ContractLab) -> None:
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
        pytest.param(lambda pinot: pinot.rows_on_servers("nosuch", ["a"], ["s"]), id="rows_on_servers"),
        pytest.param(lambda pinot: pinot.table_bytes("nosuch"), id="table_bytes"),
        pytest.param(lambda pinot: pinot.push("nosuch", [], staged=STAGED), id="push"),
        pytest.param(lambda pinot: pinot.delete_segments("nosuch", ["a"]), id="delete_segments"),
        pytest.param(lambda pinot: pinot.start_replace_segments("nosuch", [], ["a"]), id="start"),
        pytest.param(lambda pinot: pinot.end_replace_segments("nosuch", "a"), id="end"),
        pytest.param(lambda pinot: pinot.revert_replace_segments("nosuch", "a"), id="revert"),
        pytest.param(lambda pinot: pinot.brokers("nosuch"), id="brokers"),
    ],
)
def test_a_table_that_is_not_there(lab: ContractLab, call: Callable[[PinotClient], object]) -> None:
    with pytest.raises(PinotNotFound):
        call(lab.pinot)


def test_a_table_that_is_not_there_cannot_be_updated(lab: ContractLab) -> None:
    with pytest.raises(PinotNotFound):
        lab.pinot.update_table({**lab.config, "tableName": f"{lab.table}x"})


def test_a_segment_that_is_not_there(lab: ContractLab) -> None:
    with pytest.raises(PinotNotFound):
        lab.pinot.segment_metadata(lab.table, "nosuch")
