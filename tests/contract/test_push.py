"""How segments get into Pinot, for every subject: batches, lost replies, half done uploads, leads."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from fakes.pinot.staged import STAGED

from pinot_assets.errors import LeaseLost, PushRefused, SwitchStateUnknown
from pinot_assets.pinot import PushMode, ServerDisk
from pinot_assets.pinot.client.client_pool import lead_of, same_cluster

ContractLab = Any  # conftest.ContractLab; the folders of the tests are not packages

MANY = [f"s{number:02}" for number in range(30)]


def test_r08_many_segments_take_few_uploads_and_all_are_as_built(lab: ContractLab) -> None:
    staged = [lab.stage(name) for name in MANY]
    report = lab.pinot.push(lab.table, staged, staged=STAGED)
    assert report.calls == lab.dialect.uploads(len(MANY))
    assert set(report.pushed) == lab.all == set(MANY)
    assert dict(lab.pinot.segment_crcs(lab.table)) == {o.segment: o.crc for o in staged}
    lab.wait_online(*MANY)
    rows = lab.pinot.rows_on_servers(lab.table, MANY, lab.servers)
    assert {tuple(servers.values()) for servers in rows.values()} == {(3, 3)}


def test_r09_no_segment_of_a_batch_needs_the_staging_area(lab: ContractLab) -> None:
    staged = [lab.stage(name) for name in MANY[:4]]
    lab.pinot.push(lab.table, staged, staged=STAGED, mode=PushMode.METADATA)
    for output in staged:
        metadata = lab.pinot.segment_metadata(lab.table, output.segment)
        assert metadata.download_url != output.tar_uri
        assert metadata.custom["pinotAssets.uri"] == "s3://lake/a b=1/été.csv"


def test_a_push_under_an_entry_stays_hidden(lab: ContractLab) -> None:
    lab.push("old")
    entry = lab.start({"old"}, set(MANY))
    lab.push(*MANY)
    assert lab.visible == {"old"}
    lab.end(entry)
    assert lab.visible == set(MANY)


@pytest.mark.parametrize("lose", ["lose_call", "lose_reply"])
def test_a_push_that_was_cut_short_is_completed_by_the_next(lab: ContractLab, lose: str) -> None:
    staged = [lab.stage(name) for name in MANY[:6]]
    getattr(lab.trouble, lose)("push")
    with suppress(SwitchStateUnknown):
        lab.pinot.push(lab.table, staged, staged=STAGED, mode=PushMode.METADATA)
    lab.pinot.push(lab.table, staged, staged=STAGED, mode=PushMode.METADATA)
    assert lab.all == set(MANY[:6])
    again = lab.pinot.push(lab.table, staged, staged=STAGED)
    assert (again.pushed, again.mode) == ((), None)


@pytest.mark.parametrize("mode", PushMode)
def test_what_an_upload_left_half_there_is_pushed_all_the_same(lab: ContractLab, mode: PushMode) -> None:
    staged = [lab.stage(name) for name in MANY[:3]]
    lab.inside.leave_metadata(lab.table, staged[1])
    assert lab.all == lab.visible == set()
    assert lab.pinot.segment_crcs(lab.table) == {}
    lab.pinot.push(lab.table, staged, staged=STAGED, mode=mode)
    assert lab.all == set(MANY[:3])
    lab.wait_online(*MANY[:3])


def test_r02_without_the_lease_nothing_is_pushed(lab: ContractLab) -> None:
    def lost() -> None:
        raise LeaseLost("another run holds the table")

    with pytest.raises(LeaseLost):
        lab.pinot.push(lab.table, [lab.stage("a"), lab.stage("b")], staged=STAGED, before_upload=lost)
    assert lab.all == set()


def test_whole_tars_are_as_good(lab: ContractLab) -> None:
    staged = [lab.stage(name, rows=400) for name in ("a", "b")]
    report = lab.pinot.push(lab.table, staged, staged=STAGED, mode=PushMode.TAR)
    assert report.mode is PushMode.TAR
    lab.wait_online("a", "b")
    assert set(lab.pinot.rows_on_servers(lab.table, ["b"], lab.servers)["b"].values()) == {400}


def test_an_empty_table_has_the_servers_that_its_segments_will_go_to(lab: ContractLab) -> None:
    servers = lab.servers
    assert len(servers) == 2
    lab.push("a")
    assert lab.servers == servers


def test_a_table_that_uses_some_servers_of_its_tenant_has_those_alone(lab: ContractLab) -> None:
    config = lab.pinot.get_table_config(lab.table)
    assert config is not None
    one = {
        "tagPoolConfig": {"tag": "DefaultTenant_OFFLINE"},
        "replicaGroupPartitionConfig": {"numInstances": 1},
    }
    table = f"{lab.table}_one"
    schema = lab.pinot.get_schema(lab.table)
    assert schema is not None
    lab.pinot.put_schema({**schema, "schemaName": table})
    try:
        lab.pinot.create_table(
            {
                **config,
                "tableName": f"{table}_OFFLINE",
                "segmentsConfig": {**config["segmentsConfig"], "replication": "1"},
                "instanceAssignmentConfigMap": {"OFFLINE": one},
            }
        )
        [server] = lab.pinot.table_servers(table)
        assert server in lab.servers
    finally:
        lab.pinot.delete_table(table)
        lab.pinot.delete_schema(table)


def test_new_segments_go_to_the_servers_of_the_table(lab: ContractLab) -> None:
    lab.push("a")
    servers = lab.pinot.table_servers(lab.table)
    assert set(lab.pinot.online_replicas(lab.table, ["a"])["a"]) == set(servers)
    versions = lab.pinot.server_versions(lab.table)
    assert versions.keys() == set(servers)
    named = {text.partition("-")[0] for text in versions.values()}
    assert named == {lab.dialect.server_version.partition("-")[0]}
    disks = lab.pinot.server_disks(servers)
    assert disks.keys() <= set(servers)
    assert all(isinstance(disk, ServerDisk) and disk.total >= disk.used >= 0 for disk in disks.values())


# --- over HTTP ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [None, PushMode.METADATA])
def test_one_segment_that_is_not_staged_does_not_poison_the_others(
    wired_lab: ContractLab, mode: PushMode | None
) -> None:
    lab = wired_lab
    staged = [lab.stage(name) for name in MANY[:6]]
    gone = Path(unquote(urlsplit(staged[3].tar_uri).path))
    content = gone.read_bytes()
    gone.unlink()
    with pytest.raises(PushRefused, match="s03"):
        lab.pinot.push(lab.table, staged, staged=STAGED, mode=mode)
    assert "s03" not in lab.all
    gone.write_bytes(content)
    lab.pinot.push(lab.table, staged, staged=STAGED, mode=mode)
    lab.wait_online(*MANY[:6])
    assert lab.all == set(MANY[:6])


def test_names_and_places_with_other_letters(wired_lab: ContractLab, tmp_path: Path) -> None:
    lab = wired_lab
    folder = tmp_path / "a b=1 ü%41"
    folder.mkdir()
    moved = []
    for output in (lab.stage("a"), lab.stage("b"), lab.stage("c")):
        tar = folder / f"{output.segment}.tar.gz"
        tar.write_bytes(STAGED.read(output.tar_uri))
        moved.append(replace(output, tar_uri=tar.as_uri()))
    report = lab.pinot.push(lab.table, moved, staged=STAGED)
    assert (report.mode, report.fallback) == (PushMode.METADATA, None)
    lab.wait_online("a", "b", "c")


def test_a_controller_tells_who_leads_a_table_and_which_cluster_it_serves(wired_lab: ContractLab) -> None:
    lab = wired_lab
    clients, url = lab.pinot._clients, lab.pinot.connection.controller_url
    lab.eventually(lambda: lead_of(lab.pinot._get(f"/leader/tables/{lab.table}"), "http") is not None)
    lead = lead_of(lab.pinot._get(f"/leader/tables/{lab.table}"), "http")
    assert urlsplit(lead).port == urlsplit(url).port
    assert same_cluster(clients, url, lead, lab.table)
    assert not same_cluster(clients, url, lead, "nosuch")
    assert not same_cluster(clients, url, "http://127.0.0.1:1", lab.table)
