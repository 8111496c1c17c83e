"""What `PinotClient.query_server` promises: hidden segments are answered for, and nothing is left out."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.pinot.staged import STAGED

from pinot_assets.audit.assertions import tally
from pinot_assets.errors import PinotError
from pinot_assets.table_spec.blocks.assertion_sql import read_question

ContractLab = Any  # conftest.ContractLab; the folders of the tests are not packages


def count(lab: ContractLab, server: str, *names: str) -> Any:
    table = lab.pinot.query_server(server, f'SELECT COUNT(*) FROM "{lab.table}_OFFLINE"', names)
    [[rows]] = table.rows
    return rows


def stage_beside_old(lab: ContractLab) -> None:
    """`old` is live, `new` and `more` are pushed behind an open entry."""
    lab.push("old")
    lab.start({"old"}, {"new", "more"})
    staged = [lab.stage("new", rows=7), lab.stage("more", rows=500)]
    lab.pinot.push(lab.table, staged, staged=STAGED)
    lab.wait_online("old", "new", "more")


def test_every_server_answers_for_what_no_query_sees(answering_lab: ContractLab) -> None:
    lab = answering_lab
    stage_beside_old(lab)
    assert lab.visible == {"old"}
    servers = lab.pinot.online_replicas(lab.table, ["new"])["new"]
    assert len(servers) == 2
    for server in servers:
        assert count(lab, server, "new") == 7
        assert count(lab, server, "new", "more") == 507
        assert count(lab, server, "old") == 3


def test_parts_of_several_servers_are_the_whole(real_lab: ContractLab) -> None:
    lab = real_lab
    stage_beside_old(lab)
    question = read_question(
        f"SELECT carrier, COUNT(*), SUM(delay), MIN(delay), MAX(delay) FROM {lab.table}"
        " WHERE delay <> 3 GROUP BY carrier"
    )
    sql = question.of(f"{lab.table}_OFFLINE")
    [one, other] = lab.pinot.online_replicas(lab.table, ["new"])["new"]
    parts = [lab.pinot.query_server(one, sql, ["new"]), lab.pinot.query_server(other, sql, ["more"])]
    rows = [n for n in [*range(7), *range(500)] if n != 3]
    assert tally(question, parts) == {("UA",): (len(rows), sum(rows), 0, 499)}


def test_what_only_pinot_can_merge_is_seen_as_such(real_lab: ContractLab) -> None:
    real_lab.push("a")
    [server, *_] = real_lab.pinot.online_replicas(real_lab.table, ["a"])["a"]
    sql = f'SELECT COUNT(*), AVG(delay) FROM "{real_lab.table}_OFFLINE"'
    assert real_lab.pinot.query_server(server, sql, ["a"]).rows == ((3, None),)


def test_a_segment_that_a_server_does_not_have_is_no_answer(answering_lab: ContractLab) -> None:
    lab = answering_lab
    lab.push("a")
    [server, *_] = lab.pinot.online_replicas(lab.table, ["a"])["a"]
    for names in (["nosuch"], ["a", "nosuch"]):
        with pytest.raises(PinotError, match="235"):
            count(lab, server, *names)


def test_no_segment_at_all_is_not_asked_for(answering_lab: ContractLab) -> None:
    lab = answering_lab
    lab.push("a")
    [server, *_] = lab.pinot.online_replicas(lab.table, ["a"])["a"]
    with pytest.raises(ValueError, match="no segment"):
        count(lab, server)


def test_a_server_that_pinot_does_not_know(answering_lab: ContractLab) -> None:
    answering_lab.push("a")
    with pytest.raises(PinotError):
        count(answering_lab, "Server_127.0.0.1_1", "a")
