"""What a reader is to deliver: the table's columns, as Arrow types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.types as pt

from pinot_assets.segment import DataType, SegmentSpec


@dataclass(frozen=True, slots=True)
class TargetSchema:
    """The columns of a table.

    :ivar schema: names and types, `SegmentSpec.arrow_schema()`; multi-value columns are lists.
    :ivar json: text columns that hold JSON: they take any value of a file that knows more than text.
    :ivar decimals: text columns that hold numbers of any length (BIG_DECIMAL).
    """

    schema: pa.Schema
    json: frozenset[str] = frozenset()
    decimals: frozenset[str] = frozenset()

    @classmethod
    def of(cls, spec: SegmentSpec) -> Self:
        """The columns that the segment writer takes."""
        kinds = {column.name: column.data_type.value for column in spec.columns}
        return cls(
            spec.arrow_schema(),
            frozenset(name for name, kind in kinds.items() if kind == DataType.JSON),
            frozenset(name for name, kind in kinds.items() if kind == "BIG_DECIMAL"),
        )

    def present(self, names: list[str]) -> list[str]:
        """Those of the table's columns that a file has."""
        there = frozenset(names)
        return [name for name in self.schema.names if name in there]

    def missing(self, names: list[str]) -> tuple[str, ...]:
        """Those that it lacks."""
        there = frozenset(names)
        return tuple(name for name in self.schema.names if name not in there)

    def type_name(self, field: pa.Field) -> str:
        """A column's type in Pinot's words."""
        if field.name in self.json:
            return "JSON"
        if pt.is_list(field.type):
            return f"multi-value {self._name(field, field.type.value_type)}"
        return self._name(field, field.type)

    def _name(self, field: pa.Field, kind: pa.DataType) -> str:
        if field.name in self.decimals:
            return "BIG_DECIMAL"
        return _NAMES.get(kind) or ("TIMESTAMP" if pt.is_timestamp(kind) else str(kind))


_NAMES = {
    pa.int32(): "INT",
    pa.int64(): "LONG",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.string(): "STRING",
    pa.binary(): "BYTES",
}
