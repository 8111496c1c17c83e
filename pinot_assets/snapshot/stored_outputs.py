"""Segments as a column of a Parquet object, for published files and for published packs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.stored_format import keeping, kept_fields
from pinot_assets.snapshot.receipt import Output

OUTPUTS: Final = "outputs"
_OUTPUT: Final = pa.struct(
    [
        pa.field("segment", pa.string(), nullable=False),
        pa.field("crc", pa.int64(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("tar_uri", pa.string(), nullable=False),
        pa.field("tar_bytes", pa.int64(), nullable=False),
        pa.field("tar_sha256", pa.string(), nullable=False),
        pa.field("metadata_uri", pa.string(), nullable=False),
        pa.field("start_ms", pa.int64()),
        pa.field("end_ms", pa.int64()),
        pa.field("unpacked_bytes", pa.int64(), nullable=False),
    ]
)
COLUMN: Final = pa.field(OUTPUTS, pa.list_(_OUTPUT), nullable=False)


def with_kept_outputs(schema: pa.Schema, outputs: Iterable[Output]) -> pa.Schema:
    """Return the schema with what a later release had stored of these segments."""
    if not (more := kept_fields(outputs)):
        return schema
    column = pa.field(OUTPUTS, pa.list_(pa.struct([*_OUTPUT, *more])), nullable=False)
    return schema.set(schema.get_field_index(OUTPUTS), column)


def unknown_of_outputs(schema: pa.Schema) -> list[str]:
    """Return what the segments of a stored object have beyond `Output`."""
    known = [each.name for each in _OUTPUT]
    return [each.name for each in schema.field(OUTPUTS).type.value_type if each.name not in known]


def output_of(values: JsonMapping, unknown: Sequence[str]) -> Output:
    """Return one segment.

    :param unknown: from `unknown_of_outputs`.
    """
    if not unknown:
        return Output(**values)
    known = {name: value for name, value in values.items() if name not in unknown}
    return Output(**known, **keeping(values, unknown))
