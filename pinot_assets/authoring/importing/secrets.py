"""Secrets on their way into a spec become references to the environment; the values go nowhere."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from pinot_assets.authoring.importing.notes import Disposition, ImportNote
from pinot_assets.source.settings.references import is_reference
from pinot_assets.table_spec.yaml.values import is_secret_key, is_secret_value, variable_for


class Secrets:
    """Those of one spec: different values never become one variable, equal ones of one kind do.

    :param told: gets a line for each.
    :param taken: names that the config refers to already, whose values nobody knows here.
    :ivar variables: what must be set, in the order in which it was met.
    """

    def __init__(self, told: list[ImportNote], taken: Set[str] = frozenset()) -> None:
        self._told = told
        self._taken = taken
        self._values: dict[str, str] = {}

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables that must be set."""
        return tuple(self._values)

    def taken_out(self, value: Any, path: str = "", key: str = "") -> Any:
        """The same JSON value with references in place of literal secrets, each of them told.

        :param path: where the value stands, for people.
        :param key: the key that it stands at.
        """
        if isinstance(value, dict):
            return {
                name: self.taken_out(inner, f"{path}.{name}" if path else name, name)
                for name, inner in value.items()
            }
        if isinstance(value, list):
            return [self.taken_out(inner, f"{path}[{n}]", key) for n, inner in enumerate(value)]
        if not _is_secret(key, value):
            return value
        name = self._variable(variable_for(key) if key else "SECRET", value)
        why = f"a secret is never written; put it into the environment as {name}"
        self._told.append(ImportNote(Disposition.CHANGED, path, why))
        return f"${{{name}}}"

    def _variable(self, wanted: str, value: str) -> str:
        name, number = wanted, 1
        while name in self._taken or self._values.setdefault(name, value) != value:
            number += 1
            name = f"{wanted}_{number}"
        return name


def _is_secret(key: str, value: object) -> bool:
    if not isinstance(value, str) or not value or is_reference(value):
        return False
    return is_secret_key(key) or is_secret_value(value)
