"""Names for columns whose own ones a table cannot have, or could have in quotes alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from pinot_assets.table_spec.blocks.pinot_json import has_blank

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def usable_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names of letters, digits and `_`, each once; one that SQL reserves (`order`) still needs quotes."""
    found: list[str] = []
    for number, name in enumerate(names, 1):
        usable = name if _PLAIN_NAME.fullmatch(name) else _made_usable(name, number)
        while usable in found:
            usable = f"{usable}_{number}"
        found.append(usable)
    return tuple(found)


def pinot_names(names: Iterable[str]) -> dict[str, str]:
    """What Pinot can call columns that have a name of their own already: another one only where it has to.

    :param names: each once.
    :returns: the name of the table's column by that of the files'.
    """
    whole = list(names)
    taken = {name for name in whole if not has_blank(name)}
    found: dict[str, str] = {}
    for number, name in enumerate(whole, 1):
        usable = name
        if has_blank(name):
            usable = _made_usable(name, number)
            while usable in taken:
                usable = f"{usable}_{number}"
            taken.add(usable)
        found[name] = usable
    return found


def _made_usable(name: str, number: int) -> str:
    words = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")
    return words if _PLAIN_NAME.fullmatch(words) else f"c{number}_{words}".rstrip("_")
