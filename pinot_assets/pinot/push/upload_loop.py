"""Uploads that survive lost replies, broken connections and refusals, each judged by what Pinot shows then.

A 200 says that the ideal state was written, a lost answer says nothing, a refusal may be that of a name which
an earlier, lost call put there (rule R8). Source: docs/design/push.md#responses, #batches, #confirmation and
#lost-replies; `SegmentPushUtils`.
"""

from __future__ import annotations

import operator
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from pinot_assets.core.deadline import MONOTONIC, Deadline, poll_until
from pinot_assets.core.files import temporary_folder
from pinot_assets.core.text import plural
from pinot_assets.core.threads import in_threads
from pinot_assets.errors import (
    PinotError,
    PinotUnreachable,
    PushRefused,
    SnapshotCorrupt,
    SwitchStateUnknown,
)
from pinot_assets.pinot.api import PushMode, PushReport, StagedObjects
from pinot_assets.pinot.client.http import CutOff, UploadFailed
from pinot_assets.pinot.push.batch_body import Announced, batch_tar
from pinot_assets.pinot.push.confirmed import missing
from pinot_assets.pinot.push.partial_uploads import await_no_partial_uploads
from pinot_assets.pinot.push.upload import Uploader, Uploads
from pinot_assets.snapshot.receipt import Output

THREADS = 4
# Small objects of the staging area that are read at a time.
READERS = 16
# How often one upload is sent, as long as there is no sign that Pinot heard of it. A controller that starts
# anew is away for some 10 s.
ATTEMPTS = 6
PAUSE, LONGEST_PAUSE = 1.0, 5.0
# How long an upload whose answer was lost is given to show up, counted from its last sign of life.
SETTLE_SECONDS = 5.0
# How long Pinot may be away before it can be looked for at all.
AWAY_SECONDS = 30.0
POLL_SECONDS = 0.25


class UploadLoop:
    """Uploads to one table, in the best way that works: a batch, one by one, whole tars."""

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
        """Push what is not there yet of these; see `pinot_assets.pinot.api.PinotClient.push`."""
        started = time.monotonic()
        _check_names(outputs)
        absent = missing(self._pinot, self._table, outputs)
        if absent:
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
        """Returns when Pinot shows them."""
        while left:
            retrying = Retrying(
                retry=retry_if_exception(lambda e: isinstance(e, PinotUnreachable) or self._may_send_again),
                stop=stop_after_attempt(ATTEMPTS),
                wait=wait_random_exponential(multiplier=PAUSE, max=LONGEST_PAUSE),
                reraise=True,
            )
            left = retrying(self._step, left)

    def _step(self, left: list[Output]) -> list[Output]:
        """Push the first of these, or all; returns those that are left. After one that raised, Pinot is
        asked before anything is sent again, when it is done with what it may have heard after all."""
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
        """Announce them all in one upload; what went wrong, by name."""
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
            return self._all(outputs, PushRefused("a batch cannot be made", why=str(error)))
        uploader = self._pinot.uploader(self._table)
        self._before_upload()
        self._calls += 1
        try:
            uploader.batch(f"{self._table}-{len(outputs)}-segments", body)
        except PinotError as trouble:
            return self._all(outputs, trouble)
        return {}

    @staticmethod
    def _all(outputs: Sequence[Output], trouble: PinotError) -> dict[str, PinotError]:
        return {output.segment: trouble for output in outputs}

    def _each(self, outputs: Sequence[Output]) -> dict[str, PinotError]:
        """Upload one by one, a few at a time; after a trouble no other is begun. What went wrong, by name."""
        uploader = self._pinot.uploader(self._table)
        with ThreadPoolExecutor(min(THREADS, len(outputs)), "push") as pool:
            for start in range(0, len(outputs), THREADS):
                group = outputs[start : start + THREADS]
                with temporary_folder("push") as folder:
                    ready = list(pool.map(partial(self._ready, uploader, folder), group))
                    self._before_upload()
                    self._calls += len(group)
                    told = zip(group, pool.map(_trouble, ready), strict=True)
                    troubles = {output.segment: trouble for output, trouble in told if trouble is not None}
                if troubles:
                    return troubles
        return {}

    def _ready(self, uploader: Uploader, folder: Path, output: Output) -> Callable[[], None]:
        """The upload, with all that it sends at hand: to fetch a tar takes any time, and between a look at
        the lease and what it allows there must be none (rule R2)."""
        if self._mode is PushMode.METADATA:
            metadata = self._staged.read(output.metadata_uri)
            return lambda: uploader.metadata(output.segment, metadata, output.tar_uri)
        tar = folder / output.segment
        try:
            self._staged.fetch_tar(output, tar)
        except SnapshotCorrupt as corrupt:
            raise PushRefused(corrupt.what, why=corrupt.why, hint=corrupt.hint) from None
        return lambda: uploader.tar(output.segment, tar)

    # --- and look ------------------------------------------------------------------------------------

    def _absent(self, outputs: Sequence[Output]) -> list[Output]:
        crcs, ideal = self._pinot.segment_crcs(self._table), self._pinot.all_segments(self._table)
        return [o for o in outputs if o.segment not in ideal or crcs.get(o.segment) != o.crc]

    def _settled(self, outputs: Sequence[Output], troubles: Mapping[str, PinotError]) -> list[Output]:
        """Those that are not there once uploads without an answer had their time.

        They may be sent again when their connection was cut off and nothing of them is to be seen. As long
        as their metadata is, or their answer is only late, Pinot may be at work on them: two uploads of one
        name at a time can undo each other.
        """
        deadline, before, absent = Deadline(MONOTONIC, AWAY_SECONDS), -1, list(outputs)

        def look() -> list[Output]:
            nonlocal before, absent
            self._may_send_again = False
            with suppress(PinotError):  # what cannot be read is not known yet
                absent = self._absent(outputs)
                lost = {o.segment: troubles[o.segment] for o in absent if o.segment in troubles}
                traces = len(lost.keys() & self._pinot.registered_segments(self._table))
                cut_off = all(
                    isinstance(e, CutOff) for e in lost.values() if isinstance(e, SwitchStateUnknown)
                )
                self._may_send_again = cut_off and not traces
                # Fewer are absent, or more are begun: Pinot is at work.
                alive = len(outputs) - len(absent) + traces
                if alive > before:
                    before = alive
                    deadline.restart(SETTLE_SECONDS)
            return absent

        return poll_until(deadline, POLL_SECONDS, look, operator.not_)

    def _judge(self, absent: Sequence[Output], troubles: dict[str, PinotError], batch: bool) -> None:
        """Raise what was said of those that are not there; or return, with another way to try."""
        told = [troubles[o.segment] for o in absent if o.segment in troubles]
        if not told:
            if not troubles:
                self._raise_not_there(absent)
            return  # what was complained of is there: others were not begun
        # A lost call first: it may still land, so the refusal of another one is not the whole truth.
        trouble = min(told, key=lambda e: (not isinstance(e, SwitchStateUnknown), isinstance(e, PushRefused)))
        if isinstance(trouble, (SwitchStateUnknown, PinotUnreachable)):
            raise trouble
        if batch:
            self._batches, self._refused_batch = False, trouble
        elif self._trial and self._mode is PushMode.METADATA and isinstance(trouble, UploadFailed):
            self._mode, self._fallback = PushMode.TAR, trouble.why
        elif not isinstance(trouble, PushRefused):
            raise trouble
        elif self._mode is PushMode.TAR and self._fallback is not None:
            why = f"{trouble.why} (and as METADATA push: {self._fallback})"
            raise PushRefused(trouble.what, why=why, hint=trouble.hint)
        elif self._mode is PushMode.METADATA and isinstance(trouble, UploadFailed) and trouble.hint is None:
            hint = "Pinot has to copy from the staging area itself; push.mode: TAR sends whole tars instead"
            raise PushRefused(trouble.what, why=trouble.why, hint=hint)
        else:
            raise trouble
        await_no_partial_uploads(self._pinot, self._table, absent, self._before_upload)

    def _raise_not_there(self, absent: Sequence[Output]) -> None:
        raise PushRefused(
            f"accepted but not there: {plural(len(absent), 'segment')} of table {self._table}",
            why=f"{min(o.segment for o in absent)} is not in the ideal state with its CRC",
            hint="push again",
        )


def _check_names(outputs: Sequence[Output]) -> None:
    twice = [name for name, count in Counter(output.segment for output in outputs).items() if count > 1]
    if twice:
        raise ValueError(f"segments named twice in one push: {sorted(twice)}")


def _trouble(upload: Callable[[], None]) -> PinotError | None:
    try:
        upload()
    except PinotError as trouble:
        return trouble
    return None
