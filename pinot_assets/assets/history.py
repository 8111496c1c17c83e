"""Read and write the events of a table's file partitions in Dagster's event log; no other module does.

Each materialization points at an observation. Dagster shows a partition as stale if a newer observation has
another version (dagster/_core/definitions/data_version.py). The event of a published segment points at the
observation of the version that it was built from. The event of a staged segment points just before it, so
the partition is stale until it is published. It is fresh again if the file gets its former content back.

Dagster stores 8 to 30 events a second, and a sensor's tick has 60 s: a `Budget` limits how long it writes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)
from dagster._core.definitions.data_version import (
    CODE_VERSION_TAG,
    DATA_VERSION_TAG,
    extract_data_version_from_entry,
    get_input_data_version_tag,
    get_input_event_pointer_tag,
)
from dagster._core.storage.asset_check_execution_record import COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES

from pinot_assets.assets.keys import keys_of, partitions_name
from pinot_assets.assets.metadata import Metadata
from pinot_assets.session.context.context import WRITER_VERSION
from pinot_assets.table_spec import TableSpec

STAGED = "staged:"
"""Prefix of the data versions of segments that are built but not published."""
ABSENT = "absent"
"""Data version of segments that were published earlier and are not any more."""
_OLD_OBSERVATIONS = 50
"""How many observations to search for the version of a rollback; if none has it, the partition is stale."""
TICK_S = 15.0
"""Seconds that a sensor's tick may spend on writing events, in addition to reading source and session."""

T = TypeVar("T")


class Budget:
    """A time limit for all writes that share it. By default (runs, the command line) there is no limit.

    :param seconds: the limit, counted from now.
    :ivar exhausted: the time was too short, and some items were left out.
    """

    def __init__(self, seconds: float = math.inf) -> None:
        self._end = time.monotonic() + seconds
        self.exhausted = False

    @property
    def is_spent(self) -> bool:
        """Whether there is no time left."""
        return time.monotonic() >= self._end

    def spend_on(self, items: Iterable[T]) -> Iterator[T]:
        """Yield items while there is time, and always the first one, so that each tick makes progress."""
        for number, item in enumerate(items):
            if number and self.is_spent:
                self.exhausted = True
                return
            yield item


@dataclass(frozen=True, slots=True)
class RecordedEvaluation:
    """An evaluation of a check as Dagster stores it.

    :ivar recorded_ms: when, epoch milliseconds.
    """

    evaluation: dg.AssetCheckEvaluation
    recorded_ms: int


def checked_materialization(
    instance: dg.DagsterInstance, asset: dg.AssetKey
) -> AssetCheckEvaluationTargetMaterializationData | None:
    """Return the last materialization of an asset, as the target of a check evaluation made outside a check.

    :returns: None if there is none yet.
    """
    records = instance.fetch_materializations(asset, limit=1).records
    if not records:
        return None
    last = records[0]
    return AssetCheckEvaluationTargetMaterializationData(
        storage_id=last.storage_id, run_id=last.run_id, timestamp=last.timestamp
    )


def newest_evaluation(instance: dg.DagsterInstance, check: dg.AssetCheckKey) -> RecordedEvaluation | None:
    """Return the newest evaluation of a check that has ended; None if there is none."""
    records = instance.event_log_storage.get_asset_check_execution_history(
        check, limit=1, status=COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES
    )
    if not records or records[0].evaluation is None or records[0].event is None:
        return None
    return RecordedEvaluation(records[0].evaluation, int(records[0].event.timestamp * 1000))


class TableHistory:
    """Events and partitions of one table in one Dagster instance.

    :param budget: time limit of a sensor's tick for reporting events and deleting partitions.
    """

    def __init__(self, instance: dg.DagsterInstance, spec: TableSpec, budget: Budget | None = None) -> None:
        self._budget = budget or Budget()
        self._instance = instance
        self._log = instance.event_log_storage
        self._keys = keys_of(spec)
        self._partitions = partitions_name(spec)

    # --- partitions ---

    def partitions(self) -> frozenset[str]:
        """Return the partition keys that exist in Dagster."""
        return frozenset(self._instance.get_dynamic_partitions(self._partitions))

    def keep_partitions(self, keys: Collection[str]) -> None:
        """Delete all other partitions, as many as there is time for (`is_through`); their events stay.

        Do not call this while a run of the table is under way: Dagster fails a step whose partition is gone.
        """
        self._delete_partitions(self.partitions() - set(keys))

    def add_partitions(self, keys: Collection[str]) -> None:
        """Add those of the keys that do not exist in Dagster yet."""
        if new := sorted(set(keys) - self.partitions()):
            self._instance.add_dynamic_partitions(self._partitions, new)

    def drop_partitions(self, version: str, kept: Collection[str]) -> None:
        """Delete partitions whose last observed version is `version`, except `kept`. As `keep_partitions`."""
        gone = {key for key, last in self.observed().items() if last == version}
        self._delete_partitions((gone & self.partitions()) - set(kept))

    def _delete_partitions(self, keys: Iterable[str]) -> None:
        for key in self._budget.spend_on(sorted(keys)):
            self._instance.delete_dynamic_partition(self._partitions, key)

    # --- earlier events ---

    def observed(self) -> dict[str, str]:
        """Return the version of the last observation, by partition key."""
        return self._last_versions(self._keys.source_files, dg.DagsterEventType.ASSET_OBSERVATION)

    def materialized(self) -> dict[str, str]:
        """Return the data version of the last materialization of `segments`, by partition key."""
        return self._last_versions(self._keys.segments, dg.DagsterEventType.ASSET_MATERIALIZATION)

    def published(self) -> str | None:
        """Return the data version of the Pinot table's last materialization, None if there is none."""
        event = self._instance.get_latest_materialization_event(self._keys.table)
        version = extract_data_version_from_entry(event) if event is not None else None
        return version.value if version is not None else None

    def _last_versions(self, key: dg.AssetKey, kind: dg.DagsterEventType) -> dict[str, str]:
        tags = self._log.get_latest_tags_by_partition(key, kind, [DATA_VERSION_TAG])
        return {partition: values.get(DATA_VERSION_TAG, "") for partition, values in tags.items()}

    # --- events, to be yielded by a step or reported to the instance ---

    def observations(self, versions: Mapping[str, str]) -> Iterator[dg.AssetObservation]:
        """Yield an observation for each partition whose version differs from the last observed one."""
        last = self.observed()
        yield from self._observe({key: v for key, v in versions.items() if last.get(key) != v})

    def first_observations(self, versions: Mapping[str, str]) -> Iterator[dg.AssetObservation]:
        """Yield an observation for each partition that has none yet."""
        last = self.observed()
        yield from self._observe({key: version for key, version in versions.items() if key not in last})

    def _observe(self, versions: Mapping[str, str]) -> Iterator[dg.AssetObservation]:
        for key, version in sorted(versions.items()):
            yield dg.AssetObservation(
                self._keys.source_files, partition=key, tags={DATA_VERSION_TAG: version}
            )

    def staged(
        self, versions: Mapping[str, str], metadata: Mapping[str, Metadata]
    ) -> Iterator[dg.AssetMaterialization]:
        """Yield events for segments that are built and still hidden. Store their observations first.

        :param versions: the version that was built, by partition key.
        :param metadata: metadata by partition key.
        """
        pointers = self._pointers(versions)
        for key, version in sorted(versions.items()):
            pointer = _before(pointers[key])
            yield self._materialization(key, f"{STAGED}{version}", version, pointer, metadata[key])

    def published_segments(
        self, versions: Mapping[str, str], builds: Mapping[str, str], metadata: Mapping[str, Metadata]
    ) -> Iterator[dg.AssetMaterialization]:
        """Yield events for segments that queries see and Dagster does not show yet. As `staged`.

        :param builds: digits that distinguish two builds of the same version, by partition key.
        """
        last, observed = self.materialized(), self.observed()
        due = {key: v for key, v in versions.items() if last.get(key) != f"{v}-{builds[key]}"}
        pointers = self._pointers(due)
        for key, version in sorted(due.items()):
            pointer = pointers[key]
            if observed[key] != version:
                pointer = self._older_observation(key, version) or _before(pointer)
            yield self._materialization(key, f"{version}-{builds[key]}", version, pointer, metadata[key])

    def absent_segments(self, published: Collection[str], gone: str) -> Iterator[dg.AssetMaterialization]:
        """Yield events for segments that Dagster shows as published but that queries do not see any more.

        :param published: partition keys with visible segments.
        :param gone: the observed version of a partition whose files are not in the source, either.
        """
        last, observed = self.materialized(), self.observed()
        due = {k for k, v in last.items() if not v.startswith(STAGED) and v != ABSENT} - set(published)
        pointers = self._pointers(due)
        for key in sorted(due & observed.keys()):
            # Fresh if the source has no file either; stale if it has one, or as soon as one comes back.
            pointer = pointers[key] if observed[key] == gone else _before(pointers[key])
            yield self._materialization(key, ABSENT, ABSENT, pointer, {"state": "not published"})

    def switched_tags(self) -> dict[str, str]:
        """Return tags for the event of the switch that point at the newest event of `segments`.

        By default Dagster points at the events from before the step, when the segments were only staged.
        """
        kind = dg.DagsterEventType.ASSET_MATERIALIZATION
        last = self._log.get_latest_storage_id_by_partition(self._keys.segments, kind)
        return {get_input_event_pointer_tag(self._keys.segments): str(max(last.values(), default=0))}

    @property
    def is_through(self) -> bool:
        """Whether all writes so far were completed, including deletions of partitions."""
        return not self._budget.exhausted

    def report(self, events: Iterator[dg.AssetObservation | dg.AssetMaterialization]) -> bool:
        """Store events outside a run, as many as there is time for.

        :returns: whether all writes so far were completed; if not, the next tick continues.
        """
        for event in self._budget.spend_on(events):
            self.store(event)
        return self.is_through

    def store(self, event: dg.AssetObservation | dg.AssetMaterialization) -> None:
        """Store one event outside a run."""
        self._instance.report_runless_asset_event(event)

    def _materialization(
        self, key: str, data_version: str, source_version: str, pointer: int, metadata: Metadata
    ) -> dg.AssetMaterialization:
        source = self._keys.source_files
        return dg.AssetMaterialization(
            self._keys.segments,
            partition=key,
            metadata=metadata,
            tags={
                DATA_VERSION_TAG: data_version,
                CODE_VERSION_TAG: WRITER_VERSION,
                get_input_data_version_tag(source): source_version,
                get_input_event_pointer_tag(source): str(pointer),
            },
        )

    def _pointers(self, keys: Collection[str]) -> Mapping[str, int]:
        """Return the storage id of the newest observation, by partition key."""
        if not keys:
            return {}
        # Reads all partitions: thousands of keys do not fit into one condition of SQLite.
        return self._log.get_latest_storage_id_by_partition(
            self._keys.source_files, dg.DagsterEventType.ASSET_OBSERVATION
        )

    def _older_observation(self, key: str, version: str) -> int | None:
        where = dg.AssetRecordsFilter(asset_key=self._keys.source_files, asset_partitions=[key])
        for record in self._instance.fetch_observations(where, limit=_OLD_OBSERVATIONS).records:
            observed = extract_data_version_from_entry(record.event_log_entry)
            if observed is not None and observed.value == version:
                return record.storage_id
        return None


def _before(storage_id: int) -> int:
    """Return a pointer just before an observation; never 0, which Dagster reads as no pointer."""
    return storage_id - 1 or -1
