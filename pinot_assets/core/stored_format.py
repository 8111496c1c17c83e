"""What is stored has a format: its numbers, the releases that they need, and how values are written and read.

An object without a number is of format 1, which release 0.1.0 wrote: its bytes stay as they were. From format
2 on every object says its `format`, and which release it `needs`. A reader refuses a format that it does not
know, with that release; within a format that it knows it keeps the fields that it does not know, so that a
later release may add some without a new number. docs/compatibility.md is the promise, docs/upgrading.md what
people do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.untrusted import fitting
from pinot_assets.errors import NeedsNewerRelease

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")

FIRST: Final = 1
RELEASES: Final[Mapping[int, str]] = {FIRST: "0.1.0", 2: "0.2.0"}
"""The oldest release that knows each format.

2 has the fields of 1, and is open: its readers keep what they do not know, where those of 1 drop it or call
the whole object damaged.
"""
NEWEST: Final = max(RELEASES)

FORMAT: Final = "format"
NEEDS: Final = "needs"

_NOTHING: Final[JsonMapping] = {}
_SINCE: Final = "since"


def since(number: int) -> Mapping[str, int]:
    """Metadata of a dataclass field that objects of an older format do not have: it is not written there."""
    return {_SINCE: number}


def fields_since(kind: type[Stored]) -> frozenset[str]:
    """Fields that objects of the first format do not have."""
    return frozenset(f.name for f in fields(kind) if f.metadata.get(_SINCE, FIRST) > FIRST)


def marks(number: int) -> JsonObject:
    """What an object of that format says of itself."""
    return {} if number == FIRST else {FORMAT: number, NEEDS: RELEASES[number]}


@dataclass(frozen=True, slots=True)
class Marks:
    """What an object says of its own format.

    :ivar needs: the oldest release that knows it, "" where it does not say so.
    """

    format: int
    needs: str

    @classmethod
    def of(cls, values: JsonMapping) -> Marks:
        """Those among an object's values, as JSON, a ZNode's texts or Parquet's metadata hold them.

        :raises ValueError: its format is no number.
        """
        number, needs = values.get(FORMAT, FIRST), values.get(NEEDS, "")
        text = str(number)
        if isinstance(number, bool) or not (text.isascii() and text.isdigit() and len(text) < 10):
            raise ValueError("its format is not a whole number")
        if int(text) < FIRST:
            raise ValueError(f"there is no format {text}")
        return cls(int(text), str(needs))

    @property
    def is_known(self) -> bool:
        """Whether this release knows the format."""
        return self.format <= NEWEST

    def require_known(self, what: str) -> int:
        """The format.

        :param what: the object, with its address.
        :raises NeedsNewerRelease: this release does not know it.
        """
        if self.is_known:
            return self.format
        release = self.needs or "a newer release"
        raise NeedsNewerRelease(
            f"{what} is of format {self.format}, which this release of pinot-assets does not know",
            why=f"it was written for pinot-assets {release}; this is {version('pinot-assets')}, "
            f"which knows formats up to {NEWEST}",
            hint=f"upgrade pinot-assets here to {release}, or let only the release that wrote it work on "
            "this table; nothing was changed (docs/upgrading.md)",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A stored value that keeps what it does not know.

    :ivar kept: fields of a later release, as they were read; written back with the others.
    """

    kept: JsonMapping = field(default_factory=lambda: _NOTHING, compare=False, repr=False)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """For `structured`: sort known from unknown, at each level."""
        from pydantic_core import core_schema

        names = frozenset(f.name for f in fields(source)) - {"kept"}
        skipped = frozenset({NEEDS}) if issubclass(source, Stored) else frozenset[str]()

        def sort(values: Any) -> Any:
            if not isinstance(values, Mapping):
                return values
            known = {key: value for key, value in values.items() if key in names}
            unknown = {key: value for key, value in values.items() if key not in names and key not in skipped}
            return known | {"kept": unknown or _NOTHING}

        return core_schema.no_info_before_validator_function(sort, handler(source))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored(Open):
    """An object of its own.

    :ivar format: what it is written in; what is made of it is written in the same.
    """

    format: int = FIRST


def structured(kind: type[T], values: Any, what: str) -> T:
    """A dataclass of plain values, each of the type that its class says.

    :param what: the object, for errors.
    :raises NeedsNewerRelease: it is of a format that this release does not know.
    :raises ValueError: the values do not make one; names the field.
    """
    from pydantic import ValidationError  # late: workers of a build read hardly anything

    if issubclass(kind, Stored) and isinstance(values, Mapping):
        values = {**values, FORMAT: Marks.of(values).require_known(what)}
    cached: type = kind
    try:
        value: T = _adapter(cached).validate_python(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"not {what}: {f'{place}: ' if place else ''}{first['msg']}") from None
    return fitting(value)


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def plain(value: Any, number: int | None = None) -> Any:
    """Inverse of `structured`: what JSON takes, as `dataclasses.asdict` has it, and what was kept.

    :param number: the format of the object that it is a part of. Without one its own, or the first.
    """
    if isinstance(value, Open):
        said: JsonObject = {}
        if number is None:
            number, said = (value.format, marks(value.format)) if isinstance(value, Stored) else (FIRST, {})
        found = {
            f.name: plain(getattr(value, f.name), number)
            for f in fields(value)
            if f.name not in ("kept", FORMAT) and f.metadata.get(_SINCE, FIRST) <= number
        }
        return found | said | dict(value.kept)
    if is_dataclass(value):
        raise TypeError(f"{type(value).__name__} is not stored")
    if isinstance(value, Mapping):
        return {key: plain(item, number) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(item, number) for item in value]
    return value
