"""Partitions and time slices of segments: what of them a table spec cannot have, and what lets brokers skip
segments. Pinot accepts a config that prunes nothing, and says nothing.

Source: docs/tables.md#layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pinot_assets.pinot.table_config import setting
from pinot_assets.table_spec.blocks.layout import PARTITION, TIME_SLICE, LayoutSettings
from pinot_assets.table_spec.blocks.pinot_json import field_specs
from pinot_assets.table_spec.yaml.document import DocumentNode, Note, Problem

_PARTITIONS: Final = ("tableIndexConfig", "segmentPartitionConfig", "columnPartitionMap")
_PRUNERS: Final = ("routing", "segmentPrunerTypes")


def _partitioned(table: DocumentNode, schema: DocumentNode) -> list[str]:
    """Return the partitioned columns that the schema has; Pinot ignores others."""
    columns = setting(table.value, *_PARTITIONS)
    known = {spec.mapping["name"] for _, spec in field_specs(schema)}
    return [name for name in columns if name in known] if isinstance(columns, Mapping) else []


def cell_problems(
    block: DocumentNode, layout: LayoutSettings, schema: DocumentNode, table: DocumentNode
) -> Iterator[Problem]:
    """Yield why segments cannot have one partition, or one time slice.

    :param block: the layout block, which has packs.
    """
    columns = _partitioned(table, schema)
    if layout.partition and not columns:
        reason = "needs a partitioned column, and the table config has none that is in the schema"
        yield block.at(PARTITION).problem(
            reason,
            "write tableIndexConfig: {segmentPartitionConfig: {columnPartitionMap: {<column>: "
            "{functionName: Murmur, numPartitions: 8}}}} in the table config",
        )
    if layout.partition and len(columns) > 1:
        reason = f"is possible for one partitioned column, and the table config has {', '.join(columns)}"
        yield block.at(PARTITION).problem(reason, "keep one of them in segmentPartitionConfig")
    if layout.time_slice and not setting(table.value, "segmentsConfig", "timeColumnName"):
        reason = "needs a time column, and the table config names none"
        yield block.at(TIME_SLICE).problem(reason, "write segmentsConfig: {timeColumnName: <column>}")


def pruning_notes(
    root: DocumentNode, layout: LayoutSettings, schema: DocumentNode, table: DocumentNode
) -> Iterator[Note]:
    """Yield a note for each reason for which brokers ask all segments of a table.

    :param root: the table spec.
    """
    columns = _partitioned(table, schema)
    for column in columns if not layout.partition else ():
        how = "write layout: {pack: true, partition: true} beside fileIngestion"
        if len(columns) > 1:
            how = f"deliver files that each have the rows of one partition of {column}"
        yield table.at(*_PARTITIONS, column).note(
            f"{_routing(table, ['partition'], ' in the table config, and ')}{how}: a segment has rows of "
            f"all partitions of {column} that its file has, and queries skip it only if that is one"
        )
    wanted = {PARTITION: "partition"} if layout.partition else {}
    wanted |= {TIME_SLICE: "time"} if layout.time_slice else {}
    routing = _routing(table, [*wanted.values()], " in the table config")
    for key, pruner in wanted.items():
        if _routing(table, [pruner], ""):
            yield root.at("layout", key).note(f"{routing}, or brokers ask all segments")


def _routing(table: DocumentNode, wanted: Sequence[str], after: str) -> str:
    """Return what to write so that brokers have these pruners; nothing if they have them.

    :param after: what follows then.
    """
    named = setting(table.value, *_PRUNERS)
    pruners = [str(name) for name in named] if isinstance(named, list) else []
    known = {name.lower() for name in pruners}
    if known.issuperset(wanted):
        return ""
    types = ", ".join([*pruners, *(name for name in wanted if name not in known)])
    return f"write routing: {{segmentPrunerTypes: [{types}]}}{after}"
