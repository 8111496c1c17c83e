"""Avro's unions of one type, which schemas of many tools have (`"type": ["int"]`), as columns of that type.

DataFusion reads a union with null as a column that may be null, and every other union as a union of Arrow.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt


def without_unions(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with columns and list items of the type that their union has beside null.

    A union of several types stays; the cast to the table's column then refuses it with both types.
    """
    columns = [_plain(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _plain(array: pa.Array) -> pa.Array:
    kind = array.type
    if pt.is_union(kind):
        return _of_one_type(array)
    if pt.is_list(kind) and pt.is_union(kind.value_type):
        items = _plain(array.values)
        return pa.ListArray.from_arrays(array.offsets, items, mask=array.is_null())
    return array


def _of_one_type(array: pa.UnionArray) -> pa.Array:
    kind = array.type
    types = {
        kind.type_codes[place]: place
        for place in range(kind.num_fields)
        if not pt.is_null(kind.field(place).type)
    }
    if len(types) > 1 or kind.mode != "dense":
        return array
    if not types:
        return pa.nulls(len(array))
    ((code, place),) = types.items()
    # From the buffers: pyarrow's `type_codes` and `offsets` of a slice begin where its parent begins.
    _, codes, offsets = array.buffers()[:3]
    code_of = pa.Array.from_buffers(pa.int8(), len(array), [None, codes], offset=array.offset)
    place_of = pa.Array.from_buffers(pa.int32(), len(array), [None, offsets], offset=array.offset)
    # The offset of a null points into the branch of nulls: a null index takes a null instead.
    return array.field(place).take(pc.if_else(pc.equal(code_of, code), place_of, None))
