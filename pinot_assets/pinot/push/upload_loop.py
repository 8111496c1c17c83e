"""Uploads segments despite lost replies, broken connections and refusals; decides by what Pinot then shows.

A 200 means that Pinot wrote the ideal state. A lost answer means nothing. Pinot may refuse a name because an
earlier call, whose answer was lost, put it there (rule R8). Source: docs/design/push.md#responses, #batches,
#confirmation and #lost-replies; `SegmentPushUtils`.
"""

from __future__ import annotations

import operator
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from pinot_assets.core.files import temporary_folder
from pinot_assets.core.text import plural, plural_are
from pinot_assets.core.waiting import MONOTONIC, Deadline, in_threads, poll_until
from pinot_assets.errors import PinotError, PinotUnreachable, PushRefused, SnapshotCorrupt, SwitchStateUnknown
from pinot_assets.pinot.api import PinotClient, PushMode, PushReport, StagedObjects
from pinot_assets.pinot.client.http import CutOff, UploadFailed
from pinot_assets.pinot.lineage import Replicas
from pinot_assets.pinot.push.upload import Announced, Uploader, Uploads, batch_tar
from pinot_assets.snapshot.receipt import Output

THREADS = 4
# Number of threads that read small objects of the staging area.
READERS = 16
# How often we send one upload, as long as Pinot shows no sign that it received it. A controller that
# restarts is away for some 10 s.
ATTEMPTS = 6
PAUSE, LONGEST_PAUSE = 1.0, 5.0
# How long we wait for an upload to appear whose answer was lost, counted from its last sign of progress.
SETTLE_SECONDS = 5.0
# How long Pinot may be away before we can look for the upload at all.
AWAY_SECONDS = 30.0
POLL_SECONDS = 0.25
LEFTOVER_SECONDS = 10.0
"""A controller deletes leftovers of a failed upload, and deleted segments, after 2 s, then after 4 s more."""


def missing(pinot: PinotClient, table: str, outputs: Sequence[Output]) -> list[Output]:
    """Return the outputs that are not in the table yet.

    :raises PushRefused: the table has one of the names with another content.
    """
    there = pinot.all_segments(table)
    if there.isdisjoint(output.segment for output in outputs):
        # Then none has a CRC: `getSegmentsCrcForTable` asks for segments of the ideal state only, and takes a
        # second for some thousands.
        return [*outputs]
    crcs = pinot.segment_crcs(table)
    if other := [output for output in outputs if crcs.get(output.segment, output.crc) != output.crc]:
        first = other[0]
        raise PushRefused(
            f"table {table} already has {plural(len(other), 'segment')} with other content",
            why=f"{first.segment} has CRC {crcs[first.segment]} instead of {first.crc}",
            hint="names are never reused (rule R16): rename the tars, then push",
        )
    there &= crcs.keys()  # one without metadata is not whole
    return [output for output in outputs if output.segment not in there]


def await_no_partial_uploads(
    pinot: Uploads, table: str, outputs: Sequence[Output], before_write: Callable[[], None]
) -> None:
    """Wait until Pinot has cleaned up after failed uploads of these names; then leave what stays.

    A controller that was killed during an upload cleans nothing up. Up to 0.11 Pinot treats an upload that
    finds such metadata as a refresh: it refuses it, or accepts it and never assigns it to a server. So on
    those releases we delete it. Later releases start afresh, but a late clean-up deletes the new metadata,
    too. If a batch fails at one segment, the metadata of those before it stays.

    :param before_write: called before a deletion; it raises if the lease is no longer held.
    :raises PushRefused: the metadata is still there after the deletion.
    """
    names = {output.segment for output in outputs}
    if not _half_there(pinot, table, names):
        return
    left = _not_cleaned_up(pinot, table, names)  # all names: the clean-up of others may be due meanwhile
    if left and not pinot.takes_over_half_uploads():
        before_write()
        pinot.delete_segments(table, left)
        if left := _not_cleaned_up(pinot, table, left):
            raise PushRefused(
                f"table {table} has {plural(len(left), 'segment')} left half uploaded from an "
                "earlier attempt",
                why=f"{min(left)} has metadata and no place in the ideal state, and deleting it had "
                "no effect",
                hint="delete them in Pinot, then push again",
            )
    if not left:
        # Pinot deletes the metadata first, and a moment later the file of that name in the deep store.
        MONOTONIC.sleep(POLL_SECONDS)


def _not_cleaned_up(pinot: Uploads, table: str, names: Set[str]) -> Set[str]:
    """Return the names that are still half there after the wait."""
    deadline = Deadline(MONOTONIC, LEFTOVER_SECONDS)
    return poll_until(deadline, POLL_SECONDS, lambda: _half_there(pinot, table, names), operator.not_)


def _half_there(pinot: Uploads, table: str, names: Set[str]) -> Set[str]:
    return (pinot.registered_segments(table) - pinot.all_segments(table)) & names


class UploadLoop:
    """Uploads to one table in the best way that works: a batch, else one by one, else whole tars."""

    def __init__(
        self,
        pinot: Uploads,
        table: str,
        staged: StagedObjects,
        mode: PushMode | None,
        before_upload: Callable[[], None],
    ) -> None:
        self._pinot = pinot
        self._table = table
        self._staged = staged
        self._before_upload = before_upload
        self._mode = mode or PushMode.METADATA
        self._fallback: str | None = None
        self._calls = 0
        self._trial = mode is None
        self._batches: bool | None = None
        self._refused_batch: PinotError | None = None
        self._may_send_again = False
        self._unsure = False

    def run(self, outputs: Sequence[Output]) -> PushReport:
        """Push those that are not in the table yet; see `pinot_assets.pinot.api.PinotClient.push`."""
        started = time.monotonic()
        _check_names(outputs)
        if absent := missing(self._pinot, self._table, outputs):
            await_no_partial_uploads(self._pinot, self._table, absent, self._before_upload)
            self._push(absent)
        pushed = dict.fromkeys(output.segment for output in absent)
        return PushReport(
            pushed=tuple(pushed),
            skipped=tuple(output.segment for output in outputs if output.segment not in pushed),
            mode=self._mode if self._calls else None,
            fallback=self._fallback,
            calls=self._calls,
            seconds=time.monotonic() - started,
        )

    def _push(self, left: list[Output]) -> None:
        """Push until Pinot shows all of them."""
        while left:
            retrying = Retrying(
                retry=retry_if_exception(lambda e: isinstance(e, PinotUnreachable) or self._may_send_again),
                stop=stop_after_attempt(ATTEMPTS),
                wait=wait_random_exponential(multiplier=PAUSE, max=LONGEST_PAUSE),
                reraise=True,
            )
            left = retrying(self._step, left)

    def _step(self, left: list[Output]) -> list[Output]:
        """Push the first of these or all, and return those that are left. If the step before raised, first
        wait for Pinot's clean-up and read what arrived, because Pinot may have received the upload."""
        self._may_send_again = False
        if self._unsure:
            await_no_partial_uploads(self._pinot, self._table, left, self._before_upload)
            left = self._absent(left)
        self._unsure = True
        left = self._some(left) if left else left
        self._unsure = False
        return left

    def _some(self, left: list[Output]) -> list[Output]:
        group = left[:1] if self._trial else left
        batch = len(group) > 1 and self._mode is PushMode.METADATA and self._takes_batches()
        troubles = self._batch(group) if batch else self._each(group)
        unknown = any(isinstance(e, SwitchStateUnknown) for e in troubles.values())
        absent = self._settled(group, troubles) if unknown else self._absent(group)
        if absent:
            self._judge(absent, troubles, batch)
        else:
            self._trial = False
            if self._refused_batch is not None and self._mode is PushMode.METADATA:
                self._pinot.give_up_batches()
        return absent + left[len(group) :]

    def _takes_batches(self) -> bool:
        if self._batches is None:
            self._batches = self._pinot.takes_batches()
        return self._batches

    # --- upload --------------------------------------------------------------------------------------

    def _batch(self, outputs: Sequence[Output]) -> dict[str, PinotError]:
        """Announce all of them in one upload; return the errors by segment."""
        metadata = in_threads(
            lambda output: self._staged.read(output.metadata_uri), outputs, READERS, "metadata"
        )
        announced = [
            Announced(output.segment, tar, output.tar_uri)
            for output, tar in zip(outputs, metadata, strict=True)
        ]
        try:
            body = batch_tar(announced)
        except ValueError as error:
            refused = PushRefused("a batch cannot be made", why=str(error))
            return {output.segment: refused for output in outputs}
        uploader = self._pinot.uploader(self._table)
        self._before_upload()
        self._calls += 1
        try:
            uploader.batch(f"{self._table}-{len(outputs)}-segments", body)
        except PinotError as trouble:
            return {output.segment: trouble for output in outputs}
        return {}

    def _each(self, outputs: Sequence[Output]) -> dict[str, PinotError]:
        """Upload one by one, `THREADS` at a time, until one fails; return the errors by segment."""
        uploader = self._pinot.uploader(self._table)
        with ThreadPoolExecutor(min(THREADS, len(outputs)), "push") as pool:
            for start in range(0, len(outputs), THREADS):
                group = outputs[start : start + THREADS]
                with temporary_folder("push") as folder:
                    ready = list(pool.map(partial(self._ready, uploader, folder), group))
                    self._before_upload()
                    self._calls += len(group)
                    results = zip(group, pool.map(_trouble, ready), strict=True)
                    troubles = {output.segment: trouble for output, trouble in results if trouble is not None}
                if troubles:
                    return troubles
        return {}

    def _ready(self, uploader: Uploader, folder: Path, output: Output) -> Callable[[], None]:
        """Return the upload with its data already read. To fetch a tar may take long, and no time may pass
        between the check of the lease and the upload that it allows (rule R2)."""
        if self._mode is PushMode.METADATA:
            metadata = self._staged.read(output.metadata_uri)
            return lambda: uploader.metadata(output.segment, metadata, output.tar_uri)
        tar = folder / output.segment
        try:
            self._staged.fetch_tar(output, tar)
        except SnapshotCorrupt as corrupt:
            raise PushRefused(corrupt.what, why=corrupt.why, hint=corrupt.hint) from None
        return lambda: uploader.tar(output.segment, tar)

    # --- read what arrived ---------------------------------------------------------------------------

    def _absent(self, outputs: Sequence[Output]) -> list[Output]:
        crcs, ideal = self._pinot.segment_crcs(self._table), self._pinot.all_segments(self._table)
        return [o for o in outputs if o.segment not in ideal or crcs.get(o.segment) != o.crc]

    def _settled(self, outputs: Sequence[Output], troubles: Mapping[str, PinotError]) -> list[Output]:
        """Return those that are still absent after uploads without an answer had time to arrive.

        They may be sent again if their connection was cut off and Pinot shows nothing of them. If their
        metadata is there, or their answer is only late, Pinot may still work on them, and two uploads of one
        name at a time can undo each other.
        """
        deadline, before, absent = Deadline(MONOTONIC, AWAY_SECONDS), -1, list(outputs)

        def look() -> list[Output]:
            nonlocal before, absent
            self._may_send_again = False
            with suppress(PinotError):  # a failed read shows nothing about the segments
                absent = self._absent(outputs)
                lost = {o.segment: troubles[o.segment] for o in absent if o.segment in troubles}
                traces = len(lost.keys() & self._pinot.registered_segments(self._table))
                cut_off = all(
                    isinstance(e, CutOff) for e in lost.values() if isinstance(e, SwitchStateUnknown)
                )
                self._may_send_again = cut_off and not traces
                # Fewer are absent, or more have metadata: Pinot works on them.
                alive = len(outputs) - len(absent) + traces
                if alive > before:
                    before = alive
                    deadline.restart(SETTLE_SECONDS)
            return absent

        return poll_until(deadline, POLL_SECONDS, look, operator.not_)

    def _judge(self, absent: Sequence[Output], troubles: dict[str, PinotError], batch: bool) -> None:
        """Raise the error of an absent segment, or set up another way to push and return."""
        said = [troubles[o.segment] for o in absent if o.segment in troubles]
        if not said:
            if not troubles:
                raise PushRefused(
                    f"table {self._table} lacks {plural(len(absent), 'segment')} that Pinot accepted",
                    why=f"{min(o.segment for o in absent)} is not in the ideal state with its CRC",
                    hint="push again",
                )
            return  # those with an error are there after all; the absent ones were not begun
        # A lost call comes first: it may still arrive, so the refusal of another one can be wrong soon.
        trouble = min(said, key=lambda e: (not isinstance(e, SwitchStateUnknown), isinstance(e, PushRefused)))
        if isinstance(trouble, (SwitchStateUnknown, PinotUnreachable)):
            raise trouble
        if batch:
            self._batches, self._refused_batch = False, trouble
        elif self._trial and self._mode is PushMode.METADATA and isinstance(trouble, UploadFailed):
            self._mode, self._fallback = PushMode.TAR, trouble.why
        elif not isinstance(trouble, PushRefused):
            raise trouble
        elif self._mode is PushMode.TAR and self._fallback is not None:
            why = f"{trouble.why} (also as METADATA push: {self._fallback})"
            raise PushRefused(trouble.what, why=why, hint=trouble.hint)
        elif self._mode is PushMode.METADATA and isinstance(trouble, UploadFailed) and trouble.hint is None:
            hint = "Pinot itself has to copy from the staging area; push.mode: TAR sends whole tars instead"
            raise PushRefused(trouble.what, why=trouble.why, hint=hint)
        else:
            raise trouble
        await_no_partial_uploads(self._pinot, self._table, absent, self._before_upload)


def _check_names(outputs: Sequence[Output]) -> None:
    if twice := [name for name, count in Counter(output.segment for output in outputs).items() if count > 1]:
        raise ValueError(f"segments are named twice in one push: {sorted(twice)}")


def _trouble(upload: Callable[[], None]) -> PinotError | None:
    try:
        upload()
    except PinotError as trouble:
        return trouble
    return None


def wait_online(pinot: PinotClient, table: str, names: Collection[str], *, seconds: float) -> None:
    """Wait until every replica of every segment is ONLINE.

    :raises PinotError: a replica is in ERROR, or the time is over; the message names segment, server, state.
    """
    behind = poll_until(
        Deadline(MONOTONIC, seconds),
        POLL_SECONDS,
        lambda: _behind(pinot.online_replicas(table, names)),
        lambda behind: not behind or _broken(behind),
    )
    if not behind:
        return
    broken = _broken(behind)
    raise PinotError(
        f"{plural_are(len(broken or behind), 'replica')} "
        + ("in ERROR" if broken else f"not ONLINE after {seconds:g} s"),
        why="; ".join(f"{segment} on {server}: {state}" for segment, server, state in (broken or behind)[:5]),
        hint="the server's log shows why; `reset` the segment there, or build it again",
    )


def _behind(states: Replicas) -> list[tuple[str, str, str]]:
    """Return segment, server and state of each replica that is not ONLINE."""
    return [
        (segment, server, state)
        for segment, servers in states.items()
        for server, state in (servers.items() or [("any server", "not assigned")])
        if state != "ONLINE"
    ]


def _broken(behind: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    return [replica for replica in behind if replica[2] == "ERROR"]
