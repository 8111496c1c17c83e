"""`source_files`: the files of a table as they lie in the source, one data version per partition."""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

from collections.abc import Iterator
from typing import cast

import dagster as dg

from pinot_assets.assets.asset_attributes import asset_attributes, file_partitions, store_kind
from pinot_assets.assets.history import TableHistory
from pinot_assets.assets.keys import keys_of
from pinot_assets.assets.partition_events import Event, PartitionEvents
from pinot_assets.assets.runs import is_alone
from pinot_assets.core.text import plural
from pinot_assets.resources import PinotResource
from pinot_assets.session.detect.observe import list_source, observe
from pinot_assets.session.stores.clients import open_session_store, open_source, open_staging
from pinot_assets.table_spec import TableSpec


def source_files_asset(spec: TableSpec) -> dg.AssetsDefinition:
    """Observed by the files sensor, by every run of the table, and by hand."""
    where = spec.ingestion.input_dir_uri
    what = f"Files of {where} as they lie there. Only observed, so Dagster counts them as missing."

    @dg.multi_observable_source_asset(  # type: ignore[untyped-decorator]
        name=f"{spec.asset_name}_source_files",
        specs=[
            dg.AssetSpec(
                keys_of(spec).source_files,
                partitions_def=file_partitions(spec),
                metadata={"input_directory": where},
                # Without a result of its own: it says what changed, partition by partition.
                skippable=True,
                **asset_attributes(
                    spec,
                    what,
                    store_kind(where),
                ),
            )
        ],
    )
    def source_files(context: dg.AssetExecutionContext, pinot: PinotResource) -> Iterator[Event]:
        with open_session_store(spec, pinot.settings()) as store:
            snapshot = observe(store, open_staging(spec)).snapshot
        files = list_source(spec, open_source(spec)).files
        history = TableHistory(context.instance, spec)
        picture = PartitionEvents.take(spec, files, snapshot, history.partitions())
        changed = list(picture.observations(history))
        context.log.info(
            f"{plural(len(files), 'file')}; "
            f"{len(changed):,} of {plural(len(picture.source), 'partition')} changed"
        )
        yield from changed
        if is_alone(context.instance, spec, context.run.run_id):
            picture.forget_all_others(history)

    return cast("dg.AssetsDefinition", source_files)
