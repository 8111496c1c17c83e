"""How many values of a column lost something, because Pinot cannot hold all of it."""

from __future__ import annotations

from typing import Final, NamedTuple


class Cut(NamedTuple):
    """Values of one column, each row's, or each element of a multi-value column.

    :ivar at_nul: texts that hold a NUL: it goes, and all behind it.
    :ivar at_length: those that are longer than `maxLength`: they were cut, or became the default value.
    """

    at_nul: int = 0
    at_length: int = 0

    def __add__(self, other: tuple[int, ...]) -> Cut:  # type: ignore[override]
        """Of both together."""
        return Cut(self[0] + other[0], self[1] + other[1])


NOTHING: Final = Cut()
