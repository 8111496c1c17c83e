"""What a server of the in-memory Pinot makes of a segment when it loads it: columns and simple indexes."""

from __future__ import annotations

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.pinot.held_segment import HeldSegment

_LISTS = {
    "inverted": "invertedIndexColumns",
    "range": "rangeIndexColumns",
    "bloom": "bloomFilterColumns",
    "json": "jsonIndexColumns",
}
_REPORTED = frozenset((*_LISTS, "dictionary", "forward", "null-value-vector-reader"))


def loaded_with(schema: JsonMapping, config: JsonMapping, rows: int) -> HeldSegment:
    """What a server holds after it has loaded a segment with this schema and table config."""
    indexing = config.get("tableIndexConfig") or {}
    columns = [field["name"] for fields in schema.values() if isinstance(fields, list) for field in fields]
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
        rows,
    )
