"""Where Pinot differs from a table spec. Every run asks this; nothing that changes Pinot is loaded."""

from __future__ import annotations

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.errors import SpecDrift
from pinot_assets.pinot.api import PinotClient
from pinot_assets.table_spec.tables.difference import SpecDifference, diff_schema, diff_table
from pinot_assets.table_spec.tables.specs import AnyTableSpec, RealtimeTableSpec, TableSpec


def drift(spec: AnyTableSpec, store: PinotClient) -> list[SpecDifference]:
    """Return where Pinot differs from the spec; a missing schema or table is one difference.

    :raises PinotError: Pinot could not be asked.
    """
    schema, table = store.get_schema(spec.name), held_config(spec, store)
    no_schema = SpecDifference("schema", spec.name, None)
    no_table = SpecDifference("table", spec.name_with_type, None)
    of_schema = [no_schema] if schema is None else diff_schema(spec.schema_json, schema)
    return of_schema + ([no_table] if table is None else diff_table(spec.table_json, table))


def held_config(spec: AnyTableSpec, store: PinotClient) -> JsonObject | None:
    """Return the table config that Pinot holds, None if Pinot has no such table.

    :raises PinotError: Pinot could not be asked.
    """
    is_realtime = isinstance(spec, RealtimeTableSpec)
    return store.get_realtime_config(spec.name) if is_realtime else store.get_table_config(spec.name)


def held_table_config(spec: TableSpec, store: PinotClient) -> JsonMapping:
    """Return the table config that Pinot holds, which may have more keys, or the spec's if Pinot has none."""
    return store.get_table_config(spec.name) or spec.table_json


def refuse_drift(spec: TableSpec, store: PinotClient) -> None:
    """Check that Pinot is what the spec says. Every run does this first.

    :raises SpecDrift: Pinot's schema or table config differs from the spec; the text lists where.
    :raises PinotError: Pinot could not be asked.
    """
    if differences := drift(spec, store):
        raise SpecDrift(
            f"Pinot differs from {spec.path}:{difference_lines(differences)}",
            hint=f"pinot-assets tables apply {spec.name}, or change the spec",
        )


def difference_lines(differences: list[SpecDifference]) -> str:
    """Return the differences as lines of a message, each after a line break."""
    return "".join(f"\n  {difference}" for difference in differences)
