"""`pinot-assets metrics`: numbers of tables for Prometheus, scraped, printed or written to a file."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from pinot_assets.cli.options import TablesOption, any_tables, table_names
from pinot_assets.cli.terminal import new_console
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.untrusted import whole_number
from pinot_assets.errors import PinotAssetsError, TypedWrong
from pinot_assets.settings.environment import load_settings

if TYPE_CHECKING:
    from pinot_assets.metrics.collector import Collector, ScrapePart

ADDRESS = "127.0.0.1:9469"
"""No other exporter has this port in Prometheus' list of ports. By default only this machine gets answers,
because a client needs no credentials."""


def metrics(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tables of either type; all of them if none is named.",
            metavar="TABLE",
            autocompletion=table_names,
        ),
    ] = None,
    directory: TablesOption = None,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="HOST:PORT to serve /metrics on.")
    ] = ADDRESS,
    once: Annotated[bool, typer.Option("--once", help="Look once, print the metrics and end.")] = False,
    textfile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write this file, for node_exporter's textfile collector, and do not listen."
        ),
    ] = None,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", help="Seconds between two looks at the sessions.", min=1)
    ] = 30,
    health_every: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", help="Seconds between two looks at source, health and REALTIME tables.", min=10
        ),
    ] = 300,
) -> None:
    """Serve the metrics of tables to Prometheus: sessions, files, ages, audit results, health, REALTIME
    tables.

    Scrapes are answered from memory. In between, the command looks at the tables at fixed intervals. It
    takes no lease and changes nothing. A table that cannot be read shows `pinot_assets_up` 0, and so does
    one whose spec is wrong (part `spec`); the other tables are shown all the same.

    Serves until it is ended. With --once, or --once --textfile for cron, exits 0, and 1 where a spec is
    wrong.
    """
    # Imported here, so that other commands start faster.
    from pinot_assets.metrics.collector import Collector, cheap_parts, dear_parts, left_out_parts
    from pinot_assets.metrics.exposition import prometheus_text

    chosen = any_tables(tables or [], directory)
    err = new_console(stderr=True)
    collector = Collector(lambda why: err.print(f"[yellow]warning[/]: {escape(why)}"))
    specs = [*chosen.specs]
    cheap = [*left_out_parts(chosen.left_out), *cheap_parts(specs, load_settings)]
    dear = dear_parts(specs, load_settings)
    if once:
        collector.look([*cheap, *dear])
        if textfile is None:
            typer.echo(prometheus_text(collector.samples()), nl=False)
        else:
            _write(collector, textfile)
        raise typer.Exit(ExitCode.ERROR if chosen.left_out else ExitCode.DONE)
    if textfile is None:
        _listen(collector, listen)
    follow(collector, [(cheap, every), (dear, health_every)], textfile, threading.Event())


def _listen(collector: Collector, listen: str) -> None:
    from prometheus_client import start_http_server

    from pinot_assets.metrics.exposition import registry_of

    host, port = address_of(listen)
    try:
        server, _ = start_http_server(port, host, registry_of(collector.samples))
    except (OSError, UnicodeError) as error:  # UnicodeError: the host is not a valid name, as `a..b`
        raise PinotAssetsError(
            f"{listen} cannot be used to listen",
            why=getattr(error, "strerror", None) or str(error),
            hint="name another address with --listen",
        ) from None
    shown = f"[{host}]" if ":" in host else host
    new_console().print(escape(f"serving http://{shown}:{server.server_port}/metrics; Ctrl-C ends it"))


def address_of(listen: str) -> tuple[str, int]:
    """Return host and port of an address such as `127.0.0.1:9469` or `[::1]:9469`.

    :raises TypedWrong: it is no such address.
    """
    host, _, port = listen.rpartition(":")
    number = whole_number(port)
    if not host or number is None or number > 65535:
        raise TypedWrong(f"{listen} is not an address to listen on", hint=f"write HOST:PORT, say {ADDRESS}")
    return host.strip("[]"), number


def follow(
    collector: Collector,
    rounds: Sequence[tuple[Sequence[ScrapePart], float]],
    textfile: Path | None,
    stopped: threading.Event,
) -> None:
    """Look at the tables until stopped, and write the file at the interval of the first round.

    :param rounds: the parts to look at, and the seconds between two looks.
    :raises PinotAssetsError: the first write of the file fails; later failures are warnings and retried.
    """
    if textfile is not None:
        _write(collector, textfile)
    for parts, seconds in rounds:
        collector.look_for_ever(parts, seconds, stopped)
    while not stopped.wait(rounds[0][1]):
        if textfile is not None:
            try:
                _write(collector, textfile)
            except PinotAssetsError as error:
                collector.warn(error.reason)


def _write(collector: Collector, textfile: Path) -> None:
    """Write the file whole or not at all, by moving it into place."""
    from prometheus_client import write_to_textfile

    from pinot_assets.metrics.exposition import registry_of

    try:
        write_to_textfile(str(textfile), registry_of(collector.samples))
    except OSError as error:
        raise PinotAssetsError(f"{textfile} cannot be written", why=error.strerror or str(error)) from None
