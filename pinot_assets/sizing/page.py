"""Shows the forecast as text, as plots (ingestion, controller traffic, freshness, segments at risk), and as
one HTML page that needs no other file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from io import StringIO
from pathlib import Path
from typing import Final

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from pinot_assets.sizing.forecast import Series, SimulatedDay, traffic_ratio
from pinot_assets.sizing.load import Load, UploadWay
from pinot_assets.sizing.quantities import of_bytes, of_seconds
from pinot_assets.sizing.sizing import ASSUMES

BUSY: Final = 0.7
"""Share of the servers' build slots above which builds sometimes have to wait."""

COLUMNS: Final = ("", *(way.value for way in UploadWay))


def rows(forecasts: Forecasts) -> list[tuple[str, ...]]:
    """Return the figures of all ways side by side; one row for each figure, its name first."""
    lines: list[tuple[str, Callable[[SimulatedDay], str]]] = [
        ("commits", lambda f: f"{f.commits:,}"),
        ("controller bytes", lambda f: of_bytes(float(f.controller.sum()))),
        ("  of these tars", lambda f: of_bytes(float(f.uploads.sum()))),
        ("  of these in vain", lambda f: of_bytes(float(f.retries.sum()))),
        ("  of these messages", lambda f: of_bytes(float(f.messages.sum()))),
        ("  of these metadata", lambda f: of_bytes(float(f.metadata.sum()))),
        ("  of these periodic tasks", lambda f: of_bytes(float(f.tasks.sum()))),
        ("freshness gap, worst", lambda f: of_seconds(float(f.worst_gap_s.max()))),
        ("freshness gap, mean", lambda f: of_seconds(float(f.mean_gap_s.mean()))),
    ]
    if next(iter(forecasts.values())).load.outage_s:
        lines += [
            ("ingestion in the outage", lambda f: f"{f.ingest_ratio:.1%}"),
            ("segments at risk, most", lambda f: f"{f.at_risk.max():,.0f}"),
            ("back-fill", _back_fill),
        ]
    return [(name, *map(tell, forecasts.values())) for name, tell in lines]


def _back_fill(forecast: SimulatedDay) -> str:
    return "nothing to fill" if forecast.back_fill_s is None else of_seconds(forecast.back_fill_s)


def last_line(forecasts: Forecasts) -> str:
    """Return the most important figure, as a line."""
    ratio = traffic_ratio(forecasts[UploadWay.CONTROLLER], forecasts[UploadWay.BYPASS])
    return f"controller traffic ratio (upload through controller / bypass): {ratio:,.0f}"


def figures(forecasts: Forecasts) -> dict[str, object]:
    """Return the figures as JSON values, in bytes and seconds."""
    return {
        "ways": {
            way.name.lower(): {
                "commits": forecast.commits,
                "controllerBytes": round(float(forecast.controller.sum())),
                "controllerBytesInVain": round(float(forecast.retries.sum())),
                "controllerBytesOf": {
                    "tars": round(float(forecast.uploads.sum())),
                    "messages": round(float(forecast.messages.sum())),
                    "metadata": round(float(forecast.metadata.sum())),
                    "periodicTasks": round(float(forecast.tasks.sum())),
                },
                "worstGapSeconds": round(float(forecast.worst_gap_s.max()), 3),
                "meanGapSeconds": round(float(forecast.mean_gap_s.mean()), 3),
                "ingestionInOutage": round(forecast.ingest_ratio, 4),
                "mostAtRisk": int(forecast.at_risk.max()),
                "backFillSeconds": forecast.back_fill_s and round(forecast.back_fill_s, 1),
            }
            for way, forecast in forecasts.items()
        },
        "controllerTrafficRatio": round(
            traffic_ratio(forecasts[UploadWay.CONTROLLER], forecasts[UploadWay.BYPASS]), 1
        ),
        "warnings": warnings(forecasts),
        "assumes": list(ASSUMES),
    }


def warnings(forecasts: Forecasts) -> list[str]:
    """Return the warnings: where the cluster may not reach what the simulation assumes."""
    texts = []
    for way, forecast in forecasts.items():
        load = forecast.load
        rows_built = load.messages_per_s * load.for_s * load.replication
        busy = load.build_s(rows_built) / (load.servers * load.build_slots * load.for_s)
        if busy > BUSY and way is UploadWay.BYPASS:
            texts.append(
                f"servers build {busy:.0%} of the time in all of their {load.build_slots} slots: "
                "commits would wait in a queue, which is not simulated; give more servers"
            )
        built = load.messages_per_s * load.for_s / max(1, forecast.commits)
        commit_s = load.build_s(built) + load.tar_bytes(built) / load.store_bytes_per_s
        if way is UploadWay.PAUSELESS and commit_s > 300:
            texts.append(
                "a pauseless commit takes longer than 300 s here, so every segment stays "
                "COMMITTING until it is repaired (apache/pinot#17936): give smaller segments"
            )
    return texts


def load_line(load: Load) -> str:
    """Return what was simulated, in one sentence."""
    text = (
        f"{load.tables:,} tables of {load.partitions} partitions and {load.replication} replicas on "
        f"{load.servers:,} servers and {load.controllers} controllers, {load.messages_per_s:,.0f} messages/s "
        f"in all, {of_bytes(load.commit.segment_bytes / load.commit.rows)} a row, {of_seconds(load.for_s)}"
    )
    if load.outage_s:
        text += (
            f"; the deep store {load.outage.value} for {of_seconds(load.outage_s)} "
            f"after {of_seconds(load.outage_at_s)}"
        )
    return text


def html(forecasts: Forecasts) -> str:
    """Return one page with everything: plots, figures, warnings and assumptions."""
    load = next(iter(forecasts.values())).load
    head = "".join(f"<th>{escape(column)}</th>" for column in COLUMNS)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in rows(forecasts)
    )
    # Without the XML declaration, which is not allowed inside HTML.
    drawn = [svg(draw(forecasts)) for draw in PLOTS.values()]
    pictures = "".join(f"<figure>{text[text.index('<svg') :]}</figure>" for text in drawn)
    notes = "".join(f"<li>{escape(text)}</li>" for text in ASSUMES)
    doubts = "".join(f"<p class=warning>{escape(text)}</p>" for text in warnings(forecasts))
    return _PAGE.format(
        described=escape(load_line(load)),
        head=head,
        body=body,
        pictures=pictures,
        notes=notes,
        doubts=doubts,
        last=escape(last_line(forecasts)),
    )


_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Segment completion, simulated</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; }} td, th {{ padding: .2rem .8rem; text-align: right; }}
td:first-child {{ text-align: left; white-space: pre; }} tr {{ border-bottom: 1px solid #ddd; }}
figure {{ margin: 1.5rem 0; }} figure svg {{ width: 100%; height: auto; }}
.warning {{ background: #fdf3d0; padding: .5rem 1rem; }}
</style></head><body>
<h1>Segment completion, simulated</h1>
<p>{described}</p>{doubts}
<table><tr>{head}</tr>{body}</table>
<p><strong>{last}</strong></p>{pictures}
<h2>What this assumes</h2><ul>{notes}</ul>
</body></html>
"""


COLOURS: Final = {
    UploadWay.CONTROLLER: "#c0392b",
    UploadWay.BYPASS: "#1f6f8b",
    UploadWay.PAUSELESS: "#6a994e",
}
DASHES: Final = {UploadWay.CONTROLLER: "-", UploadWay.BYPASS: "-", UploadWay.PAUSELESS: "--"}
POINTS: Final = 300
"""Approximate number of points of a line: a plot is too narrow for more."""

Forecasts = Mapping[UploadWay, SimulatedDay]

# Makes the file of the same forecast the same, byte for byte.
mpl.rcParams["svg.hashsalt"] = "pinot-assets"


def ingestion(forecasts: Forecasts) -> Figure:
    """Plot rows read per second: whether an outage of the deep store stops ingestion.

    Source: docs/simulate.md#what-it-shows.
    """
    figure = _figure(forecasts, "Rows ingested", "thousand rows/s", lambda f: f.rows_per_s / 1000)
    # Catching up is short and many times faster: on its scale all else would be flat.
    figure.axes[0].set_ylim(0, next(iter(forecasts.values())).load.messages_per_s * 2.5 / 1000)
    return figure


def _figure(
    forecasts: Forecasts,
    title: str,
    unit: str,
    values: Callable[[SimulatedDay], Series],
    scale: str = "linear",
) -> Figure:
    figure = Figure(figsize=(7.2, 2.8), layout="constrained")
    axes = figure.add_subplot()
    for way, forecast in forecasts.items():
        series = values(forecast)
        each = max(1, len(series) // POINTS)
        hours = np.arange(0, len(series), each) / 60
        axes.plot(hours, series[::each], DASHES[way], color=COLOURS[way], label=way.value, linewidth=1.2)
    load = next(iter(forecasts.values())).load
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
    if scale != "linear":
        axes.set_yscale(scale)
    return figure


PLOTS: Final[Mapping[str, Callable[[Forecasts], Figure]]] = {
    "ingestion": ingestion,
    # How much traffic the bypass takes off the controllers (docs/simulate.md#what-it-shows).
    "controller-traffic": lambda forecasts: _figure(
        forecasts,
        "Controller traffic",
        "MB/s",
        lambda forecast: np.maximum(_smooth(forecast.controller) / 60e6, 1e-4),
        scale="log",
    ),
    "freshness": lambda forecasts: _figure(
        forecasts,
        "Freshness gap of the partition furthest behind",
        "seconds",
        lambda forecast: np.maximum(_peaks(forecast.worst_gap_s), 0.1),
        scale="log",
    ),
    "at-risk": lambda forecasts: _figure(
        forecasts, "Segments without a copy in the deep store", "segments", lambda forecast: forecast.at_risk
    ),
}


def _smooth(series: Series) -> Series:
    """Return means over ten minutes: otherwise each commit's bytes would be a needle in the plot."""
    width = min(10, len(series))
    padded = np.pad(series, (width // 2, width - 1 - width // 2), mode="edge")
    return np.convolve(padded, np.ones(width) / width, mode="valid")


def _peaks(series: Series) -> Series:
    """Return the largest value of ten minutes: many a minute has no commit."""
    around = np.lib.stride_tricks.sliding_window_view(np.pad(series, (5, 4)), 10)
    peaks: Series = around.max(axis=1)
    return peaks


def svg(figure: Figure) -> str:
    """Return the figure as SVG text, the same text for the same forecast."""
    text = StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def save(forecasts: Forecasts, folder: Path, suffix: str) -> list[Path]:
    """Write all plots as `<folder>/<name>.<suffix>`, where the suffix is svg or png.

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
