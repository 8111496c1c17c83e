"""`${NAME}` references in settings: a spec names the variable, the machine that opens the store has it.

Resolved where the store is opened, so a secret is in no plan, no run config and no pickle.
"""

from __future__ import annotations

import os
import re

from pinot_assets.core.policy import Policy
from pinot_assets.errors import SettingError

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def is_reference(text: str) -> bool:
    """Whether the text is one `${NAME}` and nothing else; a default would be a literal again."""
    match = _REFERENCE.fullmatch(text)
    return match is not None and match.group(2) is None


def referenced(text: str) -> set[str]:
    """Names that the text refers to, with or without a default."""
    return {name for name, _ in _REFERENCE.findall(text)}


def resolve_env(value: str, policy: Policy) -> str:
    """Replace `${NAME}` and `${NAME:-default}` by what the environment holds.

    As in a shell, the default also stands in for an empty variable.

    :param policy: which variables may be read.
    :raises SettingError: a variable is not set or may not be read, or a `${` is not one of the two forms.
        Names the variable, never a value.
    """
    # Also of a default: it may go to a reader that has variables of its own, such as Hadoop's `${env.NAME}`.
    if "${" in _REFERENCE.sub(lambda reference: reference[2] or "", value):
        raise SettingError(
            "A setting holds a malformed environment reference",
            hint="write ${NAME} or ${NAME:-default}; a name is letters, digits and underscores",
        )
    return _REFERENCE.sub(lambda reference: _look_up(reference, policy), value)


def _look_up(reference: re.Match[str], policy: Policy) -> str:
    name, default = reference.groups()
    if refusal := policy.refuses_variable(name):
        raise refusal.error("A setting")
    found = os.environ.get(name)
    if default is not None:
        return found or default
    if found is None:
        raise SettingError(
            f"The environment variable {name} is not set",
            why="a setting refers to it",
            hint=f"export {name} where Dagster and the Spark executors run",
        )
    return found
