"""`snapshot`, the switch, and the Pinot table that downstream assets depend on.

What Dagster is told once a snapshot is published is the same, whoever published it.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import time
from collections.abc import Iterator
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
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.table_spec import TableSpec


@dataclass(frozen=True)
class Publication:
    """A published snapshot, ready to be shown."""

    spec: TableSpec
    snapshot: Snapshot
    metadata: Metadata

    def events(self, history: TableHistory) -> PartitionEvents:
        """The partitions, as if the source held just what is published."""
        return PartitionEvents.of_ledger(self.spec, self.snapshot, history.partitions())

    @cached_property
    def data_version(self) -> str:
        """As `data_version_of`, worked out once."""
        return data_version_of(self.snapshot)

    def event(self, key: dg.AssetKey) -> dg.AssetMaterialization:
        """Of the Pinot table, or of the switch where it was not made by the asset's own step."""
        return dg.AssetMaterialization(
            key, metadata=self.metadata, tags={DATA_VERSION_TAG: self.data_version}
        )


def publication(
    spec: TableSpec,
    observation: Observation,
    store: SessionStore,
    staging: Staging,
    pinot: PinotClient,
    settings: Settings,
) -> Publication | None:
    """What is published now, None when nothing is.

    :param settings: for the link to Pinot's console.
    """
    ref, snapshot = observation.pointer.current_snapshot, observation.snapshot
    if ref is None or snapshot is None:
        return None
    session = next((s for s in store.sessions() if s.id == snapshot.session), None)
    manifest = staging.store.uri_of(ref.key)
    try:
        metadata = of_snapshot(snapshot, session, manifest, _revert_until_ms(spec, pinot, staging, snapshot))
    except PinotAssetsError:
        # It is published, whether or not Pinot answers at this moment.
        metadata = {**of_snapshot(snapshot, session, manifest, None), "rollback_until": "not known"}
    console = f"{settings.pinot.controller_url}/#/tenants/table/{spec.name_with_type}"
    return Publication(spec, snapshot, {**metadata, "pinot_console": dg.MetadataValue.url(console)})


def _revert_until_ms(spec: TableSpec, pinot: PinotClient, staging: Staging, snapshot: Snapshot) -> int | None:
    if (former := before(staging, snapshot)) is None:
        return None
    return revert_until_ms(spec, pinot, snapshot, former.snapshot, time.time_ns() // 1_000_000)


def publication_by(driver: Driver, settings: Settings) -> Publication | None:
    """The same, by the clients of a driver."""
    clients = driver.clients
    return publication(driver.spec, driver.observe(), clients.store, clients.staging, clients.pinot, settings)


def data_version_of(snapshot: Snapshot) -> str:
    """Data version of what queries see: the segments, whatever else a snapshot remembers."""
    return digest(snapshot.segments)


_COUNTED = ("files_built", "rows_kept")
"""Checks of which the gate's last word has a sentence of its own."""


def snapshot_asset(spec: TableSpec) -> dg.AssetsDefinition:
    """One atomic switch of Pinot's segment lineage."""

    @dg.asset(
        key=keys_of(spec).snapshot,
        deps=[keys_of(spec).segments],
        automation_condition=snapshot_condition(spec),
        pool=pool_of(spec),
        **asset_attributes(
            spec, f"One atomic switch of {spec.name}: all of the new segments, or none.", "pinot"
        ),
    )
    def snapshot(
        context: dg.AssetExecutionContext, push: ConsistentPushResource
    ) -> Iterator[Event | dg.AssetCheckEvaluation | dg.MaterializeResult[None]]:
        driver = driver_of(context, spec, push)
        if not _ask_if_published_already(context, driver):
            driver.publish()
        shown = publication_by(driver, push.pinot.settings())
        assert shown is not None  # it was published just now
        history = TableHistory(context.instance, spec)
        events = shown.events(history)
        yield from events.publications(history)
        if ask_if_alone(context.instance, spec, context.run.run_id):
            events.forget_gone(history)
        yield shown.event(keys_of(spec).table)
        yield _gate_again(context.instance, shown, len(driver.last_failures()))
        yield dg.MaterializeResult(
            metadata=shown.metadata,
            data_version=dg.DataVersion(shown.data_version),
            tags=history.switched_tags(),
        )

    return snapshot


def snapshot_condition(spec: TableSpec) -> dg.AutomationCondition[dg.AssetKey | dg.AssetCheckKey] | None:
    """New segments were built and passed the gate."""
    if not spec.dagster.automation:
        return None
    condition = dg.AutomationCondition
    return (
        condition.any_deps_updated().since(condition.newly_requested())
        & condition.all_deps_blocking_checks_passed()
        & ~condition.any_deps_in_progress()
        & ~condition.in_progress()
    )


def _gate_again(instance: dg.DagsterInstance, shown: Publication, failed: int) -> dg.AssetCheckEvaluation:
    """The gate's answer once more, of the segments as they are shown now.

    It was made of hidden ones; Dagster would count the published as not checked.

    :param failed: files that a plain push left out.
    """
    segments, snapshot = keys_of(shown.spec).segments, shown.snapshot
    audit = published_audit(snapshot.audit)
    checks = audit.checks if audit is not None else ()  # none of a release that did not keep them
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
        description="; ".join(warnings) or "passed, and switched to",
        metadata=of_checks(checks),
        target_materialization_data=checked_materialization(instance, segments),
        blocking=True,
    )


def _warned(check: Checked) -> str:
    if is_assertion(check.name):  # in backticks, since Dagster takes a description for Markdown
        return f"`{check.name}`: {check.found:,g} of {check.expected:,g} answers are as expected"
    return f"{check.name}: found {check.found:,g}, expected {check.expected:,g}"


def _ask_if_published_already(context: dg.AssetExecutionContext, driver: Driver) -> bool:
    """Whether this run goes on for one that died between its switch and its last word."""
    observation = driver.observe()
    published = observation.snapshot.session if observation.snapshot is not None else None
    return observation.session is None and published == context.run.tags.get(SESSION_TAG, "")


def table_asset(spec: TableSpec) -> dg.AssetSpec:
    """The table as queries see it: a new data version with every switch and every rollback."""
    return dg.AssetSpec(
        keys_of(spec).table,
        deps=[keys_of(spec).snapshot],
        freshness_policy=freshness_policy(spec),
        **asset_attributes(
            spec,
            spec.dagster.description or f"The Pinot table {spec.name_with_type}, as queries see it.",
            "pinot",
            "table",
        ),
    )
