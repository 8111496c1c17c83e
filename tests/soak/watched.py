"""The watch as a service: started again where it ends or does not recover, helped where the docs say so."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil
from soak.table import MARK, TABLE, SoakTable

BY_HAND: Final = "a run by hand"
"""What the watch says of a session that only a run by hand brings further."""
BUSY: Final = ("new", "runs", "error")
"""States of a table at which the watch does not only wait for its next look; see `Watched.state`."""
SPARK: Final = "org.apache.spark.deploy.SparkSubmit"
"""In the command line of Spark's JVM, and of no other Java process."""
FAILED_RUNS: Final = 3
"""So many runs in a row without its Spark's JVM, and the watch does not recover from losing that."""

Tell = Callable[[str], None]


class Watched:
    """`pinot-assets watch`, supervised.

    :ivar state: what it said last of the table, and its message: `new` if it said nothing yet, `runs` during
        a run of its own, `error` after a look or a run that failed.
    :ivar runs_by_hand: how many, of those that a person owes the table.
    :ivar problems: what a watch should not have needed, among it to be restarted or helped.
    """

    def __init__(self, table: SoakTable, tell: Tell) -> None:
        self._table, self._tell = table, tell
        self._process: subprocess.Popen[str] | None = None
        self._by_hand: subprocess.Popen[str] | None = None
        self._since = time.monotonic()
        self._failed, self._lost_jvm = 0, False
        self._heard = False
        self._log = (table.home / "watch.log").open("a")
        self.state, self.message = "new", ""
        self.runs_by_hand = 0
        self.problems: list[str] = []

    # --- the process -------------------------------------------------------------------------------

    def start(self) -> None:
        """Start it."""
        self._process = self._table.start("watch", TABLE, "--json", "--tables", "tables")
        self._come_to("new", "")
        self._failed, self._lost_jvm = 0, False
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()
        self._tell(f"watch starts as process {self._process.pid}")

    def stop(self) -> None:
        """As a service manager does: SIGTERM, which ends it after what is under way, later SIGKILL."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            code = self._process.wait(300)
            if code not in (0, 143):  # it may be told to end while it is loaded
                self.problems.append(f"the watch ended with {code} on SIGTERM")
        except subprocess.TimeoutExpired:
            self.problems.append("the watch did not end within 5 minutes of SIGTERM")
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """SIGKILL; it is started again at once."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self.start()

    def kill_jvm(self, jvm: psutil.Process) -> None:
        """SIGKILL to that of its Spark; what fails from now on is told apart from what failed before."""
        jvm.kill()
        self._failed, self._lost_jvm = 0, True

    @property
    def process(self) -> psutil.Process | None:
        """The process, None where it does not run."""
        if self._process is None or self._process.poll() is not None:
            return None
        return psutil.Process(self._process.pid)

    @property
    def jvm(self) -> psutil.Process | None:
        """That of its Spark."""
        try:
            children = self.process.children() if self.process else []
            return next((child for child in children if SPARK in child.cmdline()), None)
        except psutil.NoSuchProcess:
            return None

    @property
    def family(self) -> list[psutil.Process]:
        """The process and all that it started."""
        try:
            return [self.process, *self.process.children(recursive=True)] if self.process else []
        except psutil.NoSuchProcess:
            return []

    @property
    def runs_s(self) -> float:
        """For how long a run has been under way; below 0 where none is."""
        return time.monotonic() - self._since if self.state == "runs" else -1.0

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._log.write(line)
            self._log.flush()
            if line.startswith("{") and process is self._process:
                report, self._heard = json.loads(line), True
                own = report["state"] == "running" and report["nextLookAt"] is None
                state = "error" if report["failingSince"] else "runs" if own else report["state"]
                self._come_to(state, report["message"])

    def _come_to(self, state: str, message: str) -> None:
        if (state, message) == (self.state, self.message):
            return
        if state != "new" and ("runs" in (state, self.state) or state in ("error", "failed")):
            self._tell(f"watch: {state}: {' '.join(message.split())[:300]}")
        if self.state == "runs" and (state != "error" or "Spark" in message):
            # A run that ended at a store or a controller, which die here, too, says nothing of the JVM.
            self._failed = self._failed + 1 if state == "error" else 0
        if state != self.state:
            self._since = time.monotonic()
        self.state, self.message = state, message

    # --- who looks after it ------------------------------------------------------------------------

    def look_after(self, *, repaired: bool, owed: bool) -> None:
        """Start it again if it has ended; restart it if it does not recover; run the table where it asks so.

        :param repaired: whoever looks after the files has repaired them.
        :param owed: a file was emptied, which shuts the gate until a person has looked. All else that happens
            here passes by itself, so that a run by hand is a problem.
        """
        if self._process is not None and (code := self._process.poll()) is not None:
            self.problems.append(f"the watch ended by itself with {code}: see {self._log.name}")
            self._tell(f"watch ended by itself with exit code {code}")
            self.start()
        if self._lost_jvm and self._failed >= FAILED_RUNS and not self.jvm:
            self.problems.append(f"the watch did not recover from the loss of its JVM: {self.message[:300]}")
            self._tell(f"watch has not recovered from the loss of its JVM, it is restarted: {self.message}")
            self.stop()
            self.start()
        if self._by_hand is not None:
            if self._by_hand.poll() is not None:
                said = self._by_hand.stdout.read() if self._by_hand.stdout else ""
                self._log.write(said)
                last = (said.strip().splitlines() or [""])[-1]
                self._tell(f"run by hand ended with {self._by_hand.returncode}: {last[:200]}")
                self._by_hand, self._heard = None, False
        elif repaired and self._heard and BY_HAND in self.message:
            if owed:
                self.runs_by_hand += 1
            else:
                self.problems.append(f"the watch asks for a run by hand: {self.message[:300]}")
            self._tell(f"run by hand, as the watch asks: {self.message[:200]}")
            self._by_hand = self._table.start("run", TABLE, "--tables", "tables")

    @property
    def is_calm(self) -> bool:
        """Whether nothing is under way."""
        return self.state not in BUSY and self._by_hand is None


def marked(home: Path) -> list[psutil.Process]:
    """The processes that the product's commands of this soak started, themselves included."""
    processes = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(home) and process.status() != psutil.STATUS_ZOMBIE:
                processes.append(process)
        except psutil.Error:
            continue
    return processes
