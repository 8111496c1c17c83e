"""Evaluates a simulated day minute by minute: rows read, freshness, traffic, segments at risk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pinot_assets.sizing.load import HOLD_MS, Load, UploadWay
from pinot_assets.sizing.profile import (
    COMMIT_END,
    COMMIT_START,
    CONSUMED,
    LISTED_BYTES,
    message_bytes,
    node_bytes,
    placement_bytes,
    tasks_bytes_per_s,
    transition_bytes,
)
from pinot_assets.sizing.sizing import Commit, Day, simulate

MINUTE: Final = 60.0
Series = NDArray[np.float64]


@dataclass(frozen=True)
class SimulatedDay:
    """The day of one upload way. Each series has one value for each minute.

    :ivar rows_per_s: rows read, over all partitions.
    :ivar worst_gap_s: age of the newest row of the partition that is furthest behind.
    :ivar mean_gap_s: the same, as the mean over all partitions.
    :ivar uploads: bytes of tars through controllers.
    :ivar retries: bytes of tars through controllers that the store did not take.
    :ivar messages: bytes of the protocol's messages.
    :ivar metadata: bytes that controllers exchange with ZooKeeper for commits, and the deep store's listings.
    :ivar tasks: bytes that the controllers' periodic tasks read, the same for every upload way.
    :ivar at_risk: committed segments that only servers have, at the end of the minute.
    :ivar back_fill_s: from the store's return until it has the last missing copy; None if none was missing.
    """

    way: UploadWay
    load: Load
    commits: int
    rows_per_s: Series
    worst_gap_s: Series
    mean_gap_s: Series
    uploads: Series
    retries: Series
    messages: Series
    metadata: Series
    tasks: Series
    at_risk: Series
    back_fill_s: float | None

    @property
    def controller(self) -> Series:
        """All bytes that controllers exchange over the network."""
        return self.uploads + self.retries + self.messages + self.metadata + self.tasks

    @property
    def outage(self) -> slice:
        """The minutes of the outage."""
        return slice(int(self.load.outage_at_s / MINUTE), ceil(self.load.outage_ends_s / MINUTE))

    @property
    def ingest_ratio(self) -> float:
        """Rows read during the outage over rows read before, per second; 1.0 is unaffected."""
        during = self.rows_per_s[self.outage]
        before = self.rows_per_s[: self.outage.start]
        return float(during.mean() / before.mean()) if during.size and before.size else 1.0


def simulate_day(load: Load, way: UploadWay) -> SimulatedDay:
    """Simulate a day and evaluate it."""
    day = simulate(load, way)
    bins = ceil(load.for_s / MINUTE)
    rows, behind = _rows(load, day, bins)
    late = [c.stored_s for c in day.commits if load.outage_s and load.is_down(c.done_s)]
    kept = [stored for stored in late if stored != inf]
    tars = 2 if way is UploadWay.CONTROLLER else 0
    return SimulatedDay(
        way=way,
        load=load,
        commits=len(day.commits),
        rows_per_s=rows,
        worst_gap_s=_worst_gap(load, day, bins),
        mean_gap_s=behind / load.messages_per_s,
        uploads=_each(day, bins, lambda commit: tars * load.tar_bytes(commit.rows)),
        retries=_retries(load, way, day, bins),
        messages=_messages(load, day, bins),
        metadata=_metadata(load, way, day, bins),
        tasks=np.full(bins, load.tables * tasks_bytes_per_s(_kept(load, day), load.replication) * MINUTE),
        at_risk=_at_risk(day, bins),
        back_fill_s=max(kept) - load.outage_ends_s if kept and max(kept) > load.outage_ends_s else None,
    )


def traffic_ratio(through: SimulatedDay, past: SimulatedDay) -> float:
    """Return the controller bytes of one day divided by those of another, without uploads in vain."""
    return float((through.controller - through.retries).sum() / (past.controller - past.retries).sum())


def _rows(load: Load, day: Day, bins: int) -> tuple[Series, Series]:
    """Return the rows read per second in each minute, and the rows that wait at its end."""
    at, by = np.asarray(day.rate_at), np.asarray(day.rate_by)
    order = np.argsort(at, kind="stable")
    at, rate = at[order], np.cumsum(by[order])
    read = np.concatenate(([0.0], np.cumsum(rate[:-1] * np.diff(at))))
    edges = np.arange(bins + 1) * MINUTE
    total = np.interp(edges, at, read)
    beyond = edges > at[-1]
    total[beyond] = read[-1] + rate[-1] * (edges[beyond] - at[-1])
    return np.diff(total) / MINUTE, np.maximum(0.0, load.messages_per_s * edges - total)[1:]


def _each(day: Day, bins: int, amount: Callable[[Commit], float]) -> Series:
    """Return the sum of the commits' amounts for each minute, by the minute in which a commit was done."""
    series = np.zeros(bins)
    for commit in day.commits:
        if 0 <= commit.done_s < bins * MINUTE:
            series[int(commit.done_s / MINUTE)] += amount(commit)
    return series


def _retries(load: Load, way: UploadWay, day: Day, bins: int) -> Series:
    """Return the bytes in vain: while the store is down, servers send each tar again as fast as possible."""
    series = np.zeros(bins)
    if way is not UploadWay.CONTROLLER or not load.outage_s:
        return series
    for commit in day.commits:
        if not commit.blocked_s:
            continue
        tar = load.tar_bytes(commit.rows)
        every = (
            HOLD_MS / 1000
            + load.gives_up_after_s
            + tar / min(load.store_bytes_per_s, load.controller_bytes_per_s)
        )
        first = int((load.outage_ends_s - commit.blocked_s) / MINUTE)
        series[first : int(load.outage_ends_s / MINUTE)] += tar * MINUTE / every
    most: Series = np.minimum(series, load.controllers * load.controller_bytes_per_s * MINUTE)
    return most


def _messages(load: Load, day: Day, bins: int) -> Series:
    """Return the bytes of the winners' messages, and of waiting replicas that ask every three seconds."""
    consumed = message_bytes(CONSUMED)
    fixed = consumed + message_bytes(COMMIT_START) + message_bytes(COMMIT_END) + load.commit.metadata_bytes

    def amount(commit: Commit) -> float:
        polls = 1 + (commit.ready_s - commit.full_s) // (HOLD_MS / 1000)
        return fixed + (load.replication - 1) * polls * consumed

    return _each(day, bins, amount)


def _kept(load: Load, day: Day) -> int:
    """Return how many segments a table has in the long run."""
    rows = sum(commit.rows for commit in day.commits) / max(1, len(day.commits))
    return round(load.partitions * max(1.0, load.kept_s * load.rows_per_s / max(rows, 1.0)))


def _metadata(load: Load, way: UploadWay, day: Day, bins: int) -> Series:
    """Return the bytes of metadata. A commit reads the ideal state twice and writes it; Helix reads it and
    writes the external view, twice each. A replica makes two transitions. A moved tar needs one listing.
    """
    segments = _kept(load, day)
    of_server = segments * -(-load.partitions * load.replication // load.servers) // load.partitions
    nodes = 3 if way is UploadWay.PAUSELESS else 2
    fixed = 6.0 * placement_bytes(segments, load.replication) + nodes * node_bytes()
    fixed += 2 * load.replication * transition_bytes(of_server)
    listing = segments * LISTED_BYTES
    return _each(day, bins, lambda commit: fixed + listing * (commit.stored_s <= commit.done_s))


def _at_risk(day: Day, bins: int) -> Series:
    changes = np.zeros(bins + 1)
    for commit in day.commits:
        if commit.stored_s > commit.done_s:
            changes[min(bins, int(commit.done_s / MINUTE))] += 1
            changes[min(bins, int(min(commit.stored_s, bins * MINUTE) / MINUTE))] -= 1
    return np.cumsum(changes)[:bins]


def _worst_gap(load: Load, day: Day, bins: int) -> Series:
    """Return the largest gap: a partition's gap grows while it is not read, and falls while it catches up."""
    series = np.zeros(bins)
    falls = load.read_rows_per_s / load.rows_per_s - 1
    for commit in day.commits:
        first, last = int(commit.full_s / MINUTE), int(commit.ready_s / MINUTE)
        before = commit.behind_s - (commit.ready_s - commit.full_s)
        for minute in range(first, min(last, bins)):
            series[minute] = max(series[minute], before + (minute + 1) * MINUTE - commit.full_s)
        gap, minute = commit.behind_s, last
        while gap > 0 and minute < bins:
            series[minute] = max(series[minute], gap)
            gap = commit.behind_s - falls * ((minute + 1) * MINUTE - commit.ready_s)
            minute += 1
    return series
