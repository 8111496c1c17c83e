"""What Spark SQL makes of a file's rows before they are written, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.errors import UnsupportedFeature
from pinot_assets.segment.config.transforms import Translation, read_transforms


@dataclass(frozen=True, slots=True)
class Query:
    """Spark SQL expressions, in the order in which they are applied. With none, rows stay as they are.

    :ivar where: rows that stay, judged by the file's columns.
    :ivar transforms: columns of the table made of the file's columns, all of them at once.
    :ivar derived: columns filled where they are null, one after the other: Pinot's `transformConfigs`.
    :ivar dropped: rows that go, judged by what the columns are then: Pinot's `filterConfig`.
    """

    where: str = ""
    transforms: Mapping[str, str] = field(default_factory=dict)
    derived: tuple[tuple[str, Translation], ...] = ()
    dropped: Translation | None = None

    @classmethod
    def of(cls, where: str, transforms: Mapping[str, str], table_config: JsonMapping) -> Self:
        """The query of a table spec.

        :param table_config: one that the segment writer takes.
        :raises UnsupportedFeature: its `transformConfigs` or `filterConfig` cannot be translated.
        """
        pinot = read_transforms(table_config)
        if pinot.problems:
            raise UnsupportedFeature(
                "the table's own functions cannot be translated to Spark SQL",
                why="; ".join(pinot.problems),
                hint="write transforms and filter in fileIngestion",
            )
        return cls(where, dict(transforms), pinot.derived, pinot.dropped)

    @property
    def drops_rows(self) -> bool:
        """Whether rows go that are not bad."""
        return bool(self.where) or self.dropped is not None

    @property
    def expressions(self) -> dict[str, str]:
        """All of them, by what people call them."""
        named = {"filter": self.where, "filterConfig": self.dropped.sql if self.dropped else ""}
        named |= {f"transforms.{column}": sql for column, sql in self.transforms.items()}
        named |= {f"transformConfigs of {column}": made.sql for column, made in self.derived}
        return {name: sql for name, sql in named.items() if sql}
