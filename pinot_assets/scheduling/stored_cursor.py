"""What a sensor remembers between its ticks, as the text that Dagster stores for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar, Self

from pinot_assets.core.json_object import JsonValue
from pinot_assets.core.stored_format import Stored, plain, structured
from pinot_assets.core.untrusted import read_json


@dataclass(frozen=True, slots=True)
class StoredCursor(Stored):
    """The cursor of a sensor; it has a format, as other stored values do.

    :cvar what: the cursor, for errors.
    """

    what: ClassVar[str]

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the cursor of that text; a new one for an empty or a foreign text.

        :raises NeedsNewerRelease: it is of a format that this release does not know.
        """
        try:
            return structured(cls, cls._values(read_json(text)), cls.what)
        except ValueError:
            return cls()

    @classmethod
    def _values(cls, stored: JsonValue) -> JsonValue:
        """Return the values of the cursor's fields from what is stored."""
        return stored

    @property
    def text(self) -> str:
        """The cursor as JSON; inverse of `read`."""
        return json.dumps(plain(self))
