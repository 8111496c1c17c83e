"""`<table>_plan`: what a run of the table would do, as a run's log and as an observation of the switch."""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

from collections.abc import Iterable, Iterator

import dagster as dg

from pinot_assets.assets.keys import keys_of
from pinot_assets.assets.metadata import Metadata, cell
from pinot_assets.assets.progress import RunLog
from pinot_assets.resources import ConsistentPushResource
from pinot_assets.session.plan_report.plan_report import PlanReport, headline
from pinot_assets.session.plan_report.rendering import (
    SECTIONS,
    Line,
    command,
    file_counts,
    file_lines,
    mode_lines,
)
from pinot_assets.table_spec import TableSpec


def plan_job(spec: TableSpec) -> dg.JobDefinition:
    """The job. Without the table's tag and pool: it only reads, and keeps no run of the table waiting."""
    name = f"{spec.asset_name}_plan"

    @dg.op(name=f"{name}_op", out={}, description="Reads, decides and adds up; writes nothing.")
    def plan(context: dg.OpExecutionContext, push: ConsistentPushResource) -> Iterator[dg.AssetObservation]:
        found = push.driver(spec, context.run.run_id, RunLog(context.log)).plan()
        for line in lines_of(found):
            context.log.info(line)
        yield dg.AssetObservation(keys_of(spec).snapshot, metadata=metadata_of(found))

    @dg.job(
        name=name,
        executor_def=dg.in_process_executor,
        description=f"What a run of {spec.name} would do now: files, segments, rows, room, and what cannot "
        "be undone. Changes nothing and takes no lease; the plan is in the run's log and on the asset "
        f"`{spec.asset_name}/snapshot`.",
    )
    def job() -> None:
        plan()

    return job


def lines_of(plan: PlanReport) -> Iterator[str]:
    """For the log."""
    yield headline(plan)
    yield from _labelled(file_counts(plan))
    for file in file_lines(plan):
        yield " ".join(file).strip()
    for part in SECTIONS.values():
        yield from _labelled(part(plan))
    for mode, builds, removes, remark in mode_lines(plan):
        yield f"mode {mode}: builds {builds}, removes {removes}" + (f" ({remark})" if remark else "")
    yield f"exactly this: {command(plan)}"


def _labelled(lines: Iterable[Line]) -> Iterator[str]:
    for line in lines:
        yield f"{line.label}: {line.text}".lstrip(": ")


def metadata_of(plan: PlanReport) -> Metadata:
    """The whole plan as a page, and its numbers to plot."""
    return {
        "plan": dg.MetadataValue.md(_page(plan)),
        "plan_hash": plan.planned.plan_basis.hash,
        "step": str(plan.decision.step),
        "files_new": len(plan.of_kind("new")),
        "files_rewritten": len(plan.of_kind("rewritten")),
        "files_deleted": len(plan.of_kind("deleted")),
        "files_to_build": len(plan.build),
        "bytes_to_build": plan.build_bytes,
        "segments_replaced": len(plan.planned.segments_from),
    }


def _page(plan: PlanReport) -> str:
    files = [(mark, cell(f"`{uri}`"), cell(text)) for mark, uri, text in file_lines(plan)]
    parts = [
        f"**{cell(headline(plan))}**",
        _table(("files", ""), _rows(file_counts(plan))),
        _table(("", "file", "version"), files),
        *(_table((title, ""), _rows(part(plan))) for title, part in SECTIONS.items()),
        _table(("each mode", "would build", "would remove", ""), (map(cell, m) for m in mode_lines(plan))),
        f"`{command(plan)}`",
    ]
    return "\n\n".join(filter(None, parts))


def _rows(lines: Iterable[Line]) -> Iterator[tuple[str, str]]:
    for line in lines:
        yield cell(line.label), f"**{cell(line.text)}**" if line.warns else cell(line.text)


def _table(head: tuple[str, ...], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table of cells; nothing where there are no rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head), *lines])
