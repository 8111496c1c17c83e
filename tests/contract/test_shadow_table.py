"""A second table with the same segments: it is known by its mark, answers for itself, and goes alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx
import pytest
from fakes.pinot.staged import STAGED

from pinot_assets.errors import PinotError, PinotNotFound
from pinot_assets.pinot import NoResult
from pinot_assets.pinot.shadow_table import (
    lone_schema,
    shadow_config,
    shadow_name,
    shadow_schema,
    shadow_tables,
)
from pinot_assets.pinot.versions import brokers_keep_all_groups
from pinot_assets.table_spec.blocks.assertion import MOST_GROUPS, MOST_WITH_HAVING

ContractLab = Any  # conftest.ContractLab; the folders of the tests are not packages


@contextmanager
def shadow_of(lab: ContractLab) -> Iterator[str]:
    """The laboratory's table has its shadow table, as an audit makes it."""
    name = shadow_name(lab.table)
    lab.pinot.put_schema(shadow_schema(lab.pinot.get_schema(lab.table), lab.table))
    lab.pinot.create_table(shadow_config(lab.pinot.get_table_config(lab.table), lab.table))
    try:
        yield name
    finally:
        if lab.pinot.get_table_config(name) is not None:
            lab.pinot.delete_table(name, "0d")
        lab.pinot.delete_schema(name)


def test_it_is_known_by_its_mark(lab: ContractLab) -> None:
    with shadow_of(lab) as name:
        assert shadow_tables(lab.pinot, [lab.table, name]) == (name,)
        lab.pinot.delete_table(name, "0d")
        assert shadow_tables(lab.pinot, [lab.table, name]) == ()


def test_its_schema_alone_is_known_too(lab: ContractLab) -> None:
    """Whatever Pinot makes of a schema that it stores, the mark stays; the table's own schema has none."""
    with shadow_of(lab) as name:
        assert not lone_schema(lab.pinot, name)  # the table uses it
        lab.pinot.delete_table(name, "0d")
        assert lone_schema(lab.pinot, name)
        assert not lone_schema(lab.pinot, lab.table)
    assert not lone_schema(lab.pinot, name)


def test_a_name_with_two_underscores_is_no_tables(lab: ContractLab) -> None:
    with pytest.raises(PinotError, match="double underscore"):
        lab.pinot.create_table({**lab.config, "tableName": f"{lab.table}__audit"})


def test_the_same_staged_segment_goes_into_both_and_the_hidden_one_stays_hidden(lab: ContractLab) -> None:
    lab.push("old")
    lab.start({"old"}, {"new"})
    new = lab.stage("new", rows=7)
    lab.pinot.push(lab.table, [new], staged=STAGED)
    with shadow_of(lab) as name:
        lab.pinot.push(name, [new], staged=STAGED)
        assert lab.pinot.visible_segments(name) == {"new"}
        assert lab.pinot.segment_crcs(name) == {"new": new.crc}
        assert lab.visible == {"old"}
    assert lab.all == {"old", "new"}
    assert lab.visible == {"old"}


def test_what_is_deleted_with_it_is_its_own_copy_alone(wired_lab: ContractLab) -> None:
    """Pinot deletes in the folder of the table's name, wherever a segment was fetched from."""
    lab = wired_lab
    staged = lab.stage("a")
    lab.pinot.push(lab.table, [staged], staged=STAGED)
    with shadow_of(lab) as name:
        lab.pinot.push(name, [staged], staged=STAGED)
        own = lab.pinot.segment_metadata(lab.table, "a").download_url
        copy = lab.pinot.segment_metadata(name, "a").download_url
        assert own != copy
        assert httpx.get(copy, trust_env=False).content == STAGED.read(staged.tar_uri)
        lab.pinot.delete_table(name, "0d")
        lab.eventually(lambda: httpx.get(copy, trust_env=False).status_code == 404)
        assert httpx.get(own, trust_env=False).content == STAGED.read(staged.tar_uri)
    with pytest.raises(PinotNotFound):
        lab.pinot.all_segments(name)


def test_a_broker_answers_for_the_one_that_is_asked(answering_lab: ContractLab) -> None:
    lab = answering_lab
    lab.push("old")
    with shadow_of(lab) as name:
        [broker, *_] = lab.pinot.brokers(lab.table)
        new = lab.stage("new", rows=7)
        lab.pinot.push(name, [new], staged=STAGED)
        lab.eventually(lambda: set(lab.pinot.brokers(name)) == set(lab.pinot.brokers(lab.table)))
        lab.eventually(lambda: counted(lab, broker, name) == 7)
        assert counted(lab, broker, lab.table) == 3


def test_a_broker_of_an_empty_table_has_nothing_to_ask(answering_lab: ContractLab) -> None:
    """1.5 knows the table already, and counts none."""
    lab = answering_lab
    [broker, *_] = lab.pinot.brokers(lab.table)
    with suppress(NoResult):
        answer = lab.pinot.query_broker(broker, f'SELECT COUNT(*) FROM "{lab.table}_OFFLINE"')
        assert answer.rows == ((0,),)


def test_all_that_brokers_merge_is_answered_in_the_order_of_the_text(real_lab: ContractLab) -> None:
    lab = real_lab
    lab.push("a")
    [broker, *_] = lab.pinot.brokers(lab.table)
    sql = (
        f"SELECT AVG(delay), carrier, DISTINCTCOUNT(delay), PERCENTILE(delay, 50), MIN(delay) "
        f'FROM "{lab.table}_OFFLINE" GROUP BY carrier HAVING COUNT(*) > 2'
    )
    lab.eventually(lambda: counted(lab, broker, lab.table) == 3)
    assert lab.pinot.query_broker(broker, sql).rows == ((1.0, "UA", 3, 1.0, 0.0),)
    with pytest.raises(PinotError):
        lab.pinot.query_broker(broker, f'SELECT SUM(nosuch) FROM "{lab.table}_OFFLINE"')


def test_no_group_is_left_out_before_having(real_lab: ContractLab) -> None:
    """Pinot keeps five times LIMIT of them where nobody says otherwise, and is silent on the others."""
    lab = real_lab
    rows = 5 * MOST_GROUPS + 1000
    lab.pinot.push(lab.table, [lab.stage("a", rows=rows)], staged=STAGED)
    [broker, *_] = lab.pinot.brokers(lab.table)
    lab.eventually(lambda: counted(lab, broker, lab.table) == rows)
    having = f"GROUP BY delay HAVING MAX(delay) >= {rows - 1}"
    select = f'SELECT delay, COUNT(*) FROM "{lab.table}_OFFLINE" {having}'
    limits = [f"LIMIT {MOST_WITH_HAVING}"]
    if brokers_keep_all_groups(lab.pinot.version()):
        limits += ["LIMIT 1", "ORDER BY COUNT(*) LIMIT 1"]
    for limit in limits:
        assert lab.pinot.query_broker(broker, f"{select} {limit}").rows == ((rows - 1, 1),)


def counted(lab: ContractLab, broker: str, table: str) -> Any:
    try:
        [[rows]] = lab.pinot.query_broker(broker, f'SELECT COUNT(*) FROM "{table}_OFFLINE"').rows
    except PinotError:
        return None
    return rows
