"""Staged segments into Pinot, confirmed by reading.

A 200 says that the ideal state was written, a lost answer says nothing, a refusal may be that of a name which
an earlier, lost call put there. So every upload is judged by what Pinot shows afterwards: name in the ideal
state and CRC as built (rule R8). Source: spec/push.md sections 1 to 4, `SegmentPushUtils`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from pinot_assets.errors import PinotError, PushRefused, SwitchStateUnknown
from pinot_assets.pinot.http import UploadFailed
from pinot_assets.pinot.port import Pinot, PushMode, PushReport, ReadObject
from pinot_assets.session.receipt import Output

THREADS = 4
# A controller up to 0.11 removes what a failed upload left behind after 2 s, then after 4 s more.
LEFTOVER_SECONDS = 10.0
# How long an upload whose answer was lost is given to show up.
SETTLE_SECONDS = 5.0
POLL_SECONDS = 0.25


class Uploads(Protocol):
    """The calls that a push is made of (`pinot_assets.pinot.controller.Controller`)."""

    def all_segments(self, table: str) -> frozenset[str]:
        """Names in the ideal state."""
        ...

    def registered_segments(self, table: str) -> frozenset[str]:
        """Names in the ideal state and left-overs of failed uploads."""
        ...

    def segment_crcs(self, table: str) -> dict[str, int]:
        """CRC by name."""
        ...

    def upload_metadata(self, table: str, segment: str, metadata_tar: bytes, download_uri: str) -> None:
        """METADATA push."""
        ...

    def upload_tar(self, table: str, segment: str, tar: bytes) -> None:
        """Tar push."""
        ...


def push_segments(
    pinot: Uploads,
    table: str,
    outputs: Sequence[Output],
    *,
    read: ReadObject,
    mode: PushMode | None = None,
) -> PushReport:
    """Upload what is not there yet and confirm it; see `pinot_assets.pinot.port.Pinot.push`."""
    started = time.monotonic()
    _check_names(outputs)
    missing, skipped = _missing(pinot, table, outputs)
    _await_no_leftovers(pinot, table, missing)
    push = _Push(pinot, table, read)
    fallback = None
    if mode is None:
        mode = PushMode.METADATA
        if missing:
            mode, fallback = push.trial(missing[0])
            push.confirm()
    while rest := [output for output in missing if output.segment not in push.begun]:
        push.some(rest, mode)
        push.confirm()
    return PushReport(
        pushed=tuple(output.segment for output in missing),
        skipped=tuple(skipped),
        mode=mode,
        fallback=fallback,
        seconds=time.monotonic() - started,
    )


def wait_online(pinot: Pinot, table: str, names: Collection[str], *, seconds: float) -> None:
    """Wait until every replica of every segment is ONLINE.

    :raises PinotError: a replica is in ERROR, or the time is over; names segment, server and state.
    """
    until = time.monotonic() + seconds
    while True:
        states = pinot.online_replicas(table, names)
        behind = [
            (segment, server, state)
            for segment, servers in states.items()
            for server, state in (servers.items() or [("any server", "not assigned")])
            if state != "ONLINE"
        ]
        if not behind:
            return
        broken = [item for item in behind if item[2] == "ERROR"]
        if broken or time.monotonic() >= until:
            told = "; ".join(
                f"{segment} on {server}: {state}" for segment, server, state in (broken or behind)[:5]
            )
            raise PinotError(
                f"{len(broken or behind)} replicas are "
                + ("in ERROR" if broken else f"not ONLINE after {seconds:g} s"),
                why=told,
                hint="the server's log says why; `reset` the segment there, or build it anew",
            )
        time.sleep(POLL_SECONDS)


class _Push:
    """Uploads to one table.

    :ivar begun: what was uploaded, or tried, by name.
    :ivar troubles: what was said about uploads that `confirm` has not looked at yet.
    """

    def __init__(self, pinot: Uploads, table: str, read: ReadObject) -> None:
        self._pinot = pinot
        self._table = table
        self._read = read
        self.begun: dict[str, Output] = {}
        self.troubles: dict[str, PushRefused | SwitchStateUnknown] = {}

    def trial(self, output: Output) -> tuple[PushMode, str | None]:
        """Push one segment in the mode that works; returns the mode and why it is not METADATA."""
        self.begun[output.segment] = output
        try:
            self._pinot.upload_metadata(
                self._table, output.segment, self._read(output.metadata_uri), output.tar_uri
            )
        except UploadFailed as failure:
            _await_no_leftovers(self._pinot, self._table, [output])
            self._one(output, PushMode.TAR)
            refusal = self.troubles.get(output.segment)
            if isinstance(refusal, PushRefused):
                why = f"{refusal.why} (and as METADATA push: {failure.why})"
                self.troubles[output.segment] = PushRefused(refusal.what, why=why, hint=refusal.hint)
            return PushMode.TAR, failure.why
        except (PushRefused, SwitchStateUnknown) as trouble:
            self.troubles[output.segment] = trouble
        return PushMode.METADATA, None

    def some(self, outputs: Sequence[Output], mode: PushMode) -> None:
        """Push these, a few at a time; after a trouble no other is begun."""
        with ThreadPoolExecutor(min(THREADS, len(outputs)), "push") as pool:
            # list() for the exceptions that are not about Pinot (an unreadable staging area).
            list(pool.map(lambda output: self._one(output, mode), outputs))

    def confirm(self) -> None:
        """Compare what was begun with what Pinot shows; what was said about an upload counts only if the
        segment is not there."""
        unknown = [e for e in self.troubles.values() if isinstance(e, SwitchStateUnknown)]
        until = time.monotonic() + (SETTLE_SECONDS if unknown else 0.0)
        while (absent := self._absent()) and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
        told = [error for segment, error in self.troubles.items() if segment in absent]
        # A lost call first: it may still land, so the refusal of another one is not the whole truth.
        for error in sorted(told, key=lambda error: isinstance(error, PushRefused)):
            raise error
        if absent:
            raise PushRefused(
                f"{len(absent)} segments of table {self._table} were accepted but are not there",
                why=f"{min(absent)} is not in the ideal state with its CRC",
                hint="push again",
            )
        self.troubles.clear()

    def _absent(self) -> set[str]:
        crcs, ideal = self._pinot.segment_crcs(self._table), self._pinot.all_segments(self._table)
        return {name for name, o in self.begun.items() if name not in ideal or crcs.get(name) != o.crc}

    def _one(self, output: Output, mode: PushMode) -> None:
        if self.troubles:
            return
        self.begun[output.segment] = output
        try:
            if mode is PushMode.METADATA:
                metadata = self._read(output.metadata_uri)
                self._pinot.upload_metadata(self._table, output.segment, metadata, output.tar_uri)
            else:
                self._pinot.upload_tar(self._table, output.segment, self._read(output.tar_uri))
        except UploadFailed as failure:
            hint = "Pinot has to copy from the staging area itself; push.mode: TAR sends whole tars instead"
            copying = mode is PushMode.METADATA and failure.hint is None
            self.troubles[output.segment] = (
                PushRefused(failure.what, why=failure.why, hint=hint) if copying else failure
            )
        except (PushRefused, SwitchStateUnknown) as trouble:
            self.troubles[output.segment] = trouble


def _check_names(outputs: Sequence[Output]) -> None:
    twice = [name for name, count in Counter(output.segment for output in outputs).items() if count > 1]
    if twice:
        raise ValueError(f"segments named twice in one push: {sorted(twice)}")


def _missing(pinot: Uploads, table: str, outputs: Sequence[Output]) -> tuple[list[Output], list[str]]:
    crcs = pinot.segment_crcs(table)
    other = [output for output in outputs if crcs.get(output.segment, output.crc) != output.crc]
    if other:
        first = other[0]
        raise PushRefused(
            f"{len(other)} segments of table {table} are there already with another content",
            why=f"{first.segment} has CRC {crcs[first.segment]}, built was {first.crc}",
            hint="names are never reused (rule R16): rename the tars, then push",
        )
    missing = [output for output in outputs if output.segment not in crcs]
    return missing, [output.segment for output in outputs if output.segment in crcs]


def _await_no_leftovers(pinot: Uploads, table: str, outputs: Sequence[Output]) -> None:
    """Up to 0.11 a failed upload leaves its metadata for some seconds; an upload that meets it is taken for a
    refresh: refused, or accepted and never assigned to a server."""
    names = {output.segment for output in outputs}
    started = time.monotonic()
    waited = False
    while names and (left := (pinot.registered_segments(table) - pinot.all_segments(table)) & names):
        if time.monotonic() - started >= LEFTOVER_SECONDS:
            raise PushRefused(
                f"{len(left)} segments of table {table} are half there from an earlier upload",
                why=f"{min(left)} has metadata and no place in the ideal state",
                hint="delete them in Pinot, then push again",
            )
        time.sleep(POLL_SECONDS)
        waited = True
    if waited:
        # Pinot removes the metadata first and the file of that name in the deep store a moment later.
        time.sleep(POLL_SECONDS)
