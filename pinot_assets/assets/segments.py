"""The assets `source_files` and `segments`, and the gate: observe files, build changed ones, stage, audit.

`source_files` represents the files of a table in the source, with one data version per partition.

The steps of one trigger run in one process, which holds the table's lease
(docs/design/session.md#in-dagster). Dagster shows the gate as a blocking asset check. `snapshot` enforces it
again with the session's audit receipt, so a run without checks, or of `snapshot` alone, cannot switch to
segments that were not audited.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import cast

import dagster as dg
from dagster._core.storage.tags import ASSET_EVALUATION_ID_TAG, BACKFILL_ID_TAG, EXTERNALLY_MANAGED_ASSETS_TAG

from pinot_assets.assets.history import TableHistory
from pinot_assets.assets.keys import (
    ATTEMPT_TAG,
    GATE,
    SESSION_TAG,
    TABLE_TAG,
    asset_attributes,
    keys_of,
    partitions_name,
    pool_of,
)
from pinot_assets.assets.metadata import of_findings, of_report, served
from pinot_assets.assets.partition_events import Event, PartitionEvents
from pinot_assets.assets.runs import RunLog, ask_if_alone, driver_of, job_name, trigger_once
from pinot_assets.assets.status import of_gate, status_after, status_events
from pinot_assets.audit.assertions import is_assertion
from pinot_assets.audit.checks import Finding
from pinot_assets.core.text import plural
from pinot_assets.errors import PinotAssetsError
from pinot_assets.resources import ConsistentPushResource, PinotResource
from pinot_assets.session.detect.observe import list_source, observe
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.clients import open_session_store, open_source, open_staging
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.session.values.state import Outcome, PushKind, Session
from pinot_assets.table_spec import TableSpec


def store_kind(uri: str) -> str:
    """Return Dagster's kind for the store: `s3`, `gcs`, `azure` or `file`."""
    scheme = uri.partition(":")[0].lower()
    return {"s3": "s3", "gs": "gcs", "abfss": "azure"}.get(scheme, "file")


def file_partitions(spec: TableSpec) -> dg.DynamicPartitionsDefinition:
    """Return the dynamic partitions: one per file, or per group of files."""
    return dg.DynamicPartitionsDefinition(name=partitions_name(spec))


def source_files_asset(spec: TableSpec) -> dg.AssetsDefinition:
    """Return the asset of the source's files, which the files sensor, each run and people observe."""
    where = spec.ingestion.input_dir_uri
    what = f"Files in {where}. They are only observed, so Dagster counts them as missing."

    @dg.multi_observable_source_asset(  # type: ignore[untyped-decorator]
        name=f"{spec.asset_name}_source_files",
        specs=[
            dg.AssetSpec(
                keys_of(spec).source_files,
                partitions_def=file_partitions(spec),
                metadata={"input_directory": where},
                # Has no result for the whole asset: it yields an observation for each changed partition.
                skippable=True,
                **asset_attributes(spec, what, store_kind(where)),
            )
        ],
    )
    def source_files(context: dg.AssetExecutionContext, pinot: PinotResource) -> Iterator[Event]:
        with open_session_store(spec, pinot.settings()) as store:
            snapshot = observe(store, open_staging(spec)).snapshot
        files = list_source(spec, open_source(spec)).files
        history = TableHistory(context.instance, spec)
        events = PartitionEvents.take(spec, files, snapshot, history.partitions())
        changed = list(events.observations(history))
        context.log.info(
            f"{plural(len(files), 'file')}; "
            f"{len(changed):,} of {plural(len(events.source), 'partition')} changed"
        )
        yield from changed
        if ask_if_alone(context.instance, spec, context.run.run_id):
            events.forget_all_others(history)

    return cast(dg.AssetsDefinition, source_files)


def segments_asset(spec: TableSpec) -> dg.AssetsDefinition:
    """Return the asset with one materialization per partition of built files, stale until published.

    If a person materializes some partitions, the run is a normal trigger of the table, for all its files.
    """

    @dg.asset(
        key=keys_of(spec).segments,
        deps=[keys_of(spec).source_files],
        partitions_def=file_partitions(spec),
        backfill_policy=dg.BackfillPolicy.single_run(),
        automation_condition=segments_condition(spec),
        output_required=False,
        pool=pool_of(spec),
        **asset_attributes(
            spec,
            "Spark builds every file into segments and stages them, hidden. `snapshot` switches to "
            f"them, and `{job_name(spec)}` does both. Materializing any partition triggers the "
            "table: the run takes all new, rewritten and deleted files together.",
            "spark",
            "pinot",
        ),
    )
    def segments(
        context: dg.AssetExecutionContext, push: ConsistentPushResource
    ) -> Iterator[Event | dg.AssetCheckEvaluation | dg.MaterializeResult[None]]:
        driver = driver_of(context, spec, push)
        if (earlier := _same_trigger(context, spec)) is not None:
            context.log.info(f"run {earlier} of the same request has triggered {spec.name} already")
            waiting = driver.observe().session is not None
        else:
            # Tag the run when the build begins: if it dies, a person first looks for its session.
            driver.report_to(
                RunLog(context.log, on_building=lambda: _tag_run(context, spec, driver.observe().session))
            )
            report = trigger_once(driver, context.run)
            context.log.info(report.summary)
            _tag_run(context, spec, report.session)
            metadata = of_report(report)
            if (spark_ui := push.spark_ui()) is not None:
                metadata = {**metadata, "spark_ui": dg.MetadataValue.url(spark_ui)}
            yield dg.AssetObservation(context.asset_key, metadata=metadata)
            yield from _events(TableHistory(context.instance, spec), spec, driver, report)
            waiting = report.result in (TriggerResult.STAGED, TriggerResult.FAILED)
            if not waiting:
                yield from status_events(context.instance, spec, status_after(driver))
        # Dagster skips the gate and the switch if there is no output: then they have nothing to do.
        if waiting:
            yield from _output_without_event(context)

    return segments


def segments_condition(spec: TableSpec) -> dg.AutomationCondition[dg.AssetKey | dg.AssetCheckKey] | None:
    """Return the condition that a file was rewritten or newly observed; None without `automation`.

    Tables use automation conditions only if their spec asks for it (`dagster: {automation: true}`). They see
    new, rewritten and deleted files after an observation of `source_files` by the files sensor, a schedule or
    a person. A failed file does not start another run until it changes. If another file changes meanwhile,
    that starts a run, which spends a retry of the session. `snapshot` follows in a separate run. The files
    sensor observes by itself and explains what it does; it is the recommended way.
    """
    if not spec.dagster.automation:
        return None
    condition = dg.AutomationCondition
    changed = condition.any_deps_match(condition.data_version_changed()) | condition.missing().newly_true()
    return changed.since(condition.newly_requested()) & ~condition.in_progress()


def consistent_push_check(spec: TableSpec) -> dg.AssetChecksDefinition:
    """Return the gate, as a blocking asset check on `segments`."""

    @dg.asset_check(
        asset=keys_of(spec).segments,
        name=GATE,
        blocking=True,
        pool=pool_of(spec),
        description="Passes when every file is built, every replica of every staged segment is as it was "
        "built, and what `audit:` in the table spec requires is true.",
    )
    def consistent_push(
        context: dg.AssetCheckExecutionContext, push: ConsistentPushResource
    ) -> dg.AssetCheckResult:
        result = judge(context, push)
        if not result.passed:  # else the switch follows, and says what the table is then
            with suppress(PinotAssetsError):  # the sensor of all tables looks after the run, too
                status = status_after(driver_of(context, spec, push))
                for event in status_events(context.instance, spec, status):
                    context.instance.report_runless_asset_event(event)
        return result

    def judge(context: dg.AssetCheckExecutionContext, push: ConsistentPushResource) -> dg.AssetCheckResult:
        try:
            driver = driver_of(context, spec, push)
            observation = driver.observe()
            still = served(observation.snapshot)
            if observation.session is None and driver.given_up() is None:
                # A person ran the check. Passing is safe: `snapshot` has nothing to switch to.
                return dg.AssetCheckResult(
                    passed=True, description=f"nothing is staged, so there is nothing to audit: {still}"
                )
            session, findings = driver.audit()
        except Exception as error:
            # An exception would record no evaluation, so an error of the gate counts as a shut gate.
            if not isinstance(error, PinotAssetsError):
                context.log.exception("the gate failed")
            said = str(error) if isinstance(error, PinotAssetsError) else repr(error)
            return dg.AssetCheckResult(passed=False, description=f"{said}. The gate stays shut")
        failed = [f for f in findings if not f.passed]
        said = "; ".join(map(_in_markdown, failed or findings))
        if any(f.blocks for f in findings):
            said = f"{said}. Nothing is switched: {still}"
        elif failed and session.push is PushKind.PLAIN:
            said = f"{said}. The others are published one by one"
        only_warns = bool(failed) and not any(f.blocks for f in failed)
        return dg.AssetCheckResult(
            passed=not failed,
            severity=dg.AssetCheckSeverity.WARN if only_warns else dg.AssetCheckSeverity.ERROR,
            description=said,
            metadata={**of_gate(session), **of_findings(findings), "still_served": still},
        )

    return consistent_push


def _in_markdown(finding: Finding) -> str:
    # Only its name shows what an assertion asks. Dagster shows a description as Markdown, and in backticks
    # COUNT(*) does not start italics.
    return f"`{finding.name}`: `{finding.message}`" if is_assertion(finding.name) else finding.message


def _same_trigger(context: dg.AssetExecutionContext, spec: TableSpec) -> str | None:
    """Return the run that already triggered the table for the same backfill or automation tick, if any.

    Dagster starts a run for each contiguous range of the requested partitions. If each of them triggered the
    table, each would spend a retry (rule R26). A run that is executed again counts as a new request.
    """
    run = context.run
    same = {tag: run.tags[tag] for tag in (BACKFILL_ID_TAG, ASSET_EVALUATION_ID_TAG) if tag in run.tags}
    if not same or run.parent_run_id is not None:
        return None
    runs: Sequence[dg.DagsterRun] = context.instance.get_runs(
        dg.RunsFilter(tags={**same, TABLE_TAG: spec.name})
    )
    return next((r.run_id for r in runs if r.run_id != run.run_id and SESSION_TAG in r.tags), None)


def _tag_run(context: dg.AssetExecutionContext, spec: TableSpec, session: Session | None) -> None:
    if session is not None:
        tags = {TABLE_TAG: spec.name, SESSION_TAG: session.id, ATTEMPT_TAG: str(session.attempt)}
        context.instance.add_run_tags(context.run.run_id, tags)


def _events(history: TableHistory, spec: TableSpec, driver: Driver, report: TriggerReport) -> Iterator[Event]:
    if report.files is None:
        return
    events = PartitionEvents.take(spec, report.files, driver.observe().snapshot, history.partitions())
    yield from events.observations(history)
    if report.result is TriggerResult.NOOP:  # files without rows, for example, are published without a switch
        yield from events.publications(history)
    elif report.session is not None and report.session.outcome is Outcome.OPEN:
        yield from events.staged(history, report.built, report.session.id)


def _output_without_event(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[None]]:
    """Yield an output, so that gate and switch run, but no materialization of the run's own partitions. The
    built files have their events already, and a file in one of the run's partitions may have failed.
    """
    tags: Mapping[str, str] = context.run.tags
    assert isinstance(tags, dict)
    tags[EXTERNALLY_MANAGED_ASSETS_TAG] = "true"
    try:
        yield dg.MaterializeResult()
    finally:
        del tags[EXTERNALLY_MANAGED_ASSETS_TAG]
