"""What Dagster's event log knows of a table's partitions: the only door to it.

Staleness in Dagster compares, for one partition, the observation that a materialization points at with the
newest one (dagster/_core/definitions/data_version.py). So an event of a segment that is published points at
the observation of the version that it was built from, and an event of one that is only staged points just
before it: stale until it is published, and fresh again when the file is written back.

Dagster stores 8 to 30 events a second, and a tick of a sensor has 60 s: a `Budget` says for how long it may
write.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
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

from pinot_assets.assets.keys import keys_of, partitions_name
from pinot_assets.assets.metadata import Metadata
from pinot_assets.session.context.context import WRITER_VERSION
from pinot_assets.table_spec import TableSpec

STAGED = "staged:"
"""Data versions of segments that are built and not published begin with it."""
ABSENT = "absent"
"""Data version of segments that were published once and are no longer."""
_OLD_OBSERVATIONS = 50
"""How far back a rolled-back version is looked for; beyond, the partition shows as stale, which it is."""
TICK_S = 15.0
"""What a tick of a sensor may spend on writing events, beside its look at source and session."""

T = TypeVar("T")


class Budget:
    """Time for all that is written with it. Runs and the command line have as much as they need.

    :param seconds: from now on.
    :ivar exhausted: something was left undone.
    """

    def __init__(self, seconds: float = math.inf) -> None:
        self._end = time.monotonic() + seconds
        self.exhausted = False

    @property
    def is_spent(self) -> bool:
        """Whether there is no time left."""
        return time.monotonic() >= self._end

    def spend_on(self, items: Iterable[T]) -> Iterator[T]:
        """Items while there is time, but always the first: whatever is late, the next tick gets further."""
        for number, item in enumerate(items):
            if number and self.is_spent:
                self.exhausted = True
                return
            yield item


def checked_materialization(
    instance: dg.DagsterInstance, asset: dg.AssetKey
) -> AssetCheckEvaluationTargetMaterializationData | None:
    """The last materialization of an asset, as an evaluation points at it that no check's own step makes.

    :returns: None when there is none yet.
    """
    records = instance.fetch_materializations(asset, limit=1).records
    if not records:
        return None
    last = records[0]
    return AssetCheckEvaluationTargetMaterializationData(
        storage_id=last.storage_id, run_id=last.run_id, timestamp=last.timestamp
    )


class TableHistory:
    """Events and partitions of one table in one Dagster instance.

    :param budget: of a sensor's tick, for reported events and deleted partitions.
    """

    def __init__(self, instance: dg.DagsterInstance, spec: TableSpec, budget: Budget | None = None) -> None:
        self._budget = budget or Budget()
        self._instance = instance
        self._log = instance.event_log_storage
        self._keys = keys_of(spec)
        self._partitions = partitions_name(spec)

    # --- partitions ---

    def partitions(self) -> frozenset[str]:
        """Keys that stand in Dagster."""
        return frozenset(self._instance.get_dynamic_partitions(self._partitions))

    def keep_partitions(self, keys: Collection[str]) -> None:
        """Delete all others, as many as there is time for (`is_through`); their events stay.

        Not while a run of the table is under way: Dagster fails a step whose own partition has gone.
        """
        self._delete_partitions(self.partitions() - set(keys))

    def add_partitions(self, keys: Collection[str]) -> None:
        """Add what is missing."""
        if new := sorted(set(keys) - self.partitions()):
            self._instance.add_dynamic_partitions(self._partitions, new)

    def drop_partitions(self, version: str, kept: Collection[str]) -> None:
        """Delete those whose last observation says `version`, but for the kept ones. As `keep_partitions`."""
        gone = {key for key, last in self.observed().items() if last == version}
        self._delete_partitions((gone & self.partitions()) - set(kept))

    def _delete_partitions(self, keys: Iterable[str]) -> None:
        for key in self._budget.spend_on(sorted(keys)):
            self._instance.delete_dynamic_partition(self._partitions, key)

    # --- what was said before ---

    def observed(self) -> dict[str, str]:
        """The version of the last observation, by partition key."""
        return self._last_versions(self._keys.source_files, dg.DagsterEventType.ASSET_OBSERVATION)

    def materialized(self) -> dict[str, str]:
        """The version of the last materialization of `segments`, by partition key."""
        return self._last_versions(self._keys.segments, dg.DagsterEventType.ASSET_MATERIALIZATION)

    def published(self) -> str | None:
        """The data version of the last materialization of the Pinot table."""
        event = self._instance.get_latest_materialization_event(self._keys.table)
        version = extract_data_version_from_entry(event) if event is not None else None
        return version.value if version is not None else None

    def _last_versions(self, key: dg.AssetKey, kind: dg.DagsterEventType) -> dict[str, str]:
        tags = self._log.get_latest_tags_by_partition(key, kind, [DATA_VERSION_TAG])
        return {partition: values.get(DATA_VERSION_TAG, "") for partition, values in tags.items()}

    # --- events, to be yielded by a step or reported to the instance ---

    def observations(self, versions: Mapping[str, str]) -> Iterator[dg.AssetObservation]:
        """What differs from the last observation."""
        last = self.observed()
        yield from self._observe({key: v for key, v in versions.items() if last.get(key) != v})

    def first_observations(self, versions: Mapping[str, str]) -> Iterator[dg.AssetObservation]:
        """What was never observed."""
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
        """Segments that were built, still hidden. Their observations must have been stored.

        :param versions: version that was built, by partition key.
        :param metadata: metadata by partition key.
        """
        pointers = self._pointers(versions)
        for key, version in sorted(versions.items()):
            pointer = _before(pointers[key])
            yield self._materialization(key, f"{STAGED}{version}", version, pointer, metadata[key])

    def published_segments(
        self, versions: Mapping[str, str], builds: Mapping[str, str], metadata: Mapping[str, Metadata]
    ) -> Iterator[dg.AssetMaterialization]:
        """Segments that queries see, where Dagster does not show them yet. As `staged`.

        :param builds: what tells two builds of the same version apart, by partition key.
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
        """Segments that Dagster shows as published, and that queries do not see any more.

        :param published: keys that queries see something of.
        :param gone: the version of an observation that says that the source has nothing, either.
        """
        last, observed = self.materialized(), self.observed()
        due = {k for k, v in last.items() if not v.startswith(STAGED) and v != ABSENT} - set(published)
        pointers = self._pointers(due)
        for key in sorted(due & observed.keys()):
            # Fresh where the source has nothing, either; stale where it has, and as soon as it has again.
            pointer = pointers[key] if observed[key] == gone else _before(pointers[key])
            yield self._materialization(key, ABSENT, ABSENT, pointer, {"state": "not published"})

    def switched_tags(self) -> dict[str, str]:
        """Tags for the event of the switch: it has seen every segment event so far.

        Dagster itself would let it point at those from before its step, which were only staged.
        """
        kind = dg.DagsterEventType.ASSET_MATERIALIZATION
        last = self._log.get_latest_storage_id_by_partition(self._keys.segments, kind)
        return {get_input_event_pointer_tag(self._keys.segments): str(max(last.values(), default=0))}

    @property
    def is_through(self) -> bool:
        """Whether nothing was left undone so far, deletions of partitions included."""
        return not self._budget.exhausted

    def report(self, events: Iterator[dg.AssetObservation | dg.AssetMaterialization]) -> bool:
        """Store events outside a run, as many as there is time for.

        :returns: whether nothing was left undone so far; otherwise the next tick goes on.
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
        """Storage id of the newest observation, by partition key."""
        if not keys:
            return {}
        # All of them: thousands of keys do not fit into one condition of SQLite's.
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
    """Just before an observation; never 0, which Dagster takes for no pointer at all."""
    return storage_id - 1 or -1
