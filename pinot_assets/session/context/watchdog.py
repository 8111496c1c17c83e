"""A driver that comes no further lets go of its table (rule R25).

ZooKeeper's heartbeat is another thread's work: a driver that hangs would hold its lease for ever. So a
watchdog is fed with every sign of progress (a note, a finished file, a file that its task has come further
with, a write to ZooKeeper or to Pinot).
Starved, it ends the ZooKeeper session, which frees the lease and makes every further write impossible, and
then the step: by an exception where the driver stands, or, where that does not get through, the process.
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
from pinot_assets.session.values.report import Progress
from pinot_assets.snapshot.receipt import Failure, Receipt

GRACE_S = 60.0
"""How long a driver has to end its step after it was told to: Spark cancels its job meanwhile."""

_LOG = logging.getLogger(__name__)


class Starved(BaseException):
    """Raised where the driver stands; no handler of errors on the way is to take it for one."""


def end_process(why: str) -> None:
    """The last resort: the process ends here, whatever its threads wait for."""
    sys.stderr.write(f"error: {why}\n")
    sys.stderr.flush()
    os._exit(1)


class Watchdog:
    """Watches one driver from its making until `stop`.

    :param waits: `stall` and `hold` count.
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
        """The driver came further."""
        self._fed = time.monotonic()

    def stop(self) -> None:
        """The driver let go by itself."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    @contextmanager
    def guard(self) -> Iterator[None]:
        """One step of the driver, in its own thread.

        :raises LeaseLost: the driver was starved and has let go of its table.
        """
        with self._changed:
            self._guarded = None if self._why else threading.get_ident()
        if self._guarded is None:
            raise self._lost()
        try:
            try:
                self.feed()  # what lay between two steps was not the driver's time
                yield
            finally:
                self._leave()
        except Starved:
            self._leave()  # it may have come on the way out
            raise self._lost() from None
        except Exception:
            raise
        except BaseException:
            self.stop()  # the process is going down, and its lease with it
            raise

    def _leave(self) -> None:
        with self._changed:
            raised, self._raised = self._raised, False
            self._guarded = None
            self._changed.notify_all()
        if raised:
            _receive()  # it may not be there yet, and must not come later

    def _lost(self) -> LeaseLost:
        return LeaseLost(self._why, hint="the next trigger goes on from what is stored")

    def _watch(self) -> None:
        with self._changed:
            while not self._stopped and (left := self._left()) > 0:
                self._changed.wait(left)
            if self._stopped:
                return
            self._why = self._verdict()
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
                f"this run made no progress for {seconds / 60:.3g} minutes and has let go of its table "
                "(where one step of a file may take so long, raise PINOT_ASSETS_STALL_MINUTES)"
            )
        return (
            f"this run has held its table for {self._waits.hold / 3600:.3g} hours and has let go of it "
            "(PINOT_ASSETS_HOLD_HOURS)"
        )


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Have a thread raise this at its next instruction."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


def _receive() -> None:
    """Use up what was sent to this thread, whether or not it has come.

    It cannot be taken back: that leaves CPython looking for an exception for ever, at every call, and up to
    3.11 a traced function (a debugger's, a coverage tool's) never begins then. So one more is sent, in the
    place of any that is still on its way, and waited for.
    """
    try:
        _raise_in(threading.get_ident(), Starved)
        while True:
            time.sleep(0)
    except Starved:
        pass


class Fed:
    """A progress whose every word feeds the watchdog."""

    def __init__(self, progress: Progress, watchdog: Watchdog) -> None:
        self._progress, self._watchdog = progress, watchdog

    def note(self, text: str) -> None:
        """One step, for people."""
        self._watchdog.feed()
        self._progress.note(text)

    def building(self, sizes: Mapping[int, int]) -> None:
        """Files are about to be built."""
        self._watchdog.feed()
        self._progress.building(sizes)

    def moving(self, rows: int) -> None:
        """Tasks came further."""
        self._watchdog.feed()
        self._progress.moving(rows)

    def built(self, outcome: Receipt | Failure) -> None:
        """One of them is through."""
        self._watchdog.feed()
        self._progress.built(outcome)
