"""A property that is read once and remembered, its failure too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, cast

from pinot_assets.core.json_object import JsonObject

T = TypeVar("T")


class Reader(Protocol):
    """What has readings.

    :ivar readings: by name, what was read, or how it failed.
    """

    readings: JsonObject


class CachedReading(Generic[T]):
    """Read when first asked for; what that raised is raised again, without another try."""

    def __init__(self, read: Callable[[Any], T]) -> None:
        self._read = read
        self.__doc__ = read.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, look: Reader, owner: type | None = None) -> T:
        if self._name not in look.readings:
            try:
                look.readings[self._name] = self._read(look)
            except Exception as error:
                look.readings[self._name] = _Failed(error)
        value = look.readings[self._name]
        if isinstance(value, _Failed):
            raise value.error
        return cast(T, value)


@dataclass(frozen=True, slots=True)
class _Failed:
    error: Exception
