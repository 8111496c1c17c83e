"""The asset `waiting` of a table: it has one partition while the table is not up to date, and none otherwise.

Open-source Dagster shows a check that warns on the asset's own page alone. It shows a partition that was
never materialized in the asset graph, also in a closed group. And because the table depends on `waiting`, it
shows the table as unsynced in the catalog, in an open group of the graph and on the table's page.

Dagster compares the partition's observation with the event that the table's last materialization points at
(`CachingStaleStatusResolver` in dagster/_core/definitions/data_version.py). The tags below always point
before all observations. So the table is unsynced exactly while the partition exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import dagster as dg
from dagster._core.definitions.data_version import (
    CODE_VERSION_TAG,
    DATA_VERSION_TAG,
    NULL_DATA_VERSION,
    NULL_EVENT_POINTER,
    get_input_data_version_tag,
    get_input_event_pointer_tag,
)

from pinot_assets.assets.keys import asset_attributes, keys_of
from pinot_assets.assets.partitions import digest
from pinot_assets.session.context.context import WRITER_VERSION
from pinot_assets.session.detect.table_status import StatusReport, TableCondition
from pinot_assets.table_spec import TableSpec

PARTITION = "changes"
"""The key of the partition."""
_FIRST_EVENT = "1"
"""Storage id of an event before every observation: a table has other events before. Dagster takes 0 for no
pointer, and compares nothing then."""


def partitions_of_waiting(spec: TableSpec) -> dg.DynamicPartitionsDefinition:
    """Return the dynamic partitions of the asset `waiting`."""
    return dg.DynamicPartitionsDefinition(name=f"{spec.asset_name}_waiting")


def waiting_asset(spec: TableSpec) -> dg.AssetSpec:
    """Return the asset; nothing materializes it."""
    what = (
        f"What {spec.name} has not published: one partition while the table is not up to date, else none. "
        f"The check `status` of `{spec.asset_name}` says why and what to do."
    )
    return dg.AssetSpec(
        keys_of(spec).waiting, partitions_def=partitions_of_waiting(spec), **asset_attributes(spec, what)
    )


def waiting_events(
    instance: dg.DagsterInstance, spec: TableSpec, status: StatusReport
) -> Iterator[dg.AssetObservation]:
    """Add or delete the partition as the status says, and yield an observation if something new waits.

    If the status is not known, everything stays as it is.
    """
    if status.state is TableCondition.NOT_KNOWN:
        return
    waiting, partitions = keys_of(spec).waiting, partitions_of_waiting(spec).name
    assert partitions is not None
    if status.state is TableCondition.UP_TO_DATE:
        if instance.has_dynamic_partition(partitions, PARTITION):  # most looks find none, and write nothing
            instance.delete_dynamic_partition(partitions, PARTITION)
        return
    instance.add_dynamic_partitions(partitions, [PARTITION])
    version = digest([status.what])
    last = instance.event_log_storage.get_latest_tags_by_partition(
        waiting, dg.DagsterEventType.ASSET_OBSERVATION, [DATA_VERSION_TAG]
    )
    if last.get(PARTITION, {}).get(DATA_VERSION_TAG) != version:
        yield dg.AssetObservation(
            waiting, partition=PARTITION, description=status.what, tags={DATA_VERSION_TAG: version}
        )


def provenance_of_table(spec: TableSpec, data_version: str) -> Mapping[str, str]:
    """Return the tags with which a materialization of the table is unsynced exactly while something waits.

    :param data_version: that of the table and of its `snapshot`.
    """
    keys = keys_of(spec)
    return {
        CODE_VERSION_TAG: WRITER_VERSION,  # without it, Dagster reads none of the others
        get_input_data_version_tag(keys.snapshot): data_version,
        get_input_event_pointer_tag(keys.snapshot): NULL_EVENT_POINTER,
        get_input_data_version_tag(keys.waiting): NULL_DATA_VERSION.value,
        get_input_event_pointer_tag(keys.waiting): _FIRST_EVENT,
    }
