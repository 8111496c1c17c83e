"""The settings of a controller, server or broker, as its `/appconfigs` shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.errors import PinotError


@dataclass(frozen=True, slots=True)
class AppConfig:
    """Settings of one process.

    The case of a name does not matter, because some releases answer in lower case. The `repr` leaves the
    values out, so that logs never show them: credentials of the deep store may be among them.

    :ivar values: name in lower case → value.
    """

    values: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def from_json(cls, reply: JsonMapping | None) -> Self:
        """Read the answer of `/appconfigs`, without its environment variables and JVM arguments."""
        return cls.of((reply or {}).get("pinotConfig") or {})

    @classmethod
    def of(cls, values: JsonMapping) -> Self:
        """Return these settings, their names in lower case, without those that are None."""
        return cls({str(name).lower(): str(value) for name, value in values.items() if value is not None})

    def text(self, name: str) -> str | None:
        """Return the value of a setting; None if it is missing or empty."""
        return self.values.get(name.lower()) or None

    def flag(self, name: str, default: bool) -> bool:
        """Whether a setting is true; the default if it is missing or empty."""
        value = self.text(name)
        return default if value is None else value.lower() == "true"

    def number(self, name: str, default: int) -> int:
        """Return a setting as a whole number; the default if it is missing or no number for Pinot either."""
        try:
            return int(self.text(name) or default)
        except ValueError:
            return default


def config_or_why(ask: Callable[[], AppConfig]) -> AppConfig | str:
    """Return a process's settings, or the reason why it does not send them."""
    try:
        return ask()
    except PinotError as error:
        return _why(error)


def configs_or_why(answers: Mapping[str, AppConfig | PinotError]) -> dict[str, AppConfig | str]:
    """Return the settings of several processes by name, or the reason of one that does not send them."""
    return {name: _why(one) if isinstance(one, PinotError) else one for name, one in answers.items()}


def _why(error: PinotError) -> str:
    return error.why or error.what
