"""What a reader is to deliver: the table's columns, as Arrow types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from pinot_assets.segment import DataType, SegmentSpec


@dataclass(frozen=True, slots=True)
class Wanted:
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
        return [name for name in self.schema.names if name in set(names)]

    def missing(self, names: list[str]) -> tuple[str, ...]:
        """Those that it lacks."""
        return tuple(name for name in self.schema.names if name not in set(names))
