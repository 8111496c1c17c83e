"""`${NAME}` references in settings: a spec names the variable, the machine that opens the store has it.

Resolved where the store is opened, so a secret is in no plan, no run config and no pickle.
"""

from __future__ import annotations

import os
import re

from pinot_assets.errors import SourceError

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def resolve_env(value: str) -> str:
    """Replace `${NAME}` and `${NAME:-default}` by what the environment holds.

    As in a shell, the default also stands in for an empty variable.

    :raises SourceError: a variable is not set, or a `${` is not one of the two forms. Names the
        variable, never a value.
    """
    if "${" in _REFERENCE.sub("", value):
        raise SourceError(
            "A setting holds a malformed environment reference",
            hint="write ${NAME} or ${NAME:-default}; a name is letters, digits and underscores",
        )
    return _REFERENCE.sub(_look_up, value)


def _look_up(reference: re.Match[str]) -> str:
    name, default = reference.groups()
    found = os.environ.get(name)
    if default is not None:
        return found or default
    if found is None:
        raise SourceError(
            f"The environment variable {name} is not set",
            why="a setting refers to it",
            hint=f"export {name} where Dagster and the Spark executors run",
        )
    return found
