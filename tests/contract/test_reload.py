"""A server changes a published segment only when it loads it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pinot_assets.errors import PinotError, PinotNotFound

if TYPE_CHECKING:
    from contract.conftest import ContractLab


def kinds(lab: ContractLab, name: str, column: str) -> list[frozenset[str]]:
    """The inverted and bloom indexes of a column on each server."""
    held = lab.pinot.held_segments(lab.table, [name], lab.servers)[name]
    assert held
    return [one.indexes[column] & {"inverted", "bloom"} for one in held.values()]


def test_servers_tell_what_they_hold(answering_lab: ContractLab) -> None:
    lab = answering_lab
    lab.push("a", "b")
    held = lab.pinot.held_segments(lab.table, ["a", "b", "nosuch"], lab.servers)
    assert held["nosuch"] == {}
    for name in ("a", "b"):
        assert set(held[name]) == set(lab.servers)
        for one in held[name].values():
            assert set(one.indexes) == {"carrier", "delay"}
            assert {"dictionary", "inverted", "range", "bloom", "json"} <= one.reported
            assert one.rows == 3
            assert one.star_trees == 0
            assert one.types == {"carrier": "STRING", "delay": "LONG"}
    one = next(iter(held["a"]))
    assert set(lab.pinot.held_segments(lab.table, ["a"], [one])["a"]) == {one}


def test_an_index_comes_with_a_reload(answering_lab: ContractLab) -> None:
    lab = answering_lab
    lab.push("a", "b")
    assert lab.pinot.needs_reload(lab.table) in (False, None)
    lab.pinot.update_table(
        {**lab.config, "tableIndexConfig": {"loadMode": "MMAP", "bloomFilterColumns": ["carrier"]}}
    )
    assert all(kinds(lab, name, "carrier").count(frozenset({"bloom"})) == 0 for name in ("a", "b"))
    told = lab.pinot.needs_reload(lab.table)
    assert told is (True if lab.dialect.tells_what_to_reload else None)
    lab.pinot.reload_segment(lab.table, "a")
    lab.eventually(lambda: all("bloom" in one for one in kinds(lab, "a", "carrier")))
    assert all("bloom" not in one for one in kinds(lab, "b", "carrier"))
    lab.pinot.reload_segment(lab.table, "b")
    lab.eventually(lambda: all("bloom" in one for one in kinds(lab, "b", "carrier")))
    assert lab.pinot.needs_reload(lab.table) in (False, None)


def test_a_column_comes_with_a_reload(answering_lab: ContractLab) -> None:
    lab = answering_lab
    lab.push("a")
    schema = lab.schema
    schema["dimensionFieldSpecs"].append({"name": "origin", "dataType": "STRING"})
    lab.pinot.put_schema(schema)

    def columns() -> set[str]:
        held = lab.pinot.held_segments(lab.table, ["a"], lab.servers)["a"]
        return set.intersection(*(set(one.indexes) for one in held.values()))

    assert columns() == {"carrier", "delay"}
    lab.pinot.reload_segment(lab.table, "a")
    lab.eventually(lambda: columns() == {"carrier", "delay", "origin"})


def test_a_reload_is_reported(answering_lab: ContractLab) -> None:
    """Up to 0.11 a job may be younger than its reload, and then it never is: so another one is asked for."""
    lab = answering_lab
    lab.push("a")

    def reported() -> bool:
        job = lab.pinot.reload_segment(lab.table, "a")
        try:
            lab.eventually(lambda: lab.pinot.ask_if_reloaded(job))
        except AssertionError:
            return False
        return True

    assert any(reported() for _ in range(5))


def test_what_is_not_there_is_not_reloaded(answering_lab: ContractLab) -> None:
    lab = answering_lab
    lab.push("a")
    with pytest.raises(PinotNotFound):
        lab.pinot.reload_segment(lab.table, "nosuch")
    with pytest.raises(PinotNotFound):
        lab.pinot.ask_if_reloaded("nosuch")


def test_another_type_needs_another_schema(answering_lab: ContractLab) -> None:
    lab = answering_lab
    lab.push("a")
    schema = lab.schema
    schema["metricFieldSpecs"][0]["dataType"] = "DOUBLE"
    with pytest.raises(PinotError, match="not backward-compatible"):
        lab.pinot.put_schema(schema)
    lab.pinot.replace_schema(schema)
    stored = lab.pinot.get_schema(lab.table)
    assert stored is not None
    assert stored["metricFieldSpecs"][0]["dataType"] == "DOUBLE"
    lab.eventually(lambda: lab.brokers_show({"a"}))
