"""The command line: what the Dagster UI does, without the UI."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from pinot_assets.audit.checks import Finding
from pinot_assets.cli.commands.gc import add_gc_command
from pinot_assets.cli.commands.init import add_init_command
from pinot_assets.cli.commands.local import app as local_app
from pinot_assets.cli.commands.local import down as local_down
from pinot_assets.cli.commands.local import up as local_up
from pinot_assets.cli.commands.metrics import register as add_metrics_command
from pinot_assets.cli.commands.partitions import partitions_app
from pinot_assets.cli.commands.plan import add_plan_command
from pinot_assets.cli.commands.receipts import add_receipt_commands
from pinot_assets.cli.commands.rollback import add_rollback_commands
from pinot_assets.cli.commands.session import session_app
from pinot_assets.cli.commands.simulate import register as add_simulate_command
from pinot_assets.cli.commands.state import state_app
from pinot_assets.cli.commands.tables import show_failures, tables_app
from pinot_assets.cli.commands.watch import add_watch_command
from pinot_assets.cli.doctor.doctor import doctor
from pinot_assets.cli.help import arrange, reflow
from pinot_assets.cli.options import AsJson, TableName, TablesOption, new_console
from pinot_assets.cli.program import Program, run_program
from pinot_assets.cli.progress import ConsoleProgress
from pinot_assets.cli.realtime.lazy_group import realtime_app
from pinot_assets.cli.status_rendering import status_lines, status_values
from pinot_assets.cli.table_selection import Chosen, offline_tables, one_table
from pinot_assets.cli.terminal import Terminal
from pinot_assets.core.interrupts import saying
from pinot_assets.core.text import plural
from pinot_assets.errors import PinotAssetsError
from pinot_assets.ingest.contract.build_spec import Builder
from pinot_assets.lineage_events.sending import lineage_after
from pinot_assets.local import ui
from pinot_assets.local.sample_data import first_days, write_days
from pinot_assets.metrics.pushing import pushed_after
from pinot_assets.pinot import HttpPinotClient
from pinot_assets.session.connect import (
    open_clients,
    open_known_stores,
    open_session_store,
    open_source,
    open_staging,
)
from pinot_assets.session.detect.observe import compare_listing, list_source, observe
from pinot_assets.session.driver import Driver, RunOutcome
from pinot_assets.settings.environment import load_settings
from pinot_assets.settings.local_paths import default_home
from pinot_assets.source.uris import parse_root
from pinot_assets.table_spec import TableSpec
from pinot_assets.table_spec.tables.apply import ApplyPlan, apply_each, exit_code_of, plan_each

app = typer.Typer(
    cls=Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Files into Apache Pinot, all or nothing: consistent push, retries and rollback.",
    epilog="Start with `pinot-assets doctor`, then `pinot-assets local up`.",
)
app.add_typer(local_app, name="local", help="A real Pinot with its ZooKeeper on this machine.")
app.add_typer(
    tables_app(lambda: HttpPinotClient(load_settings().pinot), lambda plan: _gate(plan)), name="tables"
)
app.command()(doctor)
add_init_command(app)
add_simulate_command(app)
add_metrics_command(app)
app.add_typer(partitions_app(lambda name: _spec(name, None)), name="partitions")
app.add_typer(realtime_app(), name="realtime")

out = new_console()
err = Terminal(stderr=True, soft_wrap=True, highlight=False)

SAMPLE = "flights"
"""The table that `dev` writes files for."""
SHOWN = 10
"""Files that are named of those that a run left out."""


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"pinot-assets {version('pinot-assets')}")
        raise typer.Exit


@app.callback()
def _program(
    show_version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """What may stand before a command."""


@app.command()
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
    spec = _spec(table, tables)
    with _driver(spec, "run") as driver:
        # An empty plan, of a variable that was not set, is no leave to do anything.
        report = driver.trigger() if plan is None else driver.trigger_planned(plan)
        if as_json:
            outcome = driver.gate_and_publish(report, lambda _: None)
        else:
            out.print(escape(report.summary))
            outcome = driver.gate_and_publish(report, _show_finding)
    if as_json:
        typer.echo(json.dumps({"table": spec.name_with_type, **outcome.values}, indent=2))
    else:
        _show_end(outcome)
    raise typer.Exit(outcome.exit_code)


def _show_finding(finding: Finding) -> None:
    mark = finding.pick("[green]✓[/]", "[yellow]![/]", "[red]✗[/]")
    out.print(f"  {mark} {escape(finding.name)}: {escape(finding.message)}")


def _show_end(outcome: RunOutcome) -> None:
    if outcome.refusal is not None:
        err.print(
            f"[red]not switched[/]: {escape(str(outcome.refusal))}\n  queries still see the former state"
        )
    if (snapshot := outcome.snapshot) is not None:
        out.print(
            f"[green]switched[/]: {plural(len(snapshot.ledger), 'file')}, "
            f"{plural(len(snapshot.segments), 'segment')}, {plural(snapshot.rows, 'row')} are visible"
        )
    if outcome.left_out:
        err.print(f"[red]{plural(len(outcome.left_out), 'file')} failed[/]; the others are published")
    for failure in outcome.left_out[:SHOWN]:
        err.print(f"  {escape(failure.uri)}: {escape(failure.reason)}")


@app.command()
def status(table: TableName, tables: TablesOption = None, as_json: AsJson = False) -> None:
    """Show what is published, what waits in the source, and the open session, without changing anything.

    Exits 0.
    """
    spec = _spec(table, tables)
    with open_session_store(spec, load_settings()) as store:
        seen = observe(store, open_staging(spec))
    comparison = compare_listing(spec, list_source(spec, open_source(spec)), seen)
    if as_json:
        typer.echo(json.dumps(status_values(spec, seen, comparison), indent=2))
    else:
        for label, text in status_lines(spec, seen, comparison, time.time_ns() // 1_000_000):
            out.print(f"[bold]{label:<9}[/]  {text}")


@app.command()
def dev() -> None:
    """Start the local stack, sample data and the Dagster UI, and leave them running.

    Writes the sample's first 30 days of flights where tables/flights.yaml looks for them, unless files lie
    there, and applies the table specs. `pinot-assets down` stops everything again. Exits 0; 1 where a table
    spec is wrong or could not be applied, which keeps nothing else from starting; 130 after Ctrl-C, when
    what had started goes on.
    """
    if os.environ.get("PINOT_CONTROLLER_URL"):
        raise PinotAssetsError(
            "`dev` works on the local stack only",
            why="PINOT_CONTROLLER_URL is set, and that Pinot's tables would be changed without asking",
            hint="unset it; for that Pinot there is `pinot-assets tables apply` and `dagster dev`",
        )
    local_up(kafka=False, s3=False, home=None)
    chosen = offline_tables([])
    for spec in chosen.specs:
        if spec.name == SAMPLE:
            _write_sample(spec)
    with saying("what had started goes on: `pinot-assets down` stops it"):
        with HttpPinotClient(load_settings().pinot) as pinot:
            fates = apply_each(plan_each(chosen.specs, pinot), pinot)
        show_failures(fates, chosen.left_out)
        out.print(
            "starting the Dagster UI"
            if ui.runs_at(default_home()) is None
            else "the Dagster UI runs already; Reload definitions, on its page Lineage, shows new tables"
        )
        out.print(f"[green]Dagster[/]     {ui.start(default_home(), Path.cwd())}")
    out.print("materialize `flights` there, or `pinot-assets run flights`; stop with `make down`")
    raise typer.Exit(exit_code_of(fates, chosen.left_out))


def _write_sample(spec: TableSpec) -> None:
    source = parse_root(spec.input_uri())
    folder = Path(source.path)
    if source.scheme == "file" and not folder.exists():
        write_days(folder, "csv", first_days(30))
        out.print(f"sample files are in {folder}")


@app.command()
def down() -> None:
    """Stop the Dagster UI and the local stack; their data stay. Exits 0, also when nothing ran."""
    if ui.stop(default_home()):
        out.print("the Dagster UI has stopped")
    local_down(purge=False, home=None)


@contextmanager
def _driver(spec: TableSpec, command: str) -> Iterator[Driver]:
    settings = load_settings()
    with (
        saying("what was done so far is stored, run it again to go on"),
        ConsoleProgress(err) as progress,
        open_clients(spec, settings, _spark_builder()) as clients,
    ):
        driver = Driver(spec, clients, f"pinot-assets {command}", progress)
        controller = settings.pinot.controller_url
        with lineage_after(driver, controller, progress.note), pushed_after(driver, progress.note):
            yield driver


app.add_typer(session_app(lambda name, tables: _spec(name, tables), _driver), name="session")
app.add_typer(state_app(lambda name, tables: _spec(name, tables), _driver), name="state")


def _spark_builder() -> Builder:
    # Imported here: half of this command's start-up time is PySpark's, and most commands never build.
    from pinot_assets.ingest.spark.builder import SparkBuilder
    from pinot_assets.ingest.spark.environment import environment_context, environment_session

    return SparkBuilder(environment_session, environment_context)


def _gate(plan: ApplyPlan) -> None:
    # Imported here: few commands change a REALTIME table.
    from pinot_assets.cli.realtime.preflight import gate

    gate(plan)


def _spec(name: str, directory: Path | None) -> TableSpec:
    return one_table(name, directory)


def _specs(name: str | None, directory: Path | None) -> Chosen[TableSpec]:
    return offline_tables([], directory) if name is None else Chosen([one_table(name, directory)])


# Named late: tests put others in their place.
add_plan_command(app, lambda name, tables: _spec(name, tables), lambda spec, name: _driver(spec, name))
add_watch_command(
    app,
    offline_tables,
    lambda spec, name: _driver(spec, name),
)
add_receipt_commands(app, lambda name, tables: _spec(name, tables))
add_rollback_commands(app, lambda name, tables: _spec(name, tables), lambda spec, name: _driver(spec, name))
add_gc_command(
    app,
    lambda name, tables: _specs(name, tables),
    lambda spec, name: _driver(spec, name),
    lambda: open_known_stores(load_settings()),
)
arrange(app)
reflow(app)


def main() -> None:
    """Entry point."""
    run_program(app)
