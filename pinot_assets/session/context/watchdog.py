"""Take the lease from a driver that makes no progress (rule R25).

Another thread sends ZooKeeper's heartbeats, so a driver that hangs would hold its lease for ever. Therefore
every sign of progress feeds a watchdog: a note, a finished file, progress of a build task in a file, a write
to ZooKeeper or to Pinot.
Without food, the watchdog ends the ZooKeeper session: that frees the lease and makes every later write
impossible. Then it raises an exception in the driver's thread; if the step does not end, it ends the process.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pinot_assets.core.connections import Waits
from pinot_assets.errors import LeaseLost
from pinot_assets.session.values.progress import Progress, RunPhase
from pinot_assets.snapshot.receipt import Failure, Receipt

GRACE_S = 60.0
"""Seconds that a driver has to end its step after the exception; Spark cancels its job meanwhile."""

_LOG = logging.getLogger(__name__)


class Starved(BaseException):
    """Raised in the driver's thread. It is no `Exception`, so that no error handler catches it."""


def end_process(why: str) -> None:
    """End the process at once, whatever its threads wait for: the last resort."""
    sys.stderr.write(f"error: {why}\n")
    sys.stderr.flush()
    os._exit(1)


class Watchdog:
    """Watches one driver from its creation until `stop`.

    :param waits: the watchdog uses `stall` and `hold`.
    :param let_go: ends the ZooKeeper session; may raise, and must not hang.
    :param end: called when the driver is still in its step `grace` seconds later.
    """

    def __init__(
        self,
        waits: Waits,
        let_go: Callable[[], None],
        end: Callable[[str], None] = end_process,
        grace: float = GRACE_S,
    ) -> None:
        self._waits, self._let_go, self._end, self._grace = waits, let_go, end, grace
        self._since = self._fed = time.monotonic()
        self._changed = threading.Condition()
        self._guarded: int | None = None
        self._raised = False
        self._stopped = False
        self._why = ""
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def feed(self) -> None:
        """Record progress of the driver."""
        self._fed = time.monotonic()

    def end_step(self, why: str) -> None:
        """End the driver's step now, as if it had made no progress for too long.

        :param why: what the step's error says.
        """
        with self._changed:
            self._why = self._why or why
            self._changed.notify_all()

    def stop(self) -> None:
        """End the watch: the driver has released the lease itself."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Guard one step of the driver, in the thread that runs it.

        :raises LeaseLost: the watchdog took the lease from this driver.
        """
        with self._changed:
            self._guarded = None if self._why else threading.get_ident()
        if self._guarded is None:
            raise self._lost()
        try:
            try:
                self.feed()  # the time between two steps does not count
                yield
            finally:
                self._leave()
        except Starved:
            self._leave()  # `Starved` may have interrupted the `finally`
            raise self._lost() from None
        except Exception:
            raise
        except BaseException:
            self.stop()  # the process is ending, and its lease with it
            raise

    def _leave(self) -> None:
        with self._changed:
            raised, self._raised = self._raised, False
            self._guarded = None
            self._changed.notify_all()
        if raised:
            _receive()  # `Starved` may not have arrived, and must not do so later

    def _lost(self) -> LeaseLost:
        return LeaseLost(self._why, hint="the next trigger continues from what is stored")

    def _watch(self) -> None:
        with self._changed:
            while not self._stopped and not self._why and (left := self._left()) > 0:
                self._changed.wait(left)
            if self._stopped:
                return
            self._why = self._why or self._verdict()
        _LOG.error("%s", self._why)
        try:
            self._let_go()
        except Exception:
            _LOG.exception("the ZooKeeper session could not be ended; it ends with the process")
        with self._changed:
            if self._guarded is not None:
                self._raised = True
                _raise_in(self._guarded, Starved)
            ended = self._changed.wait_for(lambda: self._guarded is None or self._stopped, self._grace)
        if not ended:
            self._end(self._why)

    def _left(self) -> float:
        now = time.monotonic()
        return min(self._fed + self._waits.stall, self._since + self._waits.hold) - now

    def _verdict(self) -> str:
        seconds = time.monotonic() - self._fed
        if seconds >= self._waits.stall:
            return (
                f"this run made no progress for {seconds / 60:.3g} minutes and has released the "
                "lease of its table (if one step of a file may take so long, raise "
                "PINOT_ASSETS_STALL_MINUTES)"
            )
        return (
            f"this run has held the lease of its table for {self._waits.hold / 3600:.3g} hours "
            "and has released it (PINOT_ASSETS_HOLD_HOURS)"
        )


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Make a thread raise this error at its next instruction."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


def _receive() -> None:
    """Consume the exception that was sent to this thread, whether or not it has arrived.

    It cannot be withdrawn: after that, CPython looks for an exception at every call for ever, and up to 3.11
    a traced function (of a debugger or a coverage tool) never starts. So this sends one more exception, which
    replaces any that has not arrived, and waits for it.
    """
    try:
        _raise_in(threading.get_ident(), Starved)
        while True:
            time.sleep(0)
    except Starved:
        pass


class Fed:
    """A progress that feeds watches with every call and passes the call on.

    :param feed: called first.
    """

    def __init__(self, progress: Progress, feed: Callable[[], None]) -> None:
        self._progress, self._feed = progress, feed

    def note(self, text: str) -> None:
        """One step, for people."""
        self._feed()
        self._progress.note(text)

    def begin(self, phase: RunPhase, total: int = 0) -> None:
        """A phase begins."""
        self._feed()
        self._progress.begin(phase, total)

    def advance(self, done: int) -> None:
        """So many things of the phase are done."""
        self._feed()
        self._progress.advance(done)

    def rest(self) -> None:
        """No phase is under way."""
        self._progress.rest()

    def building(self, sizes: Mapping[int, int]) -> None:
        """Files are about to be built."""
        self._feed()
        self._progress.building(sizes)

    def moving(self, rows: int) -> None:
        """Build tasks made progress."""
        self._feed()
        self._progress.moving(rows)

    def built(self, outcome: Receipt | Failure) -> None:
        """One file is finished: built or failed."""
        self._feed()
        self._progress.built(outcome)
