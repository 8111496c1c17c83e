"""Credentials on a real Pinot: its ZooKeeper names the brokers and servers that its controller tells of."""

from __future__ import annotations

import pytest
from fakes.tables import write_table

from pinot_assets.errors import PinotError
from pinot_assets.pinot import BasicAuth, HttpPinotClient, PinotConnection
from pinot_assets.settings.local_stack import StackState
from pinot_assets.table_spec.tables.apply import apply_plan, plan_apply
from pinot_assets.zookeeper import ZooKeeperInstances

TABLE = "trusted_addresses"


def test_every_broker_and_server_of_the_stack_is_named(stack: StackState, tmp_path) -> None:  # type: ignore[no-untyped-def]
    auth = BasicAuth("ada", "s3cret")  # this Pinot asks nobody who they are
    named = ZooKeeperInstances(stack.zookeeper, stack.cluster)
    open_one = PinotConnection(stack.controller_url)
    with (
        HttpPinotClient(open_one) as pinot,
        HttpPinotClient(PinotConnection(stack.controller_url, auth=auth, instances=named)) as ours,
        HttpPinotClient(PinotConnection(stack.controller_url, auth=auth)) as strangers,
    ):
        apply_plan(plan_apply(write_table(tmp_path, TABLE), pinot), pinot)
        try:
            servers, brokers = pinot.table_servers(TABLE), pinot.brokers(TABLE)
            assert len(servers) == len(brokers) == 2
            assert not [e for e in ours.server_disks(servers).values() if isinstance(e, PinotError)]
            for server, broker in zip(servers, brokers, strict=True):
                assert ours.broker_rows(broker, TABLE) == 0
                with pytest.raises(PinotError) as caught:
                    ours.query_server(server, f"SELECT COUNT(*) FROM {TABLE}", ["none"])
                assert "credentials" not in str(caught.value), "it was asked, and has no such segment"
                for refused in (
                    lambda broker=broker: strangers.broker_rows(broker, TABLE),
                    lambda server=server: strangers.ask_server(server, "/health"),
                    lambda server=server: strangers.query_server(server, "SELECT 1", ["none"]),
                ):
                    with pytest.raises(PinotError, match="credentials are not sent"):
                        refused()
        finally:
            pinot.delete_table(TABLE)
            pinot.delete_schema(TABLE)
