"""Driver processes: forked, killed, frozen, woken."""

from __future__ import annotations

import os
import signal
from multiprocessing.connection import wait as wait_for

import psutil
from crash.driver import Answer, Order, drive
from fakes.processes.forked import context
from fakes.waiting import until

LONGEST_RUN_S = 120.0


class Running:
    """One driver process."""

    def __init__(self, order: Order) -> None:
        self._answer, self._its = context.Pipe(duplex=False)
        self.process = context.Process(target=drive, args=(order, self._its), daemon=True)
        self._killed = False

    def start(self) -> None:
        """Fork it."""
        self.process.start()
        self._its.close()

    def kill(self) -> None:
        """SIGKILL; returns when it has ended."""
        self._killed = True
        os.kill(self._pid, signal.SIGKILL)
        # Not `join`: that takes the exit code, which the thread in `wait` is to get.
        wait_for([self.process.sentinel], 30)

    def freeze(self) -> None:
        """SIGSTOP; returns when it stands still."""
        os.kill(self._pid, signal.SIGSTOP)
        until(lambda: psutil.Process(self._pid).status() == psutil.STATUS_STOPPED)

    def wake(self) -> None:
        """SIGCONT."""
        os.kill(self._pid, signal.SIGCONT)

    def wait(self) -> Answer:
        """How it ends."""
        with self._answer:
            self.process.join(LONGEST_RUN_S)
            if self.process.is_alive():
                self.kill()
                return Answer("STUCK", f"after {LONGEST_RUN_S:.0f} s")
            try:
                answer: Answer = self._answer.recv()
                return answer
            except EOFError:
                return Answer("KILLED" if self._killed else f"exit {self.process.exitcode}")

    @property
    def _pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid
