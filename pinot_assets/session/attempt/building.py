"""The build of one attempt, as the table spec wants it (docs/design/session.md#the-build)."""

from __future__ import annotations

import os

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, Query
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.values import quarantined_rows, small_files
from pinot_assets.session.values.plan import Plan
from pinot_assets.session.values.state import Session
from pinot_assets.settings.file_limits import FileLimits
from pinot_assets.snapshot.fingerprint import SourceFile
from pinot_assets.snapshot.receipt import Failure, Receipt
from pinot_assets.table_spec.blocks.ingestion import FileIngestion


def build(context: TriggerContext, session: Session, plan: Plan) -> tuple[list[Receipt], list[Failure]]:
    """Build what the plan wants built.

    :returns: receipts, and failures by ordinal; files that may be skipped are in neither.
    :raises LeaseLost: somebody else owns the table now; nothing was built.
    """
    tasks = [FileTask(SourceFile(r.uri, r.planned), r.ordinal) for r in plan.to_build]
    receipts: list[Receipt] = []
    failures: list[Failure] = []

    def on_done(outcome: Receipt | Failure) -> None:
        context.progress.built(outcome)
        if isinstance(outcome, Receipt):
            receipts.append(outcome)
            context.built += 1
        else:
            failures.append(outcome)

    context.lease.assert_held()  # what slept through its lease may not build what the next owner does (I13)
    context.progress.building({task.ordinal: task.file.fingerprint.size for task in tasks})
    context.clients.builder.build(_order(context, session, plan), tasks, on_done, context.progress.moving)
    for note in (*quarantined_rows.notes(receipts), *small_files.notes(receipts)):
        context.note(note)
    failed = [f for f in failures if not _skipped(context, session, plan, f)]
    return receipts, sorted(failed, key=lambda f: f.ordinal)


def _skipped(context: TriggerContext, session: Session, plan: Plan, failure: Failure) -> bool:
    """Whether a file that cannot be read is left out, as the user wants it (edge case E17).

    Not one that is published: its rows must not vanish because its new version is broken.
    """
    if not context.spec.ingestion.skip_unreadable or failure.code != "UNREADABLE":
        return False
    current = context.current_snapshot()
    if current is not None and failure.uri in current.ledger:
        return False
    (row,) = [r for r in plan.to_build if r.ordinal == failure.ordinal]
    context.clients.staging.put_skipped(session.id, row, failure, session.format)
    context.note(f"skipped {failure.uri}: {failure.reason}")
    return True


def _order(context: TriggerContext, session: Session, plan: Plan) -> BuildSpec:
    ingestion, staging = context.spec.ingestion, context.clients.staging
    return BuildSpec(
        table=context.spec.name,
        session=session.id,
        attempt=plan.attempt,
        creation_time_ms=session.created_ms,
        schema=context.spec.schema_json,
        table_config=context.spec.table_json,
        input_format=ingestion.input_format,
        reader=ingestion.reader,
        source_uri=context.clients.source.uri,
        source_props=ingestion.input_props,
        staging_uri=staging.session_uri(session.id),
        segments_uri=staging.segments_uri,
        staging_props=ingestion.output_props,
        max_rows_per_segment=ingestion.max_rows_per_segment,
        min_server=ingestion.min_server,
        policy=context.spec.policy,
        desired_segment_bytes=ingestion.desired_segment_bytes,
        max_bad_rows=ingestion.bad_row_limit,
        missing_column=ingestion.on_missing_column,
        query=query_of(ingestion, context.spec.table_json),
        limits=FileLimits.of_environment(os.environ),
        format=session.format,
    )


def query_of(ingestion: FileIngestion, table_config: JsonMapping) -> Query | None:
    """What Spark SQL makes of the rows; None if the tasks read the files themselves.

    :param table_config: Pinot's `transformConfigs` and `filterConfig` in it need Spark, too.
    """
    query = Query.of(ingestion.filter, ingestion.transforms, table_config)
    return query if query.expressions or ingestion.engine == "spark" else None
