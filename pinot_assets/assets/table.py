"""One table's assets: `segments` → the gate `consistent_push` → `snapshot`, and the job that runs them.

All three steps run in one process, which holds the table's lease (spec/session.md section 6). The gate shows
itself as a blocking asset check; `snapshot` enforces it again from the session's own audit receipt, so a
selection without checks, or `snapshot` alone, switches nothing that was not audited.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

from collections.abc import Iterator
from dataclasses import dataclass

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from pinot_assets.assets.keys import TABLE_TAG
from pinot_assets.assets.metadata import of_file, of_findings, of_report, of_snapshot
from pinot_assets.errors import PinotAssetsError
from pinot_assets.resources import ConsistentPushResource
from pinot_assets.session.receipt import Failure, Receipt
from pinot_assets.session.report import Result
from pinot_assets.spec import TableSpec


@dataclass(frozen=True, slots=True)
class TableAssets:
    """What one table spec becomes in Dagster."""

    spec: TableSpec
    assets: tuple[dg.AssetsDefinition, ...]
    check: dg.AssetChecksDefinition
    job: UnresolvedAssetJobDefinition


class RunLog:
    """Progress of a driver, in the run's log."""

    def __init__(self, log: dg.DagsterLogManager) -> None:
        self._log = log
        self._total = self._done = 0

    def note(self, text: str) -> None:
        """One step."""
        self._log.info(text)

    def building(self, files: int) -> None:
        """So many files are about to be built."""
        self._total, self._done = files, 0
        self._log.info(f"building {files} files on Spark")

    def built(self, outcome: Receipt | Failure) -> None:
        """One of them is through."""
        self._done += 1
        if isinstance(outcome, Failure):
            self._log.warning(f"{outcome.uri} failed: {outcome.code}: {outcome.reason}")
        elif self._done == self._total or self._done % max(1, self._total // 10) == 0:
            self._log.info(f"built {self._done} of {self._total} files")


def table_assets(spec: TableSpec) -> TableAssets:
    """Assets, gate and job of one table."""
    segments = _segments(spec)
    snapshot = _snapshot(spec, segments.key)
    check = _consistent_push(spec, segments.key)
    job = dg.define_asset_job(
        f"{spec.asset_name}_ingest",
        selection=dg.AssetSelection.assets(segments.key, snapshot.key),
        executor_def=dg.in_process_executor,
        tags={TABLE_TAG: spec.name},
        description=f"One trigger of {spec.name}: build what changed, gate it, switch to it.",
    )
    return TableAssets(spec, (segments, snapshot), check, job)


def _segments(spec: TableSpec) -> dg.AssetsDefinition:
    @dg.asset(
        key=[spec.asset_name, "segments"],
        group_name=spec.asset_name,
        kinds={"spark", "pinot"},
        output_required=False,
        description=f"Files of {spec.ingestion.input_dir_uri}, each built into segments and staged, hidden.",
    )
    def segments(
        context: dg.AssetExecutionContext, push: ConsistentPushResource
    ) -> Iterator[dg.AssetMaterialization | dg.MaterializeResult[None]]:
        report = push.driver(spec, context.run.run_id, RunLog(context.log)).trigger()
        context.log.info(report.summary)
        prefix = f"{spec.input_uri()}/"
        for receipt in report.built:
            yield dg.AssetMaterialization(
                asset_key=context.asset_key,
                partition=receipt.uri.removeprefix(prefix),
                metadata=of_file(receipt),
                tags={"dagster/data_version": receipt.read.token},
            )
        # Without an output the gate and the switch are skipped: there is nothing for them.
        if report.result in (Result.STAGED, Result.FAILED):
            yield dg.MaterializeResult(metadata=of_report(report))

    return segments


def _consistent_push(spec: TableSpec, segments: dg.AssetKey) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=segments,
        name="consistent_push",
        blocking=True,
        description="Every file is built, and every replica of every staged segment is as it was built.",
    )
    def consistent_push(
        context: dg.AssetCheckExecutionContext, push: ConsistentPushResource
    ) -> dg.AssetCheckResult:
        try:
            _, findings = push.driver(spec, context.run.run_id, RunLog(context.log)).audit()
        except Exception as error:
            # An exception would leave no evaluation behind: a gate that broke is a gate that is shut.
            if not isinstance(error, PinotAssetsError):
                context.log.exception("the gate broke")
            return dg.AssetCheckResult(passed=False, description=str(error) or repr(error))
        failed = [f for f in findings if not f.passed]
        return dg.AssetCheckResult(
            passed=not failed,
            severity=dg.AssetCheckSeverity.ERROR,
            description="; ".join(f.message for f in failed or findings),
            metadata=of_findings(findings),
        )

    return consistent_push


def _snapshot(spec: TableSpec, segments: dg.AssetKey) -> dg.AssetsDefinition:
    @dg.asset(
        key=[spec.asset_name, "snapshot"],
        deps=[segments],
        group_name=spec.asset_name,
        kinds={"pinot"},
        description=f"What queries of {spec.name} see: one atomic switch of Pinot's segment lineage.",
    )
    def snapshot(
        context: dg.AssetExecutionContext, push: ConsistentPushResource
    ) -> dg.MaterializeResult[None]:
        published = push.driver(spec, context.run.run_id, RunLog(context.log)).publish()
        return dg.MaterializeResult(metadata=of_snapshot(published))

    return snapshot
