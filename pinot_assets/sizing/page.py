"""The forecast as words and as one HTML page that needs no other file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from typing import Final

from pinot_assets.sizing.forecast import SimulatedDay, traffic_ratio
from pinot_assets.sizing.load import Load, UploadWay
from pinot_assets.sizing.plots import PLOTS, Forecasts, svg
from pinot_assets.sizing.quantities import of_bytes, of_seconds
from pinot_assets.sizing.sizing import ASSUMES

BUSY: Final = 0.7
"""Share of the servers' build slots above which builds queue up now and then."""

COLUMNS: Final = ("", *(way.value for way in UploadWay))


def rows(forecasts: Forecasts) -> list[tuple[str, ...]]:
    """The figures of all ways side by side; one line each, its name first."""
    lines = [
        ("commits", *_each(forecasts, lambda f: f"{f.commits:,}")),
        ("controller bytes", *_each(forecasts, lambda f: of_bytes(float(f.controller.sum())))),
        ("  of these tars", *_each(forecasts, lambda f: of_bytes(float(f.uploads.sum())))),
        ("  of these in vain", *_each(forecasts, lambda f: of_bytes(float(f.retries.sum())))),
        ("  of these messages", *_each(forecasts, lambda f: of_bytes(float(f.messages.sum())))),
        ("  of these metadata", *_each(forecasts, lambda f: of_bytes(float(f.metadata.sum())))),
        ("  of these periodic tasks", *_each(forecasts, lambda f: of_bytes(float(f.tasks.sum())))),
        ("freshness gap, worst", *_each(forecasts, lambda f: of_seconds(float(f.worst_gap_s.max())))),
        ("freshness gap, mean", *_each(forecasts, lambda f: of_seconds(float(f.mean_gap_s.mean())))),
    ]
    if next(iter(forecasts.values())).load.outage_s:
        lines += [
            ("ingestion in the outage", *_each(forecasts, lambda f: f"{f.ingest_ratio:.1%}")),
            ("segments at risk, most", *_each(forecasts, lambda f: f"{f.at_risk.max():,.0f}")),
            ("back-fill", *_each(forecasts, _back_fill)),
        ]
    return lines


def _each(forecasts: Forecasts, tell: Callable[[SimulatedDay], str]) -> Iterator[str]:
    return (tell(forecast) for forecast in forecasts.values())


def _back_fill(forecast: SimulatedDay) -> str:
    return "nothing to fill" if forecast.back_fill_s is None else of_seconds(forecast.back_fill_s)


def last_line(forecasts: Forecasts) -> str:
    """The figure to take away."""
    ratio = traffic_ratio(forecasts[UploadWay.CONTROLLER], forecasts[UploadWay.BYPASS])
    return f"controller traffic ratio (upload through controller / bypass): {ratio:,.0f}"


def values(forecasts: Forecasts) -> dict[str, object]:
    """The figures for other programs; bytes and seconds."""
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
    """Where the cluster is not up to what the simulation assumes."""
    found = []
    for way, forecast in forecasts.items():
        load = forecast.load
        rows_built = load.messages_per_s * load.for_s * load.replication
        busy = load.build_s(rows_built) / (load.servers * load.build_slots * load.for_s)
        if busy > BUSY and way is UploadWay.BYPASS:
            found.append(
                f"servers build {busy:.0%} of the time in all of their {load.build_slots} slots: commits "
                "would queue up, which is not simulated; give more servers"
            )
        if way is UploadWay.PAUSELESS and _late(forecast):
            found.append(
                "a pauseless commit takes longer than 300 s here, so every segment stays COMMITTING until it "
                "is repaired (apache/pinot#17936): take smaller segments"
            )
    return found


def _late(forecast: SimulatedDay) -> bool:
    load = forecast.load
    rows_of_one = load.messages_per_s * load.for_s / max(1, forecast.commits)
    return load.build_s(rows_of_one) + load.tar_bytes(rows_of_one) / load.store_bytes_per_s > 300


def described(load: Load) -> str:
    """What was simulated, in one sentence."""
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
    """One page with everything: plots, figures, warnings and what is assumed."""
    load = next(iter(forecasts.values())).load
    head = "".join(f"<th>{escape(column)}</th>" for column in COLUMNS)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in rows(forecasts)
    )
    pictures = "".join(f"<figure>{_inline(svg(draw(forecasts)))}</figure>" for draw in PLOTS.values())
    notes = "".join(f"<li>{escape(text)}</li>" for text in ASSUMES)
    doubts = "".join(f"<p class=warning>{escape(text)}</p>" for text in warnings(forecasts))
    return _PAGE.format(
        described=escape(described(load)),
        head=head,
        body=body,
        pictures=pictures,
        notes=notes,
        doubts=doubts,
        last=escape(last_line(forecasts)),
    )


def _inline(text: str) -> str:
    """Without the XML declaration, which has no place inside HTML."""
    return text[text.index("<svg") :]


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
