from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from pinot_assets.errors import PinotUnreachable, SpecDrift
from pinot_assets.spec.apply import apply_plan, drift, plan_apply, refuse_drift


class Controller:
    """Schemas and table configs in memory, stored as Pinot stores them; writes are recorded."""

    def __init__(self, forgets: str | None = None) -> None:
        self.schemas: dict[str, dict[str, Any]] = {}
        self.tables: dict[str, dict[str, Any]] = {}
        self.writes: list[str] = []
        self._forgets = forgets

    def get_schema(self, name: str) -> dict[str, Any] | None:
        return self.schemas.get(name)

    def put_schema(self, schema: Mapping[str, Any]) -> None:
        self.writes.append("schema")
        stored = copy.deepcopy(dict(schema))
        self.schemas[schema["schemaName"]] = {**stored, "enableColumnBasedNullHandling": False}

    def get_table_config(self, table: str) -> dict[str, Any] | None:
        return self.tables.get(table)

    def create_table(self, config: Mapping[str, Any]) -> None:
        assert config["tableName"] not in self.tables
        self.writes.append("create")
        self._store(config)

    def update_table(self, config: Mapping[str, Any]) -> None:
        assert config["tableName"] in self.tables
        self.writes.append("update")
        self._store(config)

    def _store(self, config: Mapping[str, Any]) -> None:
        stored = copy.deepcopy(dict(config))
        stored["tenants"] = {"broker": "DefaultTenant", **stored["tenants"]}
        if self._forgets:
            del stored[self._forgets]
        self.tables[config["tableName"]] = stored


def test_schema_then_table_are_created(folder):
    spec, controller = folder.load(), Controller()
    plan = plan_apply(spec, controller)
    assert (plan.schema.action, plan.table.action, controller.writes) == ("create", "create", [])
    apply_plan(plan, controller)
    assert controller.writes == ["schema", "create"]
    assert drift(spec, controller) == []
    assert plan_apply(spec, controller).changes_nothing


def test_what_is_there_is_updated_and_only_what_differs(folder):
    controller = Controller()
    apply_plan(plan_apply(folder.load(), controller), controller)
    controller.writes.clear()
    spec = folder.load(change=lambda w: w["table"]["segmentsConfig"].update(replication="3"))
    plan = plan_apply(spec, controller)
    assert [d.path for d in plan.table.differences] == ["table.segmentsConfig.replication"]
    apply_plan(plan, controller)
    assert controller.writes == ["update"]
    spec = folder.load(
        change=lambda w: (
            w["table"]["segmentsConfig"].update(replication="3"),
            w["schema"]["dimensionFieldSpecs"].append({"name": "origin", "dataType": "STRING"}),
        )
    )
    apply_plan(plan_apply(spec, controller), controller)
    assert controller.writes == ["update", "schema"]


def test_nothing_to_do_writes_nothing(folder):
    controller = Controller()
    spec = folder.load()
    apply_plan(plan_apply(spec, controller), controller)
    controller.writes.clear()
    apply_plan(plan_apply(spec, controller), controller)
    assert controller.writes == []


def test_a_setting_that_pinot_forgets_is_told(folder):
    spec = folder.load(change=lambda w: w["table"].update(quota={"storage": "1G"}))
    controller = Controller(forgets="quota")
    with pytest.raises(SpecDrift, match="did not keep") as caught:
        apply_plan(plan_apply(spec, controller), controller)
    assert "table.quota.storage" in str(caught.value)


def test_a_run_refuses_on_drift_with_all_of_it(folder):
    controller, spec = Controller(), folder.load()
    with pytest.raises(SpecDrift, match="tables apply flights"):
        refuse_drift(spec, controller)
    apply_plan(plan_apply(spec, controller), controller)
    refuse_drift(spec, controller)
    controller.tables["flights"]["segmentsConfig"]["replication"] = "1"
    controller.schemas["flights"]["dimensionFieldSpecs"][0]["dataType"] = "INT"
    with pytest.raises(SpecDrift) as caught:
        refuse_drift(spec, controller)
    assert "schema.columns.carrier.dataType" in str(caught.value)
    assert 'table.segmentsConfig.replication: wanted "2", found "1"' in str(caught.value)


def test_an_apply_that_is_broken_off_says_what_was_written(folder):
    spec, controller = folder.load(), Controller()
    plan = plan_apply(spec, controller)

    def away(config):
        raise PinotUnreachable("no connection", hint="is Pinot running there?")

    controller.create_table = away
    with pytest.raises(PinotUnreachable) as broken:
        apply_plan(plan, controller)
    assert broken.value.hint == (
        "done so far: schema flights written; `pinot-assets tables apply flights` does what is left; "
        "is Pinot running there?"
    )
