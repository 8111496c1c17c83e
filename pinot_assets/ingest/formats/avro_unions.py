"""Avro's unions of one type, which schemas of many tools have (`"type": ["int"]`), as columns of that type.

DataFusion reads a union with null as a column that may be null, and every other union as a union of Arrow.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt


def without_unions(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with columns, list items and members of the type that their union has beside null.

    A union of several types stays; the cast to the table's column then refuses it with both types.
    """
    columns = [_plain(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def type_without_union(kind: pa.DataType) -> pa.DataType:
    """Return the type that `without_unions` gives a column of this type; needs no rows."""
    if pt.is_union(kind):
        inner = _types(kind)
        if len(inner) > 1 or kind.mode != "dense":
            return kind
        return type_without_union(kind.field(*inner.values()).type) if inner else pa.null()
    if not _holds_union(kind):
        return kind
    if pt.is_list(kind):
        return pa.list_(type_without_union(kind.value_type))
    if pt.is_map(kind):
        return pa.map_(kind.key_type, type_without_union(kind.item_type))
    return pa.struct([field.with_type(type_without_union(field.type)) for field in _members(kind)])


def _plain(array: pa.Array) -> pa.Array:
    kind = array.type
    if not _holds_union(kind):
        return array
    if pt.is_union(kind):
        return _of_one_type(array)
    # From numpy: pyarrow takes no mask with offsets that are a slice.
    if pt.is_list(kind):
        offsets = pa.array(array.offsets.to_numpy())
        return pa.ListArray.from_arrays(offsets, _plain(array.values), mask=array.is_null())
    if pt.is_map(kind):
        offsets = pa.array(array.offsets.to_numpy())
        return pa.MapArray.from_arrays(offsets, array.keys, _plain(array.items), mask=array.is_null())
    members = [_plain(array.field(place)) for place in range(kind.num_fields)]
    fields = [field.with_type(member.type) for field, member in zip(_members(kind), members, strict=True)]
    return pa.StructArray.from_arrays(members, fields=fields, mask=array.is_null())


def _holds_union(kind: pa.DataType) -> bool:
    if pt.is_union(kind):
        return True
    if pt.is_list(kind):
        return _holds_union(kind.value_type)
    if pt.is_map(kind):
        return _holds_union(kind.item_type)
    return pt.is_struct(kind) and any(_holds_union(field.type) for field in _members(kind))


def _members(kind: pa.StructType) -> list[pa.Field]:
    return [kind.field(place) for place in range(kind.num_fields)]


def _types(kind: pa.UnionType) -> dict[int, int]:
    """Return the place of each type beside null, by its code."""
    return {
        kind.type_codes[place]: place
        for place in range(kind.num_fields)
        if not pt.is_null(kind.field(place).type)
    }


def _of_one_type(array: pa.UnionArray) -> pa.Array:
    kind = array.type
    types = _types(kind)
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
    return _plain(array.field(place).take(pc.if_else(pc.equal(code_of, code), place_of, None)))
