"""`pinot-assets simulate`: the effects of a deep-store outage, or of another way to commit, on a cluster.

This module imports neither simpy nor matplotlib. They belong to the extra `simulate`, and only the command
needs them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import RenderableType
from rich.table import Table as Grid

from pinot_assets.cli.options import AsJson
from pinot_assets.cli.terminal import show_answer
from pinot_assets.errors import PinotAssetsError
from pinot_assets.sizing import quantities
from pinot_assets.sizing.quantities import QuantityError

if TYPE_CHECKING:
    from pinot_assets.sizing.load import Load, Outage
    from pinot_assets.sizing.page import Forecasts


N = TypeVar("N", int, float)
SUFFIXES = ("svg", "png")


def simulate(
    tables: Annotated[int, typer.Option(metavar="NUMBER", help="Tables.")] = 100,
    servers: Annotated[int, typer.Option(metavar="NUMBER", help="Servers.")] = 50,
    controllers: Annotated[
        int, typer.Option(metavar="NUMBER", help="Controllers; each leads its share of the tables.")
    ] = 3,
    partitions: Annotated[int, typer.Option(metavar="NUMBER", help="Stream partitions of each table.")] = 4,
    replication: Annotated[int, typer.Option(metavar="NUMBER", help="Replicas of each partition.")] = 3,
    msg_rate: Annotated[
        str, typer.Option(metavar="RATE", help="Messages a second of all tables together: 100k.")
    ] = "100k",
    row_size: Annotated[
        str | None, typer.Option(metavar="BYTES", help="Bytes of a segment for each row (measured: 81).")
    ] = None,
    build_rate: Annotated[
        str | None, typer.Option(metavar="RATE", help="Rows a second that a build processes (measured: 35k).")
    ] = None,
    read_rate: Annotated[
        str,
        typer.Option(
            metavar="RATE", help="Rows a second that a server reads of a partition in which it is behind."
        ),
    ] = "20k",
    flush_size: Annotated[str, typer.Option(metavar="SIZE", help="flush.threshold.segment.size")] = "200MB",
    flush_time: Annotated[str, typer.Option(metavar="TIME", help="flush.threshold.time")] = "6h",
    flush_rows: Annotated[
        str, typer.Option(metavar="ROWS", help="flush.threshold.segment.rows; 0: by size.")
    ] = "0",
    duration: Annotated[str, typer.Option("--for", metavar="TIME", help="Simulated time.")] = "24h",
    outage: Annotated[
        str, typer.Option(metavar="TIME", help="How long the deep store is down; 0: not at all.")
    ] = "2h",
    outage_at: Annotated[str, typer.Option(metavar="TIME", help="When that begins.")] = "10h",
    outage_kind: Annotated[
        str, typer.Option(metavar="KIND", help="refuses (fails at once) or hangs.")
    ] = "refuses",
    upload_timeout: Annotated[
        str, typer.Option(metavar="TIME", help="pinot.server.segment.uploader.upload.request.timeout.ms")
    ] = "300s",
    store_rate: Annotated[str, typer.Option(metavar="RATE", help="Bytes a second of one upload.")] = "50MB",
    kept: Annotated[str, typer.Option(metavar="TIME", help="How long segments are kept.")] = "7d",
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with plots there.")] = None,
    plots: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write the plots into that folder.")
    ] = None,
    plot_format: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="Of the plots: svg or png.")
    ] = "svg",
    as_json: AsJson = False,
) -> None:
    """Simulate a day of segment commits in three ways: through the controller, with bypass, pauseless.

    Shows the controller traffic, the freshness, the segments at risk in an outage, and how long it takes to
    fill in missing copies. Exits 0.
    """
    if plot_format not in SUFFIXES:
        raise QuantityError(f"--format {plot_format!r} is not known", hint="give svg or png")
    if missing := [name for name in ("matplotlib", "simpy") if find_spec(name) is None]:
        raise PinotAssetsError(
            "the simulation's libraries are not installed",
            why=f"{missing[0]} is missing",
            hint="pip install 'pinot-assets[simulate]'",
        )
    from pinot_assets.sizing.forecast import simulate_day
    from pinot_assets.sizing.load import Flush, Load, UploadWay
    from pinot_assets.sizing.profile import MEASURED

    commit = MEASURED
    if row_size is not None:
        commit = commit.scaled(_read_some("--row-size", row_size, quantities.parse_size))
    if build_rate is not None:
        commit = commit.built_at(_read_some("--build-rate", build_rate, quantities.parse_count))
    load = Load(
        tables=tables,
        servers=servers,
        controllers=controllers,
        partitions=partitions,
        replication=replication,
        messages_per_s=_read_some("--msg-rate", msg_rate, quantities.parse_count),
        commit=commit,
        for_s=_read_some("--for", duration, quantities.parse_duration),
        outage_at_s=_read("--outage-at", outage_at, quantities.parse_duration),
        outage_s=_read("--outage", outage, quantities.parse_duration),
        outage=_outage(outage_kind),
        flush=Flush(
            segment_rows=int(_read("--flush-rows", flush_rows, quantities.parse_count)),
            time_ms=int(_read_some("--flush-time", flush_time, quantities.parse_duration) * 1000),
            segment_bytes=_read_some("--flush-size", flush_size, quantities.parse_size),
        ),
        kept_s=_read_some("--kept", kept, quantities.parse_duration),
        read_rows_per_s=_read_some("--read-rate", read_rate, quantities.parse_count),
        store_bytes_per_s=_read_some("--store-rate", store_rate, quantities.parse_size),
        upload_timeout_s=_read_some("--upload-timeout", upload_timeout, quantities.parse_duration),
    )
    forecasts = {way: simulate_day(load, way) for way in UploadWay}
    _write(forecasts, html, plots, plot_format)
    _show(load, forecasts, as_json)


def _read(option: str, text: str, parse: Callable[[str], N]) -> N:
    try:
        return parse(text)
    except QuantityError as error:
        raise QuantityError(f"{option} {text!r} cannot be read", hint=error.hint) from error


def _read_some(option: str, text: str, parse: Callable[[str], N]) -> N:
    """As `_read`, for an amount that must be greater than zero."""
    value = _read(option, text, parse)
    if value <= 0:
        raise QuantityError(f"{option} {text!r} is zero", hint="give more than 0")
    return value


def _outage(text: str) -> Outage:
    from pinot_assets.sizing.load import Outage

    try:
        return Outage(text)
    except ValueError:
        kinds = " or ".join(kind.value for kind in Outage)
        raise QuantityError(f"--outage-kind {text!r} is not known", hint=f"give {kinds}") from None


def _write(forecasts: Forecasts, html: Path | None, folder: Path | None, suffix: str) -> None:
    from pinot_assets.sizing import page

    try:
        if html is not None:
            html.parent.mkdir(parents=True, exist_ok=True)
            html.write_text(page.html(forecasts), encoding="utf-8")
        if folder is not None:
            page.save(forecasts, folder, suffix)
    except OSError as error:
        raise PinotAssetsError(
            f"{error.filename or html or folder} cannot be written",
            why=error.strerror,
            hint="name a place that you may write to",
        ) from error


def _show(load: Load, forecasts: Forecasts, as_json: bool) -> None:
    from pinot_assets.sizing import page
    from pinot_assets.sizing.sizing import ASSUMES

    grid = Grid(*page.COLUMNS)
    for column in grid.columns[1:]:
        column.justify = "right"
    for line in page.rows(forecasts):
        grid.add_row(*line)
    doubts = [f"[yellow]![/] {doubt}" for doubt in page.warnings(forecasts)]
    assumed = ["What this assumes:", *(f"  - {assumption}" for assumption in ASSUMES)]
    lines: list[RenderableType] = [page.load_line(load), grid, *doubts, *assumed, page.last_line(forecasts)]
    show_answer(as_json, page.figures(forecasts), lines)
