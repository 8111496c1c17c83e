"""What the `tables` commands tell other programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from pinot_assets.cli.program import error_values
from pinot_assets.core.json_object import JsonObject
from pinot_assets.table_spec.tables.apply import ApplyOutcome, ApplyPlan, Change
from pinot_assets.table_spec.tables.specs import AnyTableSpec, LeftOut, RealtimeTableSpec
from pinot_assets.table_spec.yaml.document import Note, Problem


def findings_values(
    specs: Iterable[AnyTableSpec], problems: Iterable[Problem], notes: Iterable[Note]
) -> JsonObject:
    """What `validate` found; the file's name, line and key with each."""
    return {
        "problems": [asdict(problem) for problem in problems],
        "notes": [asdict(note) for note in notes],
        "tables": [
            {"table": spec.name_with_type, "file": spec.path, "kind": kind_of(spec)} for spec in specs
        ],
    }


def plan_values(plan: ApplyPlan) -> JsonObject:
    """What `apply` would change."""
    return {
        "table": plan.spec.name_with_type,
        "schema": _change_values(plan.schema),
        "config": _change_values(plan.table),
        "cannotBeTakenBack": list(plan.lasting),
    }


def fates_values(fates: Iterable[ApplyOutcome], left_out: Iterable[LeftOut]) -> list[JsonObject]:
    """What became of each table that `apply` was asked for; of one that failed also the error."""
    return [*map(_fate_values, fates), *map(_left_out_values, left_out)]


def _fate_values(fate: ApplyOutcome) -> JsonObject:
    planned = {"table": fate.table} if fate.plan is None else plan_values(fate.plan)
    return {
        **planned,
        "applied": fate.applied,
        **({} if fate.error is None else error_values(fate.error)),
    }


def _left_out_values(one: LeftOut) -> JsonObject:
    return {"table": one.name, "file": one.file, "applied": False, **error_values(one.error)}


def kind_of(spec: AnyTableSpec) -> str:
    """How a table comes to its rows, in a few words."""
    if isinstance(spec, RealtimeTableSpec):
        return "REALTIME"
    return f"{spec.mode}, {spec.ingestion.input_format}"


def _change_values(change: Change) -> JsonObject:
    return {
        "action": change.action,
        "differences": [{"path": d.path, "inPinot": d.found, "inSpec": d.wanted} for d in change.differences],
    }
