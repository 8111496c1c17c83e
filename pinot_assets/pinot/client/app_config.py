"""What a controller, server or broker is set to, as its `/appconfigs` says it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.errors import PinotError


@dataclass(frozen=True, slots=True)
class AppConfig:
    """Settings of one process.

    Names are looked up whatever their case: some releases answer in lower case. The values do not show in a
    log: credentials of the deep store may be among them.

    :ivar values: name in lower case → value.
    """

    values: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def from_json(cls, reply: JsonMapping | None) -> Self:
        """Read the answer of `/appconfigs`; its environment variables and JVM arguments are left alone."""
        return cls.of((reply or {}).get("pinotConfig") or {})

    @classmethod
    def of(cls, values: JsonMapping) -> Self:
        """Settings by name."""
        return cls({str(name).lower(): str(value) for name, value in values.items() if value is not None})

    def text(self, name: str) -> str | None:
        """What it is set to; None for nothing."""
        return self.values.get(name.lower()) or None

    def flag(self, name: str, default: bool) -> bool:
        """A yes or no."""
        value = self.text(name)
        return default if value is None else value.lower() == "true"

    def number(self, name: str, default: int) -> int:
        """A whole number; the default where Pinot could not read it either."""
        try:
            return int(self.text(name) or default)
        except ValueError:
            return default


def config_or_why(ask: Callable[[], AppConfig]) -> AppConfig | str:
    """What a process is set to, or why it does not say."""
    try:
        return ask()
    except PinotError as error:
        return _why(error)


def configs_or_why(answers: Mapping[str, AppConfig | PinotError]) -> dict[str, AppConfig | str]:
    """The same of several processes, by name."""
    return {name: _why(one) if isinstance(one, PinotError) else one for name, one in answers.items()}


def _why(error: PinotError) -> str:
    return error.why or error.what
