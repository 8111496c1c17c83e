"""How many values of a file lost something when it was built, by column; stored beside its receipt."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from pinot_assets.core.stored_format import FIRST, Marks, Stored, marks
from pinot_assets.core.untrusted import read_json
from pinot_assets.segment.values.normalize import Cut
from pinot_assets.segment.write.segment import ColumnStats


@dataclass(frozen=True, slots=True)
class CutValues(Stored):
    """Of one file.

    :ivar columns: those that lost something, by name.
    """

    columns: Mapping[str, Cut]

    @classmethod
    def of(cls, segments: Iterable[Iterable[ColumnStats]], number: int = FIRST) -> Self:
        """Of the columns of all segments of the file.

        :param number: the format that it is written in.
        """
        found: dict[str, Cut] = {}
        for columns in segments:
            for column in columns:
                if any(column.cut):
                    found[column.name] = found.get(column.name, Cut()) + column.cut
        return cls(found, format=number)

    def to_bytes(self) -> bytes:
        """JSON text, keys sorted."""
        columns = {
            name: {"nul": cut.at_nul, "maxLength": cut.at_length} for name, cut in self.columns.items()
        }
        value = {"columns": columns} | marks(self.format)
        return json.dumps(value, sort_keys=True, indent=1).encode()

    @classmethod
    def from_bytes(cls, data: bytes, what: str = "a count of cut values") -> Self:
        """Inverse of `to_bytes`; keys that are not known are left out: it is never written back.

        :param what: its address, for errors.
        :raises NeedsNewerRelease: it is of a format that this release does not know.
        :raises ValueError: the text is none.
        """
        try:
            value = read_json(data)
            number = Marks.of(value).require_known(what)
            columns = value["columns"].items()
            cuts = {name: Cut(int(c["nul"]), int(c["maxLength"])) for name, c in columns}
            return cls(cuts, format=number)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"no count of cut values: {error}") from error
