"""`pinot-assets run`, `plan` and `status`: publish a table's changed files, and show its state."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Annotated

import typer
from rich.markup import escape
from rich.text import Text

from pinot_assets.audit.checks import Finding
from pinot_assets.cli.driver import open_driver
from pinot_assets.cli.options import AsJson, TableName, TablesOption, one_table
from pinot_assets.cli.terminal import fields, new_console, show_answer, show_json
from pinot_assets.core.text import plural
from pinot_assets.session.decide.run_decision import PlannedAction
from pinot_assets.session.detect.observe import (
    ListingComparison,
    Observation,
    compare_listing,
    list_source,
    observe,
)
from pinot_assets.session.driver import RunOutcome
from pinot_assets.session.plan_report import rendering
from pinot_assets.session.plan_report.plan_report import PlanReport, headline, plan_values
from pinot_assets.session.stores.clients import open_session_store, open_source, open_staging
from pinot_assets.session.values.state import utc_text
from pinot_assets.session.values.trouble import again_ms, has_lasted, since_ms
from pinot_assets.settings.environment import load_settings
from pinot_assets.source.readiness import unready_words
from pinot_assets.table_spec import TableSpec

SHOWN = 10
"""The most names shown of files that a run left out, and of files that failed so far."""
COUNTS = ("files", "done", "failed", "pending", "gone", "removals")
STYLES = {"+": "green", "~": "yellow", "-": "red", "=": "dim", "h": "magenta", "…": "cyan"}
"""Colours of the marks before files."""
LABEL = 13


def run(
    table: TableName,
    tables: TablesOption = None,
    plan: Annotated[
        str | None, typer.Option("--plan", help="Only what this plan showed (see `plan`).", metavar="HASH")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Bring TABLE up to its files: build what changed, gate it, switch to it at one instant.

    Exits 0 when it has switched, when there was nothing to do and when it waits for an upload, 2 when files
    failed or the gate stayed shut (queries still see the former state; with a plain push, the files that did
    not fail are published), 1 on any other error. With --plan it exits 2, and has done nothing, when a run
    would do something else by now than that plan showed.
    """
    spec = one_table(table, tables)
    with open_driver(spec, "run") as driver:
        # An empty hash, from a shell variable that is not set, must not run without a plan.
        report = driver.trigger() if plan is None else driver.trigger_planned(plan)
        if not as_json:
            new_console().print(escape(report.summary))
        outcome = driver.gate_and_publish(report, (lambda _: None) if as_json else _show_finding)
    if as_json:
        show_json({"table": spec.name_with_type, **outcome.values})
    else:
        _show_end(outcome)
    raise typer.Exit(outcome.exit_code)


def _show_finding(finding: Finding) -> None:
    mark = finding.pick("[green]✓[/]", "[yellow]![/]", "[red]✗[/]")
    new_console().print(f"  {mark} {escape(finding.name)}: {escape(finding.message)}")


def _show_end(outcome: RunOutcome) -> None:
    err = new_console(stderr=True)
    if outcome.refusal is not None:
        err.print(
            f"[red]not switched[/]: {escape(str(outcome.refusal))}\n  queries still see the former state"
        )
    if (snapshot := outcome.snapshot) is not None:
        new_console().print(
            f"[green]switched[/]: {plural(len(snapshot.ledger), 'file')}, "
            f"{plural(len(snapshot.segments), 'segment')}, {plural(snapshot.rows, 'row')} are visible"
        )
    if outcome.left_out:
        err.print(f"[red]{plural(len(outcome.left_out), 'file')} failed[/]; the others are published")
    for failure in outcome.left_out[:SHOWN]:
        err.print(f"  {escape(failure.uri)}: {escape(failure.reason)}")


# --- plan ----------------------------------------------------------------------------------------


def plan(table: TableName, tables: TablesOption = None, as_json: AsJson = False) -> None:
    """Show what a run of TABLE would do now: files, segments, rows, room, and what cannot be undone.

    Changes nothing and takes no lease. The decisions are those of the run itself. The last line runs
    exactly this: `run --plan` refuses, with exit code 2, when something that the plan rests on has
    changed. The first 8 digits of the hash are enough; all of them let the refusal say what changed.
    Exits 0.
    """
    with open_driver(one_table(table, tables), "plan") as driver:
        planned = driver.plan()
    show_answer(as_json, plan_values(planned), report_lines(planned))


def report_lines(plan: PlanReport) -> Iterator[Text]:
    """Yield the plan report, line by line."""
    planned = plan.planned
    yield Text.from_markup(
        f"[bold]{escape(planned.table)}[/]  {planned.mode.lower()}, {planned.push.lower()} push  "
        f"[dim]plan {planned.plan_basis.hash}[/]"
    )
    quiet = plan.decision.step in (PlannedAction.NOTHING, PlannedAction.HELD)
    yield Text(f"→ {headline(plan)}", "dim" if quiet else "bold green")
    yield from _section("files", rendering.file_counts(plan))
    files = list(rendering.file_lines(plan))
    width = max((len(uri) for _, uri, _ in files), default=0)
    for mark, uri, text in files:
        yield Text.assemble(
            "  ", (mark.ljust(2), STYLES.get(mark, "")), uri.ljust(width), "  ", (text, "dim")
        )
    for title, part in rendering.SECTIONS.items():
        yield from _section(title, part(plan))
    yield from _modes(plan)
    yield Text()
    yield Text.assemble("exactly this: ", (rendering.command(plan), "bold"))


def _section(title: str, lines: Iterable[rendering.Line]) -> Iterator[Text]:
    for number, line in enumerate(lines):
        if number == 0:
            yield Text()
            yield Text(title, "bold cyan")
        style = "yellow" if line.warns else ""
        yield Text.assemble("  ", (line.label.ljust(LABEL), "bold"), (line.text, style))


def _modes(plan: PlanReport) -> Iterator[Text]:
    rows = [("mode", "would build", "would remove", ""), *rendering.mode_lines(plan)]
    if len(rows) == 1:
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    yield Text()
    yield Text("each mode, with this source", "bold cyan")
    for number, row in enumerate(rows):
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        yield Text(f"  {cells}", "dim" if number == 0 else "")


# --- status --------------------------------------------------------------------------------------


def status(table: TableName, tables: TablesOption = None, as_json: AsJson = False) -> None:
    """Show what is published, what waits in the source, and the open session, without changing anything.

    Exits 0.
    """
    spec = one_table(table, tables)
    with open_session_store(spec, load_settings()) as store:
        observation = observe(store, open_staging(spec))
    comparison = compare_listing(spec, list_source(spec, open_source(spec)), observation)
    lines = status_lines(spec, observation, comparison, time.time_ns() // 1_000_000)
    show_answer(as_json, status_values(spec, observation, comparison), fields(lines, 9))


def status_values(spec: TableSpec, observation: Observation, listing: ListingComparison) -> dict[str, object]:
    """Return the answer of `status` as JSON, for other programs."""
    snapshot, session = observation.snapshot, observation.session
    return {
        "table": spec.name_with_type,
        "mode": spec.mode,
        "published": None
        if snapshot is None
        else {
            "session": snapshot.session,
            "mode": snapshot.mode,
            "files": len(snapshot.ledger),
            "segments": len(snapshot.segments),
            "rows": snapshot.rows,
            "at": utc_text(snapshot.published_ms),
            "lineageEntry": snapshot.lineage_entry_id,
        },
        "source": {
            "listed": listing.listed,
            "new": listing.new,
            "rewritten": listing.rewritten,
            "deleted": listing.deleted,
            "notReady": [f"{u.uri} {u.why}" for u in (*listing.waiting, *listing.later)],
        },
        "session": None
        if session is None
        else {
            "id": session.id,
            "state": session.state,
            "attempt": session.attempt,
            "retryCount": session.retry_count,
            "maxRetries": spec.ingestion.max_retries,
            "files": dict(session.counts),
            "lastError": session.last_error,
            "failed": [f"{f.uri}: {f.code}: {f.reason}" for f in observation.failures],
            "troubleSince": utc_text(since_ms(session)) if observation.passing else None,
            "triedAgainAt": utc_text(again_ms(session)) if observation.passing else None,
        },
        "heldBack": {"files": len(observation.hold.files), "removals": len(observation.hold.removals)},
        "leaseHolder": str(observation.holder) if observation.holder else None,
    }


def _counted(number: int, what: str) -> str:
    """Return number and word, as `1 file`, `2 done`."""
    return plural(number, what.removesuffix("s")) if what.endswith("s") else f"{number} {what}"


def status_lines(
    spec: TableSpec, observation: Observation, listing: ListingComparison, now_ms: int
) -> Iterator[tuple[str, str]]:
    """Yield the answer of `status` for people: a label and a text with markup for each line."""
    snapshot, session = observation.snapshot, observation.session
    yield "table", f"{spec.name_with_type} ({spec.mode})"
    if snapshot is None:
        yield "published", "nothing yet"
    else:
        files, segments = plural(len(snapshot.ledger), "file"), plural(len(snapshot.segments), "segment")
        what = f"{files}, {segments}, {plural(snapshot.rows, 'row')}"
        yield "published", f"{what} by {snapshot.session} at {utc_text(snapshot.published_ms)}"
    yield "source", f"{plural(listing.listed, 'file')} listed: {listing}"
    for unready in filter(None, (listing.waiting, listing.later)):
        yield "", escape(unready_words(unready))
    if session is None:
        yield "session", "none open"
    else:
        counts = ", ".join(_counted(n, what) for what in COUNTS if (n := session.counts.get(what)))
        retries = f"retry {session.retry_count} of {spec.ingestion.max_retries}"
        yield "session", f"{session.id} {session.state}, {retries}: {counts}"
        if observation.passing:
            since, again = utc_text(since_ms(session)), utc_text(again_ms(session))
            text = f"trouble that may pass since {since}; sensors and `watch` try again from {again}"
            yield "", f"[{'red' if has_lasted(session.trouble_since_ms, now_ms) else 'yellow'}]{text}[/]"
        for failure in observation.failures[:SHOWN]:
            yield "", f"[red]{escape(f'{failure.uri}: {failure.code}: {failure.reason}')}[/]"
        if len(observation.failures) > SHOWN:
            yield "", f"and {len(observation.failures) - SHOWN} more; --json lists all"
        if session.last_error and not observation.failures:
            yield "", f"[red]{escape(session.last_error)}[/]"
    if (hold := observation.hold).files or hold.removals:
        held = f"{plural(len(hold.files), 'file version')}, {plural(len(hold.removals), 'removal')}"
        yield "held back", f"{held} after a rollback; `pinot-assets resume {spec.name}` lets them in"
    if observation.holder is not None:
        yield "lease", f"held by {escape(str(observation.holder))}"
