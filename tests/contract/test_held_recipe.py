"""What a Pinot stores of a schema and a table config has the recipe of what it was given.

It fills in defaults and moves settings. If a recipe took that for a change, `tables apply` would ask for a
rebuild that nobody needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oracle.spec_change_kinds import KINDS, Kind, known_to_0_11

from pinot_assets.errors import PinotError
from pinot_assets.table_spec.changes.recipe import recipe_from
from pinot_assets.table_spec.changes.spec_changes import spec_changes
from pinot_assets.table_spec.tables.difference import diff_schema

if TYPE_CHECKING:
    from contract.conftest import ContractLab


def one_of_each() -> list[Kind]:
    """One kind for each setting that may change."""
    by_setting = {
        change: kind for kind in reversed(KINDS) for change in kind.changes if kind.verdict != "refused"
    }
    return [*{kind.name: kind for kind in by_setting.values()}.values()]


def test_what_pinot_stores_has_the_recipe_of_what_it_was_given(lab: ContractLab) -> None:
    differ: dict[str, object] = {}
    for number, kind in enumerate(one_of_each()):
        if lab.dialect.version == "0.11.0" and not known_to_0_11(kind.after):
            continue
        table, side = f"{lab.table}_{number}", kind.after
        lab.pinot.put_schema({**side.schema, "schemaName": table})
        try:
            lab.pinot.create_table({**side.config, "tableName": f"{table}_OFFLINE"})
            schema, config = lab.pinot.get_schema(table), lab.pinot.get_table_config(table)
            assert schema is not None
            assert config is not None
            held = recipe_from(schema, config, side.ingestion)
            named = {**side.schema, "schemaName": table}
            forgets = diff_schema(named, schema)  # 0.11.0 does not store settings that it does not know
            if held != side.recipe and not forgets:
                differ[kind.name] = spec_changes(held, side.recipe)
            lab.pinot.delete_table(table)
            if kind.refused_by(lab.dialect.version):
                differ[kind.name] = "taken"
        except PinotError as error:
            if not kind.refused_by(lab.dialect.version) or kind.refusal not in error.reason:
                differ[kind.name] = error
        lab.pinot.delete_schema(table)
    assert differ == {}
