"""Secrets on their way into a spec become references to the environment; the values go nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pinot_assets.importing.told import Fate, Told
from pinot_assets.spec.environment import is_reference, is_secret_key, is_secret_value, variable_for


def without_secrets(value: Any, told: list[Told], path: str = "", key: str = "") -> Any:
    """The same JSON value with references in place of literal secrets.

    :param told: gets a line for each.
    :param path: where the value stands, for people.
    :param key: the key that it stands at.
    """
    if isinstance(value, dict):
        return {
            name: without_secrets(inner, told, f"{path}.{name}" if path else name, name)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [without_secrets(inner, told, f"{path}[{n}]", key) for n, inner in enumerate(value)]
    if not _is_secret(key, value):
        return value
    name = variable_for(key) if key else "SECRET"
    told.append(Told(Fate.CHANGED, path, f"a secret is never written; put it into the environment as {name}"))
    return f"${{{name}}}"


def _is_secret(key: str, value: object) -> bool:
    if not isinstance(value, str) or not value or is_reference(value):
        return False
    return is_secret_key(key) or is_secret_value(value)


def variables(told: list[Told]) -> Iterator[str]:
    """The variables that must be set, each once."""
    return iter(dict.fromkeys(line.why.rpartition(" ")[2] for line in told if "a secret is" in line.why))
