"""The plan report in Dagster: as lines of a run's log, and as a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import dagster as dg

from pinot_assets.assets.metadata import Metadata, cell, md_table
from pinot_assets.session.plan_report.plan_report import PlanReport, headline
from pinot_assets.session.plan_report.rendering import (
    SECTIONS,
    Line,
    command,
    file_counts,
    file_lines,
    mode_lines,
)


def lines_of(plan: PlanReport) -> Iterator[str]:
    """Yield the plan report as lines for the log."""
    yield headline(plan)
    yield from _labelled(file_counts(plan))
    for file in file_lines(plan):
        yield " ".join(file).strip()
    for part in SECTIONS.values():
        yield from _labelled(part(plan))
    for mode, builds, removes, remark in mode_lines(plan):
        yield f"mode {mode}: builds {builds}, removes {removes}" + (f" ({remark})" if remark else "")
    yield f"to run exactly this plan: {command(plan)}"


def _labelled(lines: Iterable[Line]) -> Iterator[str]:
    for line in lines:
        yield f"{line.label}: {line.text}".lstrip(": ")


def plan_metadata(plan: PlanReport) -> Metadata:
    """Return the plan report as Markdown, and its numbers to plot."""
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
        md_table(("files", ""), _rows(file_counts(plan))),
        md_table(("", "file", "version"), files),
        *(md_table((title, ""), _rows(part(plan))) for title, part in SECTIONS.items()),
        md_table(("each mode", "would build", "would remove", ""), (map(cell, m) for m in mode_lines(plan))),
        f"`{command(plan)}`",
    ]
    return "\n\n".join(filter(None, parts))


def _rows(lines: Iterable[Line]) -> Iterator[tuple[str, str]]:
    for line in lines:
        yield cell(line.label), f"**{cell(line.text)}**" if line.warns else cell(line.text)
