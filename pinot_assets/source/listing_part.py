"""A part of a listing, and how it is kept until the rest is listed, too."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.stored_format import Marks, require_schema
from pinot_assets.core.untrusted import fitting, listed, read_json
from pinot_assets.source.file_table import COLUMNS

_META: Final = b"part"


@dataclass(frozen=True, slots=True)
class ListingPart:
    """What one stretch of a listing gave; fields as `listing.Inventory` has them, of this stretch.

    :ivar columns: the chosen files, as `file_table.COLUMNS`.
    :ivar last: the key that the listing goes on behind; empty when it has come to its end.
    """

    columns: pa.Table
    skipped: int = 0
    hidden: int = 0
    complete: frozenset[str] = frozenset()
    being_written: frozenset[str] = frozenset()
    last: str = ""


def part_to_arrow(part: ListingPart, beside: JsonMapping) -> bytes:
    """A part as an Arrow stream: what it holds is written as it lies in memory.

    :param beside: plain values that are kept with it.
    """
    told = {
        "skipped": part.skipped,
        "hidden": part.hidden,
        "complete": sorted(part.complete),
        "being_written": sorted(part.being_written),
        "last": part.last,
        "beside": dict(beside),
    }
    table = part.columns.replace_schema_metadata({_META: json.dumps(told).encode()})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def part_from_arrow(data: bytes, what: str = "a part of a listing") -> tuple[ListingPart, JsonObject]:
    """Inverse of `part_to_arrow`; the columns are views of the data.

    What is no part raises what its parsers raise.

    :param what: its address, for errors.
    :raises NeedsNewerRelease: it is of a format that this release does not know.
    """
    table = pa.ipc.open_stream(data).read_all()
    table.validate(full=True)  # places of texts that point outside of it would end the process
    told = read_json(table.schema.metadata[_META])
    Marks.of(told).require_known(what)
    require_schema(table.schema, COLUMNS)
    part = ListingPart(
        table.replace_schema_metadata(None),
        told["skipped"],
        told["hidden"],
        frozenset(listed(told["complete"])),
        frozenset(listed(told["being_written"])),
        told["last"],
    )
    return fitting(part), told["beside"]
