"""Hashes of what a builder of Pinot made of the seeded tables, and the file that keeps them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from oracle.seeded_tables import SeededTable

from pinot_assets.segment import SegmentSpec, build_segment

CREATED: Final = 1_790_000_000_000
WRITE_FOR: Final = "1.6"
TABLES: Final = 300
GOLDEN: Final = Path(__file__).with_name("golden-1.6.json")
_MARKER = 8
_DIGITS = 32

Hashes = dict[str, str]


def ours(table: SeededTable) -> Mapping[str, bytes]:
    """The files that our writer makes of a table."""
    spec = SegmentSpec.from_pinot(table.schema, table.table_config, write_for=WRITE_FOR)
    segment = build_segment(
        table.data, spec, name="t_0", table_name="t", creation_time_ms=CREATED, now_ms=CREATED
    )
    return segment.files


def hashes(files: Mapping[str, bytes]) -> Hashes:
    """The first 32 digits of the SHA-256 of each index, by its key in `index_map`, and of two files."""
    places = dict(line.split(" = ") for line in files["index_map"].decode().splitlines())
    parts = {name: files[name] for name in ("metadata.properties", "creation.meta")}
    for key, start in places.items():
        if key.endswith(".startOffset"):
            name = key.removesuffix(".startOffset")
            end = int(start) + int(places[f"{name}.size"])
            parts[name] = files["columns.psf"][int(start) + _MARKER : end]
    return {name: hashlib.sha256(part).hexdigest()[:_DIGITS] for name, part in sorted(parts.items())}


def read() -> dict[int, Hashes]:
    """The stored hashes by seed."""
    stored: dict[str, Hashes] = json.loads(GOLDEN.read_text())["tables"]
    return {int(seed): table for seed, table in stored.items()}


def store(source: str, tables: Mapping[int, Hashes]) -> None:
    """Write the file.

    :param source: the commit of Pinot's source.
    """
    lines = [f'  "{seed}": {json.dumps(table, ensure_ascii=False)}' for seed, table in sorted(tables.items())]
    head = f'{{\n "pinot": "{source}",\n "tables": {{\n'
    GOLDEN.write_text(head + ",\n".join(lines) + "\n }\n}\n")
