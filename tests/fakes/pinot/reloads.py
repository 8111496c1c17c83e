"""What a server of the in-memory Pinot makes of a segment when it loads it, and which schemas it takes."""

from __future__ import annotations

from fakes.pinot.releases import Dialect

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.pinot.held_segment import HeldSegment, type_text

_LISTS = {
    "inverted": "invertedIndexColumns",
    "range": "rangeIndexColumns",
    "bloom": "bloomFilterColumns",
    "json": "jsonIndexColumns",
}
_REPORTED = frozenset((*_LISTS, "dictionary", "forward", "null-value-vector-reader"))


def loaded_with(
    schema: JsonMapping, config: JsonMapping, rows: int, before: HeldSegment | None = None
) -> HeldSegment:
    """What a server holds after it has loaded a segment with this schema and table config.

    :param before: what it held of the segment, whose values stay of their types.
    """
    indexing = config.get("tableIndexConfig") or {}
    columns = [name for name, _ in _fields(schema)]
    return HeldSegment(
        {
            column: frozenset(
                {"dictionary", "forward"}
                | {kind for kind, key in _LISTS.items() if column in (indexing.get(key) or ())}
            )
            for column in columns
        },
        _REPORTED,
        frozenset(),
        len(indexing.get("starTreeIndexConfigs") or ()),
        {
            name: type_text(field["dataType"], field.get("singleValueField", True))
            for name, field in _fields(schema)
        }
        | dict(before.types if before is not None else {}),
        rows,
    )


def is_compatible(new: JsonMapping, old: JsonMapping, dialect: Dialect) -> bool:
    """Whether a schema may take the place of another one (`Schema.isBackwardCompatibleWith`)."""
    fields = {name: {key: field.get(key) for key in dialect.fixed_in_schemas} for name, field in _fields(new)}
    return all(
        fields.get(name) == {key: field.get(key) for key in dialect.fixed_in_schemas}
        for name, field in _fields(old)
    )


def _fields(schema: JsonMapping) -> list[tuple[str, JsonMapping]]:
    lists = [fields for key, fields in schema.items() if key.endswith("FieldSpecs")]
    return [(field["name"], field) for fields in lists for field in fields or ()]
