"""`snapshot`, the switch, and the Pinot table that downstream assets depend on."""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

from collections.abc import Iterator

import dagster as dg

from pinot_assets.assets.asset_attributes import asset_attributes
from pinot_assets.assets.automation import snapshot_condition
from pinot_assets.assets.health import freshness_policy
from pinot_assets.assets.history import TableHistory, checked_materialization
from pinot_assets.assets.keys import GATE, SESSION_TAG, keys_of, pool_of
from pinot_assets.assets.metadata import of_checks
from pinot_assets.assets.partition_events import Event
from pinot_assets.assets.published import Publication, publication_by
from pinot_assets.assets.run_driver import driver_of
from pinot_assets.assets.runs import is_alone
from pinot_assets.audit.assertions import is_assertion
from pinot_assets.core.text import plural
from pinot_assets.resources import ConsistentPushResource
from pinot_assets.session.driver import Driver
from pinot_assets.session.values.state import Checked
from pinot_assets.table_spec import TableSpec

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
        if not _is_published_already(context, driver):
            driver.publish()
        shown = publication_by(driver, push.pinot.settings())
        assert shown is not None  # it was published just now
        history = TableHistory(context.instance, spec)
        yield from shown.partitions(history)
        if is_alone(context.instance, spec, context.run.run_id):
            shown.forget_gone(history)
        yield shown.table()
        yield _gate_again(context.instance, shown, len(driver.last_failures()))
        yield dg.MaterializeResult(
            metadata=shown.metadata,
            data_version=dg.DataVersion(shown.data_version),
            tags=history.switched_tags(),
        )

    return snapshot


def _gate_again(instance: dg.DagsterInstance, shown: Publication, failed: int) -> dg.AssetCheckEvaluation:
    """The gate's answer once more, of the segments as they are shown now.

    It was made of hidden ones; Dagster would count the published as not checked.

    :param failed: files that a plain push left out.
    """
    segments = keys_of(shown.spec).segments
    warnings = [f"{plural(failed, 'file')} failed; the others are published"] if failed else []
    if shown.bad_rows:
        warnings.append(f"{plural(shown.bad_rows, 'bad row')} put aside; the others are published")
    warnings += [_warned(c) for c in shown.checks if not c.passed and c.name not in _COUNTED]
    return dg.AssetCheckEvaluation(
        asset_key=segments,
        check_name=GATE,
        passed=not warnings,
        severity=dg.AssetCheckSeverity.WARN if warnings else dg.AssetCheckSeverity.ERROR,
        description="; ".join(warnings) or "passed, and switched to",
        metadata=of_checks(shown.checks),
        target_materialization_data=checked_materialization(instance, segments),
        blocking=True,
    )


def _warned(check: Checked) -> str:
    if is_assertion(check.name):  # in backticks, since Dagster takes a description for Markdown
        return f"`{check.name}`: {check.found:,g} of {check.expected:,g} answers are as expected"
    return f"{check.name}: found {check.found:,g}, expected {check.expected:,g}"


def _is_published_already(context: dg.AssetExecutionContext, driver: Driver) -> bool:
    """Whether this run goes on for one that died between its switch and its last word."""
    seen = driver.observe()
    published = seen.snapshot.session if seen.snapshot is not None else None
    return seen.session is None and published == context.run.tags.get(SESSION_TAG, "")


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
