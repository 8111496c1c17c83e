"""What only a real cluster can show: fetching, loading, waiting, answering."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from fakes.pinot.staged import STAGED, Staged

from pinot_assets.errors import PinotError, PushRefused, SwitchStateUnknown
from pinot_assets.pinot import HttpPinotClient, LineageState, PinotConnection, PushMode, Timeouts, wait_online
from pinot_assets.snapshot.receipt import Output

ContractLab = Any  # conftest.ContractLab; the folders of the tests are not packages

pytestmark = pytest.mark.integration


def far(folder: Path) -> Staged:
    """A staging area that the controller cannot reach."""
    return Staged(lambda uri: (folder / uri.rpartition("/")[2]).read_bytes())


def test_the_tar_is_sent_where_the_controller_cannot_fetch_it(real_lab: ContractLab) -> None:
    staged = [real_lab.stage("a"), real_lab.stage("b")]
    moved = [replace(output, tar_uri=f"nfs://far/{output.segment}.tar.gz") for output in staged]
    report = real_lab.pinot.push(real_lab.table, moved, staged=far(real_lab.folder))
    assert report.mode is PushMode.TAR
    assert report.fallback
    real_lab.wait_online("a", "b")
    assert real_lab.pinot.rows_on_servers(real_lab.table, ["a"], real_lab.servers)["a"].keys()
    real_lab.eventually(lambda: real_lab.brokers_show({"a", "b"}))


NO_TARS = Staged(lambda uri: b"no tar")


def torn(output: Output) -> Output:
    """The segment with the hash of what `NO_TARS` reads."""
    return replace(output, tar_sha256=hashlib.sha256(b"no tar").hexdigest())


@pytest.mark.parametrize("mode", [None, *PushMode])
def test_what_is_not_a_segment_is_refused_and_leaves_nothing(
    real_lab: ContractLab, mode: PushMode | None
) -> None:
    with pytest.raises(PushRefused):
        real_lab.pinot.push(real_lab.table, [torn(real_lab.stage("a"))], staged=NO_TARS, mode=mode)
    assert real_lab.all == set()
    # And the name can still be used.
    real_lab.push("a")
    assert real_lab.visible == {"a"}


def test_a_segment_that_servers_cannot_load_keeps_the_switch_shut(real_lab: ContractLab) -> None:
    real_lab.push("old")
    entry = real_lab.start({"old"}, {"torn"})
    cut = real_lab.stage("torn")
    tar = Path(unquote(urlsplit(cut.tar_uri).path))
    tar.write_bytes(tar.read_bytes()[:-200])
    real_lab.pinot.push(real_lab.table, [cut], staged=STAGED, mode=PushMode.METADATA)

    with pytest.raises(PinotError, match=r"torn on Server_.*: ERROR"):
        wait_online(real_lab.pinot, real_lab.table, ["torn"], seconds=30)
    assert real_lab.pinot.rows_on_servers(real_lab.table, ["torn"], real_lab.servers) == {"torn": {}}

    impatient = PinotConnection(real_lab.pinot.connection.controller_url, timeouts=Timeouts(end=1.5))
    with HttpPinotClient(impatient) as cluster, pytest.raises(SwitchStateUnknown):
        cluster.end_replace_segments(real_lab.table, entry)
    assert real_lab.pinot.lineage(real_lab.table).get(entry).state is LineageState.IN_PROGRESS
    assert real_lab.visible == {"old"}

    real_lab.pinot.force_revert_replace_segments(real_lab.table, entry)
    assert real_lab.all == {"old"}


def test_every_broker_answers_with_the_rows_that_show(real_lab: ContractLab) -> None:
    real_lab.push("old")
    entry = real_lab.start({"old"}, {"new"})
    real_lab.pinot.push(real_lab.table, [real_lab.stage("new", rows=10)], staged=STAGED)
    real_lab.wait_online("new")
    brokers = [real_lab.pinot.broker(url) for url in real_lab.pinot.brokers(real_lab.table)]
    sql = f"SELECT COUNT(*), MAX(delay) FROM {real_lab.table}"
    assert [broker.query(sql).rows for broker in brokers] == [((3, 2.0),), ((3, 2.0),)]

    real_lab.pinot.end_replace_segments(real_lab.table, entry)
    real_lab.eventually(lambda: real_lab.brokers_show({"new"}))
    assert [broker.query(sql).rows for broker in brokers] == [((10, 9.0),), ((10, 9.0),)]
    with pytest.raises(PinotError, match="nosuch"):
        brokers[0].query(f"SELECT nosuch FROM {real_lab.table}")


def test_a_hundred_segments_in_one_push(real_lab: ContractLab) -> None:
    names = [f"s{number:03}" for number in range(100)]
    report = real_lab.pinot.push(real_lab.table, [real_lab.stage(name) for name in names], staged=STAGED)
    assert set(report.pushed) == set(names)
    real_lab.wait_online(*names)
    rows = real_lab.pinot.rows_on_servers(real_lab.table, names, real_lab.servers)
    assert {tuple(servers.values()) for servers in rows.values()} == {(3, 3)}
