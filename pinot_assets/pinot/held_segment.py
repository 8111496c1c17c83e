"""What a server holds of a segment: its columns and their indexes, as the server reports them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.untrusted import listed, typed


@dataclass(frozen=True, slots=True)
class HeldSegment:
    """One segment on one server.

    :ivar indexes: by column, the kinds of its indexes: `dictionary`, `forward`, `inverted`, `bloom`, …
    :ivar reported: all kinds that a server of this release reports; 0.11 does not report text indexes.
    :ivar sorted_columns: the columns whose values are in order in this segment.
    :ivar star_trees: number of star-trees.
    :ivar types: by column, the data type with which the segment was built; `INT[]` if a row may have several.
    :ivar rows: its number of rows; servers build no index into an empty segment.
    """

    indexes: Mapping[str, frozenset[str]]
    reported: frozenset[str]
    sorted_columns: frozenset[str]
    star_trees: int
    types: Mapping[str, str]
    rows: int

    @classmethod
    def from_json(cls, answer: JsonMapping) -> Self:
        """Read a server's answer to `/tables/{table}/segments/{segment}/metadata?columns=*`.

        Source: `SegmentMetadataFetcher` of pinot-server, 0.11.0 and 1.5.1.

        :raises ValueError: it has another form.
        """
        by_column = {
            column: {_kind(name): flag == "YES" for name, flag in typed(flags, dict).items()}
            for column, flags in typed(answer.get("indexes"), dict).items()
        }
        return cls(
            {
                column: frozenset(kind for kind, there in kinds.items() if there)
                for column, kinds in by_column.items()
            },
            frozenset(kind for kinds in by_column.values() for kind in kinds),
            frozenset(
                typed(column.get("columnName"), str)
                for column in listed(answer.get("columns"), dict)
                if column.get("sorted")
            ),
            len(listed(answer.get("star-tree-index") or [], dict)),
            {
                typed(column.get("columnName"), str): type_text(
                    typed(column.get("dataType"), str), bool(column.get("singleValue", True))
                )
                for column in listed(answer.get("columns"), dict)
            },
            typed(answer.get("totalDocs"), int),
        )


def type_text(data_type: str, single_value: bool) -> str:
    """Return a data type as `HeldSegment.types` has it: `INT`, `INT[]`."""
    return data_type if single_value else f"{data_type}[]"


def _kind(name: str) -> str:
    """`inverted-index`, `bloom-filter` → `inverted`, `bloom`."""
    return name.removesuffix("-index").removesuffix("-filter")
