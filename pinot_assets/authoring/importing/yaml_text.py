"""What was taken over, as a table spec with comments."""

from __future__ import annotations

from collections.abc import Iterable

from pinot_assets.authoring.importing.notes import Disposition, ImportNote
from pinot_assets.core.json_object import JsonMapping
from pinot_assets.table_spec.yaml.writer import dumped


def spec_text(
    origin: str,
    schema: JsonMapping,
    table: JsonMapping,
    block: JsonMapping,
    told: Iterable[ImportNote],
) -> str:
    """The whole YAML.

    :param origin: what it was made of, for people.
    """
    lines = [f"# Written by `pinot-assets tables import` from {_plain(origin)}."]
    lines += [f"# {_plain(str(line))}" for line in told if line.fate is not Disposition.CARRIED]
    parts = [
        "\n".join(lines),
        dumped({"schema": dict(schema)}),
        dumped({"table": dict(table)}),
        dumped({"fileIngestion": dict(block)}),
    ]
    return "\n".join(parts)


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
