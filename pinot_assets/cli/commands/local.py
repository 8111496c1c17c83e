"""`pinot-assets local`, `dev` and `down`: start and stop the local stack, and the Dagster UI with it."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from pinot_assets.cli.commands.tables import (
    open_pinot,
    reload_lines,
    show_applied,
    show_failures,
    show_plans,
)
from pinot_assets.cli.options import AsJson, Yes, offline_tables
from pinot_assets.cli.terminal import Terminal, command_line, new_console, show_answer, show_json
from pinot_assets.core.interrupts import saying
from pinot_assets.errors import PinotAssetsError
from pinot_assets.local import ui
from pinot_assets.local.jars import MAVENS_PINOT
from pinot_assets.local.sample_data import first_days, write_days
from pinot_assets.local.stack import PartStatus, Stack, StartProgress
from pinot_assets.pinot.versions import REFERENCE
from pinot_assets.settings.local_stack import StackState, default_home
from pinot_assets.source.uris import parse_root
from pinot_assets.table_spec import TableSpec
from pinot_assets.table_spec.tables.apply import apply_each, exit_code_of, plan_each

app = typer.Typer(
    help="A real Apache Pinot with its ZooKeeper on this machine: controller, 2 brokers, 2 servers.",
    no_args_is_help=True,
)
SAMPLE = "flights"
"""The table for which `dev` writes sample files."""
_COLOURS = {"ready": "green", "starting": "yellow", "dead": "red", "stopped": "dim"}

Home = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder of the stack (default: $PINOT_ASSETS_HOME, else .pinot-assets).",
        show_default=False,
    ),
]


@app.command()
def up(
    kafka: Annotated[bool, typer.Option("--kafka", help="Start Kafka, too (KRaft, one node).")] = False,
    s3: Annotated[bool, typer.Option("--s3", help="Start an S3 server, too, on a local folder.")] = False,
    segment_store: Annotated[
        bool,
        typer.Option(
            "--segment-store", help="Servers copy what they commit into the deep store themselves (bypass)."
        ),
    ] = False,
    pinot: Annotated[
        str | None,
        typer.Option(
            "--pinot",
            metavar="RELEASE",
            help=f"Start this release of Pinot, such as {REFERENCE}, instead of {MAVENS_PINOT}. It stays "
            "until `local down --purge`.",
            show_default=False,
        ),
    ] = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Start the stack, or repair its dead parts.

    The first time, Maven fetches the jars into the user's cache (PINOT_ASSETS_CACHE, else
    ~/.cache/pinot-assets). They are Pinot 0.11.0, the newest that Maven Central has whole. With --pinot,
    the release is fetched from Apache's sites instead: about 1 GB, once per user, checked by its SHA-512. An
    interrupted download continues the next time. With PINOT_HOME set, that unpacked Pinot distribution is
    used instead.

    Exits 0 when all parts are ready; 130 after Ctrl-C, which leaves running what had started.
    """
    folder = home or default_home()
    with _reported() as progress:
        before = {part.name for part in Stack(folder).status() if part.state == "ready"}
        state = Stack(folder, progress=progress).up(
            kafka=kafka, s3=s3, segment_store=segment_store, pinot=pinot
        )
        after = [part for part in Stack(folder).status() if part.state == "ready"]
    started = [part.name for part in after if part.name not in before]
    if as_json:
        show_json({"started": started, **dataclasses.asdict(state)})
        return
    console = Terminal()
    if not started:
        console.print(f"The stack is already up (Pinot {state.pinot_version}).")
    elif before:
        console.print(f"Repaired: {', '.join(started)} (Pinot {state.pinot_version}).")
    else:
        console.print(f"The stack is up (Pinot {state.pinot_version}).")
    _print_addresses(console, state)
    if not before and _is_mavens(state):
        console.print(f"{MAVENS_PINOT} is the newest Pinot that Maven Central has whole. For a newer one:")
        at = f" --home {shlex.quote(str(home))}" if home else ""
        console.print(command_line(f"pinot-assets local down{at}"))
        console.print(command_line(f"pinot-assets local up --pinot {REFERENCE}{at}"))


def _is_mavens(state: StackState) -> bool:
    return state.pinot_version == MAVENS_PINOT and not os.environ.get("PINOT_HOME")


@app.command()
def status(as_json: AsJson = False, home: Home = None) -> None:
    """Show each part that was asked for: whether it is ready, its process, ports and log.

    Exits 0.
    """
    with _reported():
        statuses = Stack(home or default_home()).status()
    if as_json:
        show_json([dataclasses.asdict(part) for part in statuses])
        return
    table = Table("part", "state", "pid", "ports", "what is wrong", box=None, header_style="bold")
    for part in statuses:
        if not part.asked:
            continue
        table.add_row(
            part.name,
            f"[{_COLOURS[part.state]}]{part.state}[/]",
            str(part.pid or ""),
            " ".join(f"{purpose}={port}" for purpose, port in part.ports.items()) if part.pid else "",
            escape(_trouble(part)),
        )
    Terminal().print(table)


@app.command()
def down(
    purge: Annotated[
        bool, typer.Option("--purge", help="Delete the data too: tables, segments, topics, buckets, logs.")
    ] = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Stop what `up` started and nothing else, ZooKeeper last; the data stay without --purge.

    Exits 0.
    """
    with _reported() as progress:
        stack = Stack(home or default_home(), progress=progress)
        (stack.purge if purge else stack.down)()
    line = "The stack is down" + (" and its data are deleted." if purge else "; its data are kept.")
    show_answer(as_json, {"running": False, "dataKept": not purge}, [line])


def _print_addresses(console: Console, state: StackState) -> None:
    lines = {
        "controller": state.controller_url,
        "brokers": " ".join(state.broker_urls),
        "servers": " ".join(state.server_admin_urls),
        "gRPC": " ".join(state.server_grpc),
        "ZooKeeper": state.zookeeper,
        "Kafka": state.kafka_bootstrap,
        "S3": state.s3_endpoint,
    }
    for name, address in lines.items():
        if address:
            console.print(f"  {name:<11} {address}", highlight=False, soft_wrap=True)


def _trouble(part: PartStatus) -> str:
    if part.state == "dead":
        return f"its process ended, see {part.log}"
    return f"{part.missing}, see {part.log}" if part.missing else ""


@contextmanager
def _reported() -> Iterator[StartProgress]:
    """Show progress on standard error while the block runs."""
    console = Terminal(stderr=True)
    going_on = "what had started is still running: `pinot-assets local down` stops it"
    with saying(going_on), console.status("") as spinner:
        # A log file cannot show the spinner; it gets the `done` lines only.
        yield StartProgress(doing=spinner.update, done=lambda line: console.print(line, highlight=False))


# --- with the Dagster UI ----------------------------------------------------------------------------


def dev(yes: Yes = False) -> None:
    """Start the local stack, sample data and the Dagster UI, and leave them running.

    Writes the sample's first 30 days of flights where tables/flights.yaml looks for them, unless files are
    there or the extra `sample` is not installed. Shows what the table specs would create or change in
    Pinot, and asks before it does that. If you answer no, nothing is created, and the UI starts all the
    same. `pinot-assets down` stops everything again.

    Needs no workspace.yaml and no dagster.yaml; uses those of the working directory if there are any.

    Exits 0; 1 where a table spec is wrong or could not be applied (everything else starts); 130 after
    Ctrl-C, which leaves running what had started.
    """
    if os.environ.get("PINOT_CONTROLLER_URL"):
        raise PinotAssetsError(
            "`dev` works only on the local stack",
            why="PINOT_CONTROLLER_URL is set, and `dev` starts its own Pinot",
            hint="unset it; for that Pinot use `pinot-assets tables apply` and `dagster dev`",
        )
    up(kafka=False, s3=False, home=None)
    chosen = offline_tables([])
    for spec in chosen.specs:
        if spec.name == SAMPLE:
            _write_sample(spec)
    console = new_console()
    with saying("what had started is still running: `pinot-assets down` stops it"):
        with open_pinot() as pinot:
            fates = plan_each(chosen.specs, pinot)
            show_plans(console, fates)
            if any(fate.due for fate in fates):
                if yes or typer.confirm("Apply?"):
                    fates = apply_each(fates, pinot, reload_lines(new_console(stderr=True)))
                    show_applied(console, fates)
                else:
                    console.print("nothing is applied")
        show_failures(fates, chosen.left_out)
        console.print(
            "starting the Dagster UI"
            if ui.runs_at(default_home()) is None
            else ("the Dagster UI is already up; Reload definitions, on its page Lineage, shows new tables")
        )
        console.print(f"[green]Dagster[/]     {ui.start(default_home(), Path.cwd())}")
    for line in _first_steps([spec.name for spec in chosen.specs]):
        console.print(line)
    console.print("To stop all of it:")
    console.print(command_line("pinot-assets down"))
    raise typer.Exit(exit_code_of(fates, chosen.left_out))


def _first_steps(tables: Sequence[str]) -> Iterator[str | Text]:
    """Yield what to do first in the UI, and a command for the same: of a table that exists."""
    if not tables:
        yield "There is no OFFLINE table yet. To write the spec of one from its files:"
        yield command_line("pinot-assets init FILES")
        return
    yield (
        "Sensors that only look are on. Sensors that start runs are off; turn them on on the page "
        "Automation. Materialize a table there, or run it here:"
    )
    yield command_line(f"pinot-assets run {SAMPLE if SAMPLE in tables else tables[0]}")


def _write_sample(spec: TableSpec) -> None:
    source = parse_root(spec.input_uri())
    folder = Path(source.path)
    if source.scheme != "file" or folder.exists():
        return
    try:
        write_days(folder, "csv", first_days(30))
    except PinotAssetsError as error:
        new_console().print(f"[yellow]no sample files[/]: {escape(str(error))}")
    else:
        new_console().print(f"sample files are in {folder}")


def down_with_ui() -> None:
    """Stop the Dagster UI and the local stack. Their data are kept.

    Exits 0, also when nothing ran.
    """
    if ui.stop(default_home()):
        new_console().print("the Dagster UI has stopped")
    down(purge=False, home=None)
