"""What is asked of a Pinot about a REALTIME table, and how its answers are read."""

from __future__ import annotations

import pytest
from fakes.realtime.memory import MINUTE_MS, NOW_MS, S1, S2, TABLE, FakeRealtime

from pinot_assets.errors import PinotError, PinotNotFound, PinotUnreachable

HOST1 = "http://host1:8097"


@pytest.mark.parametrize("version", ["1.5.1", "0.11.0"])
def test_the_table_as_zookeeper_has_it(version: str) -> None:
    fake = FakeRealtime(version)
    name = fake.segment(states={S1: "ONLINE", S2: "ERROR"})
    with fake.pinot() as pinot:
        assert pinot.version() == version
        assert pinot.realtime_tables() == (TABLE,)
        ideal = pinot.ideal_state(TABLE)
        assert ideal is not None
        assert ideal.maps == {name: {S1: "ONLINE", S2: "ONLINE"}}
        assert pinot.external_view(TABLE) == {name: {S1: "ONLINE", S2: "ERROR"}}
        assert pinot.segment_nodes(TABLE)[name]["segment.realtime.status"] == "DONE"
        assert pinot.segment_stats(TABLE)[name].modified_ms == NOW_MS - 10 * MINUTE_MS
        assert pinot.committing_listed(TABLE) == frozenset()


def test_what_is_not_there() -> None:
    with FakeRealtime().pinot() as pinot:
        assert pinot.table_config("other_REALTIME") is None
        assert pinot.node("NOWHERE/AT/ALL") is None
        assert pinot.children("NOWHERE") == ()
        assert pinot.child_stats("NOWHERE") == {}
        with pytest.raises(PinotNotFound):
            pinot.segment_node(TABLE, "clicks__0__0__20260202T0240Z")


def test_pending_messages_are_those_of_the_table() -> None:
    fake = FakeRealtime()
    fake.servers[S1].messages = ["a", "b"]
    with fake.pinot() as pinot:
        assert pinot.pending_messages(TABLE, S1) == {"a", "b"}
        assert pinot.pending_messages("other_REALTIME", S1) == frozenset()


def test_a_server_that_speaks_tls_alone() -> None:
    fake = FakeRealtime()
    fake.servers[S1].ports = {"adminHttpsPort": 7443}
    with fake.pinot() as pinot:
        assert pinot.admin_url(pinot.instance(S1)) == "https://host1:7443"
        with pytest.raises(PinotNotFound):
            pinot.instance("Server_none_1")


def test_servers_live_ready_starting_or_away() -> None:
    fake = FakeRealtime()
    fake.kill(S2, ago_ms=5000)
    with fake.pinot() as pinot:
        assert pinot.servers_of(TABLE, {}) == (S1, S2)
        assert pinot.live_since() == {S1: NOW_MS - 60 * MINUTE_MS}
        assert pinot.offline_since(S2) == NOW_MS - 5000
        assert pinot.offline_since(S1) is None
        assert pinot.admin_url(pinot.instance(S1)) == HOST1
        assert pinot.admin_url({"hostName": "Server_h", "adminPort": -1}) is None
        assert (
            pinot.admin_url({"hostName": "Server_h", "adminPort": 1, "adminHttpsPort": "2"}) == "http://h:1"
        )
        assert pinot.ask_if_ready(HOST1)
        fake.servers[S1].ready = False
        assert not pinot.ask_if_ready(HOST1)
        fake.servers[S1].ready = None
        with pytest.raises(PinotUnreachable):
            pinot.ask_if_ready(HOST1)


def test_settings_are_found_whatever_their_case_and_do_not_show() -> None:
    fake = FakeRealtime()
    fake.controller_config = {"controller.segment.error.autoReset": "false", "s3.accessKey": "GEHEIM"}
    with fake.pinot() as pinot:
        config = pinot.controller_config()
        assert config.flag("controller.segment.error.autoReset", True) is False
        assert config.number("controller.data.dir", 3) == 3
        assert config.text("controller.data.dir") is None
        assert "GEHEIM" not in repr(config)
        assert pinot.config_at(HOST1).text("pinot.server.instance.segment.store.uri") == "s3://b/d"
        assert pinot.cluster_config().text("anything") is None


def test_consumers_and_jobs() -> None:
    fake = FakeRealtime()
    name = fake.segment(status="IN_PROGRESS", end=50)
    fake.servers[S1].reingested = ["x"]
    with fake.pinot() as pinot:
        (one, _) = pinot.consuming_segments(TABLE)[name]
        assert one["partitionOffsetInfo"]["currentOffsetsMap"] == {"0": "50"}
        assert pinot.reingesting(HOST1) == {"x"}
        job = pinot.force_commit(TABLE)
        assert job is not None
        assert pinot.force_commit_pending(job) == frozenset()


def test_brokers_and_what_they_find() -> None:
    fake = FakeRealtime()
    name = fake.segment(end=70)
    with fake.pinot() as pinot:
        assert pinot.brokers_of(TABLE) == ("http://broker1:8099", "http://broker2:8099")
        assert pinot.answered_rows("http://broker1:8099", TABLE) == {name: 70}
        fake.away.add("broker1/query")
        with pytest.raises(PinotError):
            pinot.answered_rows("http://broker1:8099", TABLE)
