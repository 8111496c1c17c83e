"""Plots of a forecast: ingestion, controller traffic, freshness, segments at risk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import StringIO
from pathlib import Path
from typing import Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pinot_assets.sizing.forecast import Series, SimulatedDay
from pinot_assets.sizing.load import UploadWay

COLOURS: Final = {
    UploadWay.CONTROLLER: "#c0392b",
    UploadWay.BYPASS: "#1f6f8b",
    UploadWay.PAUSELESS: "#6a994e",
}
DASHES: Final = {UploadWay.CONTROLLER: "-", UploadWay.BYPASS: "-", UploadWay.PAUSELESS: "--"}
POINTS: Final = 300
"""A line has about so many: more would be wider than the plot."""

Forecasts = Mapping[UploadWay, SimulatedDay]

# The same forecast gives the same file, byte for byte.
mpl.rcParams["svg.hashsalt"] = "pinot-assets"


def ingestion(forecasts: Forecasts) -> Figure:
    """Rows read per second: whether an outage of the deep store stops ingestion.

    Source: docs/simulate.md#what-it-shows.
    """
    figure = _figure(forecasts, "Rows ingested", "thousand rows/s", lambda f: f.rows_per_s / 1000)
    # Catching up takes a moment at many times the rate: it would press all else to the ground.
    figure.axes[0].set_ylim(0, next(iter(forecasts.values())).load.messages_per_s * 2.5 / 1000)
    return figure


def traffic(forecasts: Forecasts) -> Figure:
    """Bytes through controllers: what bypass takes off them (docs/simulate.md#what-it-shows)."""
    figure = _figure(
        forecasts,
        "Controller traffic",
        "MB/s",
        lambda forecast: np.maximum(_smooth(forecast.controller) / 60e6, 1e-4),
    )
    figure.axes[0].set_yscale("log")
    return figure


def freshness(forecasts: Forecasts) -> Figure:
    """Age of the newest row where it is oldest."""
    figure = _figure(
        forecasts,
        "Freshness gap of the partition furthest behind",
        "seconds",
        lambda forecast: np.maximum(_peaks(forecast.worst_gap_s), 0.1),
    )
    figure.axes[0].set_yscale("log")
    return figure


def at_risk(forecasts: Forecasts) -> Figure:
    """Committed segments that only servers have."""
    return _figure(
        forecasts, "Segments without a copy in the deep store", "segments", lambda forecast: forecast.at_risk
    )


PLOTS: Final[Mapping[str, Callable[[Forecasts], Figure]]] = {
    "ingestion": ingestion,
    "controller-traffic": traffic,
    "freshness": freshness,
    "at-risk": at_risk,
}


def _figure(forecasts: Forecasts, title: str, unit: str, values: Callable[[SimulatedDay], Series]) -> Figure:
    figure = Figure(figsize=(7.2, 2.8), layout="constrained")
    axes = figure.add_subplot()
    for way, forecast in forecasts.items():
        series = values(forecast)
        each = max(1, len(series) // POINTS)
        hours = np.arange(0, len(series), each) / 60
        axes.plot(hours, series[::each], DASHES[way], color=COLOURS[way], label=way.value, linewidth=1.2)
    _dress(axes, next(iter(forecasts.values())), title, unit)
    return figure


def _dress(axes: Axes, forecast: SimulatedDay, title: str, unit: str) -> None:
    load = forecast.load
    if load.outage_s:
        axes.axvspan(
            load.outage_at_s / 3600,
            min(load.outage_ends_s, load.for_s) / 3600,
            color="#f0c419",
            alpha=0.25,
            linewidth=0,
            label=f"deep store {load.outage.value}",
        )
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlabel("hours", fontsize=8)
    axes.set_ylabel(unit, fontsize=8)
    axes.tick_params(labelsize=8)
    axes.set_xlim(0, load.for_s / 3600)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=7, frameon=False, loc="best")


def _smooth(series: Series) -> Series:
    """Means over ten minutes: a commit's bytes would else stand as needles."""
    width = min(10, len(series))
    padded = np.pad(series, (width // 2, width - 1 - width // 2), mode="edge")
    return np.convolve(padded, np.ones(width) / width, mode="valid")


def _peaks(series: Series) -> Series:
    """The largest of ten minutes: in many a minute nobody commits."""
    around = np.lib.stride_tricks.sliding_window_view(np.pad(series, (5, 4)), 10)
    peaks: Series = around.max(axis=1)
    return peaks


def svg(figure: Figure) -> str:
    """The figure as SVG text, the same for the same forecast."""
    text = StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def save(forecasts: Forecasts, folder: Path, suffix: str) -> list[Path]:
    """Write all plots as `<folder>/<name>.<suffix>`: svg or png.

    :returns: the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, draw in PLOTS.items():
        path = folder / f"{name}.{suffix}"
        if suffix == "svg":
            path.write_text(svg(draw(forecasts)), encoding="utf-8")
        else:
            draw(forecasts).savefig(path, dpi=110, metadata={"Software": None})
        written.append(path)
    return written
