from __future__ import annotations

import copy

import pytest

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.errors import PinotError, PinotUnreachable, SpecDrift, SwitchStateUnknown
from pinot_assets.table_spec.tables.apply import apply_plan, plan_apply
from pinot_assets.table_spec.tables.drift import drift, refuse_drift


class Controller:
    """Schemas and table configs in memory, stored as Pinot stores them; writes are recorded."""

    def __init__(self, forgets: str | None = None) -> None:
        self.schemas: dict[str, JsonObject] = {}
        self.tables: dict[str, JsonObject] = {}
        self.writes: list[str] = []
        self._forgets = forgets
        self.refuses: dict[str, PinotError] = {}

    def _may(self, method: str) -> None:
        if method in self.refuses:
            raise self.refuses[method]

    def get_schema(self, name: str) -> JsonObject | None:
        return self.schemas.get(name)

    def put_schema(self, schema: JsonMapping) -> None:
        self._may("put_schema")
        self.writes.append("schema")
        stored = copy.deepcopy(dict(schema))
        self.schemas[schema["schemaName"]] = {**stored, "enableColumnBasedNullHandling": False}

    def delete_schema(self, name: str) -> None:
        self._may("delete_schema")
        self.writes.append("delete schema")
        del self.schemas[name]

    def all_segments(self, table: str) -> frozenset[str]:
        return frozenset()

    def validate_table(self, schema: JsonMapping, config: JsonMapping) -> None:
        assert schema["schemaName"] == config["tableName"]
        self._may("validate_table")

    def get_table_config(self, table: str) -> JsonObject | None:
        return self.tables.get(table)

    def get_realtime_config(self, table: str) -> JsonObject | None:
        return None

    def create_table(self, config: JsonMapping) -> None:
        self._may("create_table")
        assert config["tableName"] not in self.tables
        self.writes.append("create")
        self._store(config)

    def update_table(self, config: JsonMapping) -> None:
        self._may("update_table")
        assert config["tableName"] in self.tables
        self.writes.append("update")
        self._store(config)

    def _store(self, config: JsonMapping) -> None:
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


# --- what Pinot refuses ----------------------------------------------------------------------------


def test_pinot_is_asked_before_anything_is_created(folder):
    controller = Controller()
    controller.refuses["validate_table"] = PinotError(
        "POST was refused with status 400", why="no such tenant"
    )
    spec = folder.load()
    with pytest.raises(PinotError, match="would not accept flights_OFFLINE; nothing was changed") as caught:
        apply_plan(plan_apply(spec, controller), controller)
    assert "no such tenant" in str(caught.value)
    assert str(spec.path) in str(caught.value)
    assert (controller.writes, controller.schemas) == ([], {})


def test_a_schema_that_this_made_goes_with_the_table_that_pinot_refuses(folder):
    controller = Controller()
    controller.refuses["create_table"] = PinotError("POST /tables was refused", why="it", hint="look at it")
    with pytest.raises(PinotError) as caught:
        apply_plan(plan_apply(folder.load(), controller), controller)
    assert (
        caught.value.hint == "look at it; the schema flights, which this command had made, was deleted again"
    )
    assert controller.writes == ["schema", "delete schema"]
    assert controller.schemas == {}


def test_a_schema_that_cannot_be_taken_back_is_told(folder):
    controller = Controller()
    controller.refuses["create_table"] = PinotError("POST /tables was refused")
    controller.refuses["delete_schema"] = PinotUnreachable("no connection")
    with pytest.raises(
        PinotError, match=r"refused\n  → the schema flights, which this command made, still exists"
    ):
        apply_plan(plan_apply(folder.load(), controller), controller)


def test_a_schema_that_was_there_or_that_somebody_else_made_stays(folder):
    spec, controller = folder.load(), Controller()
    controller.refuses["create_table"] = PinotError("POST /tables was refused")
    plan = plan_apply(spec, controller)
    controller.put_schema(spec.schema_json)  # by somebody, between the look and the deed
    with pytest.raises(PinotError) as caught:
        apply_plan(plan, controller)
    assert caught.value.hint is None
    with pytest.raises(PinotError):
        apply_plan(plan_apply(spec, controller), controller)
    assert "delete schema" not in controller.writes


def test_the_schema_of_a_table_that_may_be_there_stays(folder):
    controller = Controller()
    controller.refuses["create_table"] = SwitchStateUnknown("no answer to POST /tables")
    with pytest.raises(SwitchStateUnknown):
        apply_plan(plan_apply(folder.load(), controller), controller)
    assert list(controller.schemas) == ["flights"]


def test_columns_that_stay_in_pinot_for_good_are_told_before(folder):
    controller = Controller()
    apply_plan(plan_apply(folder.load(), controller), controller)
    assert plan_apply(folder.load(), controller).lasting == ()

    def change(whole):
        whole["schema"]["dimensionFieldSpecs"] += [
            {"name": n, "dataType": "STRING"} for n in ("gate", "seat")
        ]
        whole["table"]["segmentsConfig"].update(
            replication="3",
            retentionTimeUnit="DAYS",
            retentionTimeValue="7",
            replacedSegmentsRetentionPeriod="1d",
        )

    columns, retention, way_back = plan_apply(folder.load(change=change), controller).lasting
    assert columns.endswith("the columns gate, seat will stay")
    assert "older than the new retention" in retention
    assert "cannot be reverted" in way_back
