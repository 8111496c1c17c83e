"""What was taken over, as a table spec with comments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from pinot_assets.importing.told import Fate, Told


def spec_text(
    origin: str,
    schema: Mapping[str, Any],
    table: Mapping[str, Any],
    block: Mapping[str, Any],
    told: Iterable[Told],
) -> str:
    """The whole YAML.

    :param origin: what it was made of, for people.
    """
    lines = [f"# Written by `pinot-assets tables import` from {_plain(origin)}."]
    lines += [f"# {_plain(str(line))}" for line in told if line.fate is not Fate.CARRIED]
    parts = [
        "\n".join(lines),
        _dumped({"schema": dict(schema)}),
        _dumped({"table": dict(table)}),
        _dumped({"fileIngestion": dict(block)}),
    ]
    return "\n".join(parts)


def _dumped(value: Mapping[str, Any]) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=110)


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
