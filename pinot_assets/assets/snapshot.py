"""The asset `snapshot` (the switch), and the Pinot table that downstream assets depend on.

Dagster gets the same events about a published snapshot, whether Dagster or something else published it.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import dagster as dg
from dagster._core.definitions.data_version import DATA_VERSION_TAG

from pinot_assets.assets.health import freshness_policy
from pinot_assets.assets.history import TableHistory, checked_materialization
from pinot_assets.assets.keys import GATE, SESSION_TAG, asset_attributes, keys_of, pool_of
from pinot_assets.assets.metadata import Metadata, of_checks, of_snapshot
from pinot_assets.assets.partition_events import Event, PartitionEvents
from pinot_assets.assets.partitions import digest
from pinot_assets.assets.runs import ask_if_alone, driver_of
from pinot_assets.assets.status import status_after, status_events
from pinot_assets.assets.waiting import provenance_of_table
from pinot_assets.audit.assertions import is_assertion
from pinot_assets.core.text import plural
from pinot_assets.errors import PinotAssetsError
from pinot_assets.pinot.api import PinotClient
from pinot_assets.resources import ConsistentPushResource
from pinot_assets.session.detect.observe import Observation
from pinot_assets.session.driver import Driver
from pinot_assets.session.rollback.rollback_plan import revert_until_ms
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.stores.stored_snapshots import before
from pinot_assets.session.values.state import Checked, published_audit
from pinot_assets.settings.environment import Settings
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef
from pinot_assets.table_spec import TableSpec


@dataclass(frozen=True)
class Publication:
    """A published snapshot with its metadata for Dagster."""

    spec: TableSpec
    ref: SnapshotRef
    snapshot: Snapshot
    metadata: Metadata

    def events(self, history: TableHistory) -> PartitionEvents:
        """Return the partition events, assuming that the source has exactly the published files."""
        return PartitionEvents.of_ledger(self.spec, self.snapshot, history.partitions())

    @cached_property
    def data_version(self) -> str:
        """The result of `data_version_of`, computed once."""
        return data_version_of(self.snapshot)

    def event(self, key: dg.AssetKey) -> dg.AssetMaterialization:
        """Return the event of the Pinot table, or of a switch that the asset's own step did not make."""
        provenance = self.table_provenance if key == keys_of(self.spec).table else {}
        return dg.AssetMaterialization(
            key, metadata=self.metadata, tags={DATA_VERSION_TAG: self.data_version, **provenance}
        )

    @property
    def table_provenance(self) -> Mapping[str, str]:
        """The result of `provenance_of_table`, for the Pinot table's own event."""
        return provenance_of_table(self.spec, self.data_version)


def publication(
    spec: TableSpec,
    observation: Observation,
    store: SessionStore,
    staging: Staging,
    pinot: PinotClient,
    settings: Settings,
) -> Publication | None:
    """Return what is published now, None if nothing is.

    :param settings: for the link to Pinot's console.
    """
    ref, snapshot = observation.pointer.current_snapshot, observation.snapshot
    if ref is None or snapshot is None:
        return None
    session = next((s for s in store.sessions() if s.id == snapshot.session), None)
    manifest = staging.store.uri_of(ref.key)
    ended = observation.pointer.hold_ended
    try:
        until_ms = _revert_until_ms(spec, pinot, staging, snapshot)
        metadata = of_snapshot(snapshot, session, manifest, until_ms, ended)
    except PinotAssetsError:
        # The snapshot is published even if Pinot does not answer at this moment.
        metadata = {**of_snapshot(snapshot, session, manifest, None, ended), "rollback_until": "not known"}
    console = f"{settings.pinot.controller_url}/#/tenants/table/{spec.name_with_type}"
    return Publication(spec, ref, snapshot, {**metadata, "pinot_console": dg.MetadataValue.url(console)})


def _revert_until_ms(spec: TableSpec, pinot: PinotClient, staging: Staging, snapshot: Snapshot) -> int | None:
    if (former := before(staging, snapshot)) is None:
        return None
    return revert_until_ms(spec, pinot, snapshot, former.snapshot, time.time_ns() // 1_000_000)


def publication_by(driver: Driver, settings: Settings) -> Publication | None:
    """As `publication`, with the clients of a driver."""
    clients = driver.clients
    return publication(driver.spec, driver.observe(), clients.store, clients.staging, clients.pinot, settings)


def data_version_of(snapshot: Snapshot) -> str:
    """Return the data version of what queries see: a digest of the segments' names, and of nothing else."""
    return digest(snapshot.segments)


_COUNTED = ("files_built", "rows_kept")
"""Checks that `gate_again` does not list as warnings: failed files and bad rows have their own sentences."""


def snapshot_asset(spec: TableSpec) -> dg.AssetsDefinition:
    """Return the assets of one atomic switch of Pinot's segment lineage: the switch, and the Pinot table.

    Dagster knows of the table that a run makes it. So a table that was never published is missing there, and
    one whose run failed is red.
    """
    keys = keys_of(spec)
    switch = dg.AssetSpec(
        keys.snapshot,
        automation_condition=snapshot_condition(spec),
        **asset_attributes(
            spec, f"One atomic switch of {spec.name}: all of the new segments, or none.", "pinot"
        ),
    )

    @dg.multi_asset(
        name=f"{spec.asset_name}__snapshot",
        # Named outputs: Dagster takes some names of tables for no name of an output.
        outs={
            name: dg.AssetOut.from_spec(one, dagster_type=dg.Nothing, is_required=False)
            for name, one in (("switch", switch), ("pinot_table", table_asset(spec)))
        },
        deps=[keys.segments, keys.waiting],
        internal_asset_deps={"switch": {keys.segments}, "pinot_table": {keys.snapshot, keys.waiting}},
        pool=pool_of(spec),
        can_subset=True,  # whoever picks the switch alone gets it; the table's event then comes beside it
    )
    def snapshot(
        context: dg.AssetExecutionContext, push: ConsistentPushResource
    ) -> Iterator[Event | dg.AssetCheckEvaluation | dg.MaterializeResult[None]]:
        driver = driver_of(context, spec, push)
        if not _ask_if_published_already(context, driver):
            driver.publish()
        shown = publication_by(driver, push.pinot.settings())
        assert shown is not None  # this run, or the one before, has published it
        history = TableHistory(context.instance, spec)
        events = shown.events(history)
        yield from events.publications(history)
        if ask_if_alone(context.instance, spec, context.run.run_id):
            events.forget_gone(history)
        yield gate_again(context.instance, shown, len(driver.last_failures()))
        for key, tags in ((keys.snapshot, history.switched_tags()), (keys.table, shown.table_provenance)):
            if key not in context.selected_asset_keys:
                yield shown.event(key)
                continue
            yield dg.MaterializeResult(
                asset_key=key,
                metadata=shown.metadata,
                data_version=dg.DataVersion(shown.data_version),
                tags=tags,
            )
        yield from status_events(context.instance, spec, status_after(driver))

    return snapshot


def snapshot_condition(spec: TableSpec) -> dg.AutomationCondition[dg.AssetKey | dg.AssetCheckKey] | None:
    """Return the condition that new segments are built and passed the gate; None without `automation`."""
    if not spec.dagster.automation:
        return None
    condition = dg.AutomationCondition
    return (
        condition.any_deps_updated().since(condition.newly_requested())
        & condition.all_deps_blocking_checks_passed()
        & ~condition.any_deps_in_progress()
        & ~condition.in_progress()
    )


def gate_again(instance: dg.DagsterInstance, shown: Publication, failed: int) -> dg.AssetCheckEvaluation:
    """Return the gate's evaluation again, for the events of the published segments.

    The gate checked the hidden segments; without this, Dagster would show the published ones as not checked.

    :param failed: number of files that a plain push left out.
    """
    segments, snapshot = keys_of(shown.spec).segments, shown.snapshot
    audit = published_audit(snapshot.audit)
    checks = audit.checks if audit is not None else ()  # older releases did not store the checks
    bad_rows = sum(f.bad_rows for f in snapshot.files if f.session == snapshot.session)
    warnings = [f"{plural(failed, 'file')} failed; the others are published"] if failed else []
    if bad_rows:
        warnings.append(f"{plural(bad_rows, 'bad row')} put aside; the others are published")
    warnings += [_warned(c) for c in checks if not c.passed and c.name not in _COUNTED]
    return dg.AssetCheckEvaluation(
        asset_key=segments,
        check_name=GATE,
        passed=not warnings,
        severity=dg.AssetCheckSeverity.WARN if warnings else dg.AssetCheckSeverity.ERROR,
        description="; ".join(warnings) or "passed, and switched",
        metadata=of_checks(checks),
        target_materialization_data=checked_materialization(instance, segments),
        blocking=True,
    )


def _warned(check: Checked) -> str:
    if is_assertion(check.name):  # in backticks, because Dagster shows a description as Markdown
        return f"`{check.name}`: {check.found:,g} of {check.expected:,g} answers are as expected"
    return f"{check.name}: found {check.found:,g}, expected {check.expected:,g}"


def _ask_if_published_already(context: dg.AssetExecutionContext, driver: Driver) -> bool:
    """Whether this run continues one that died after its switch and before its last event."""
    observation = driver.observe()
    published = observation.snapshot.session if observation.snapshot is not None else None
    return observation.session is None and published == context.run.tags.get(SESSION_TAG, "")


def table_asset(spec: TableSpec) -> dg.AssetSpec:
    """Return the asset of the table as queries see it; each switch or rollback makes a new data version."""
    return dg.AssetSpec(
        keys_of(spec).table,
        freshness_policy=freshness_policy(spec),
        **asset_attributes(
            spec,
            spec.dagster.description or f"The Pinot table {spec.name_with_type}, as queries see it.",
            "pinot",
            "table",
        ),
    )
