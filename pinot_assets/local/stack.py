"""Start, repair and stop the local stack.

`up` starts the parts that do not run, and does not touch those that run. Every part goes through the same
steps (ports, configuration, process, readiness). `StackPart.after` gives the order; parts start in parallel
where it allows that.
"""

from __future__ import annotations

import fcntl
import math
import operator
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from pinot_assets.core.this_machine import Java, find_java
from pinot_assets.core.waiting import MONOTONIC, Deadline, poll_until
from pinot_assets.errors import LocalStackError
from pinot_assets.local import apache, jars, parts, processes
from pinot_assets.local.cache import require_room
from pinot_assets.local.parts import Site, StackPart
from pinot_assets.local.pinot_build import PinotBuild
from pinot_assets.local.processes import forget_instance
from pinot_assets.settings.local_stack import (
    BROKERS,
    LOOPBACK,
    SERVERS,
    Record,
    StackState,
    load_record,
    reachable,
    save_record,
)

MINIMUM_FREE_BYTES = 500_000_000
"""Pinot accepts no segments on a full disk; logs and ZooKeeper's snapshots need room, too."""

_PATIENCE = 180.0  # seconds for one part to become ready; about 10 on an idle machine
_GRACE = 20.0  # seconds between SIGTERM and SIGKILL
_STOP_ORDER = (SERVERS, BROKERS, ("controller",), ("kafka", "s3"), ("zookeeper",))


@dataclass(frozen=True, slots=True)
class StartProgress:
    """Where the stack reports progress.

    :ivar doing: called often, with one line about the current work.
    :ivar done: called with one line about a completed step, which stays visible.
    """

    doing: Callable[[str], None] = lambda _: None
    done: Callable[[str], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class PartStatus:
    """The current status of one part.

    :ivar state: `ready`; `starting` if it runs but does not answer correctly yet; `dead` if it was started
        and has ended by itself; `stopped` if it was not started, or was stopped on purpose.
    :ivar missing: what it lacks to be ready, while it is starting.
    :ivar asked: whether `up` was asked for it: all of Pinot is, Kafka and S3 only by their options.
    """

    name: str
    state: Literal["ready", "starting", "dead", "stopped"]
    pid: int | None
    ports: dict[str, int]
    log: Path
    missing: str | None = None
    asked: bool = True


class Stack:
    """The local stack of one home folder.

    :param home: folder of `state.json`, `conf/`, `logs/` and `data/`.
    :param cache: folder of the jars, `default_cache()` if None.
    :param sites: where to fetch a release of Pinot; tests have one of their own.
    """

    def __init__(
        self,
        home: Path,
        *,
        cache: Path | None = None,
        progress: StartProgress | None = None,
        sites: Sequence[str] = apache.SITES,
    ) -> None:
        self.home = home.resolve()
        self._cache = cache
        self._sites = sites
        self._progress = progress or StartProgress()

    def up(
        self,
        kafka: bool = False,
        s3: bool = False,
        segment_store: bool = False,
        pinot: str | None = None,
    ) -> StackState:
        """Start the parts that do not run, and wait until all parts are ready.

        This also restarts parts, including optional ones, that an earlier `up` started and that died.

        :param segment_store: let the servers copy the segments that they commit into the deep store
            themselves, as bypass needs it. The setting stays until the data are deleted.
        :param pinot: the release of Pinot to start, fetched from Apache's sites. It stays until the data are
            deleted or another one is named. None: what `PINOT_HOME` names, else the release that was named
            last, else Maven's.
        :raises LocalStackError: a part cannot start; the started parts keep running and are recorded.
        """
        with self._locked():
            record = load_record(self.home) or Record()
            running = self._running(record)
            if pinot is not None:
                _choose_release(record, running, pinot)
            needed = [*parts.PINOT]
            needed += [parts.KAFKA] if kafka or "kafka" in record.processes else []
            needed += [parts.S3] if s3 or "s3" in record.processes else []
            if segment_store and not record.segment_store:
                if servers := [name for name in SERVERS if name in running]:
                    raise LocalStackError(
                        f"{' and '.join(servers)} run without a segment store",
                        why="a server reads its settings when it starts",
                        hint="stop the stack with `pinot-assets local down`, then start it with "
                        "--segment-store",
                    )
                record.segment_store = True
            to_start = [part for part in needed if part.name not in running]
            starter = self._starter(record, running, to_start) if to_start else None
            self._bring_up(record, needed, running, starter)
            save_record(self.home, record)  # also records a process that `find_marked` found
            return reachable(self.home, record)

    def status(self) -> list[PartStatus]:
        """Return the status of all parts, in starting order. Asks each running part; changes nothing."""
        record = load_record(self.home) or Record()
        running = self._running(record)
        return [self._status(part, record, running.get(part.name)) for part in parts.ALL]

    def down(self) -> None:
        """Stop the processes of this stack, ZooKeeper last, and no others."""
        if not self.home.is_dir():
            return
        with self._locked():
            if (record := load_record(self.home)) is not None:
                self._stop(record)

    def purge(self) -> None:
        """Stop the stack as `down` does, and delete its data, logs and ports."""
        self.down()
        # Only what the stack wrote, because `data/` also contains the input files of the sample.
        data = self.home / "data"
        of_parts = [data / part.name for part in parts.ALL]
        own = [self.home / name for name in ("conf", "logs", "tmp")]
        for folder in (*own, data / "controller-temp", *of_parts):
            shutil.rmtree(folder, ignore_errors=True)
        for file in ("state.json", ".state.new", "lock"):
            (self.home / file).unlink(missing_ok=True)
        for folder in (data, self.home):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    # --- what runs -------------------------------------------------------------------------------

    def _running(self, record: Record) -> dict[str, psutil.Process]:
        """Return the running parts; find and record those whose start could not be recorded."""
        running: dict[str, psutil.Process] = {}
        for part in parts.ALL:
            known = record.processes.get(part.name)
            process = processes.find(known) if known else None
            if process is None and (lost := processes.find_marked(_marker(record, part))):
                record.processes[part.name] = lost
                process = processes.find(lost)
            if process is not None:
                running[part.name] = process
        return running

    def _status(self, part: StackPart, record: Record, process: psutil.Process | None) -> PartStatus:
        log = self._log(part)
        own_ports = record.ports.get(part.name, {})
        if process is None:
            state: Literal["dead", "stopped"] = "dead" if part.name in record.processes else "stopped"
            asked = part in parts.PINOT or part.name in record.settled or state == "dead"
            return PartStatus(part.name, state, None, own_ports, log, asked=asked)
        missing = part.missing(Site(self.home, record, process.pid))
        return PartStatus(part.name, "starting" if missing else "ready", process.pid, own_ports, log, missing)

    # --- starting --------------------------------------------------------------------------------

    def _starter(
        self, record: Record, running: dict[str, psutil.Process], to_start: list[StackPart]
    ) -> Callable[[StackPart], None]:
        """Check and fetch everything that starting needs; return the function that starts one part."""
        java = find_java()
        self.home.mkdir(parents=True, exist_ok=True)
        require_room(self.home, MINIMUM_FREE_BYTES, "for the local stack", "PINOT_ASSETS_HOME")
        class_paths = {
            name: self._find_pinot(record, running, java).jars
            if name == "pinot"
            else jars.class_path(name, cache=self._cache, progress=self._progress.doing)
            for name in sorted({part.jars for part in to_start})
        }
        _assign_ports(record)
        for name, class_path in class_paths.items():
            file = self._class_path_file(name)  # an argument file keeps process lists readable
            file.parent.mkdir(parents=True, exist_ok=True)
            joined = ":".join(str(jar).replace("\\", "\\\\") for jar in class_path)
            file.write_text(f'-cp "{joined}"\n')
        save_record(self.home, record)
        return lambda part: self._start(part, record, java)

    def _find_pinot(self, record: Record, running: dict[str, psutil.Process], java: Java) -> PinotBuild:
        """Return the Pinot to start, and note in the record which one it is."""
        release = "" if os.environ.get("PINOT_HOME") else record.pinot_release
        if release and not jars.is_at_hand("pinot", release, cache=self._cache):
            self._progress.done(f"fetching Pinot {release} from Apache's sites (about 1 GB, once per user)")
        pinot = jars.find_pinot(release, cache=self._cache, progress=self._progress.doing, sites=self._sites)
        pinot.require(java)
        if record.pinot_version not in ("", pinot.version) and _runs_pinot(running):
            raise LocalStackError(
                f"the stack that runs here is Pinot {record.pinot_version}, not {pinot.version}",
                why="its dead parts cannot be repaired with another version",
                hint="stop it first with `pinot-assets local down`, or set PINOT_HOME as before",
            )
        record.pinot_version, record.pinot_release = pinot.version, release
        return pinot

    def _start(self, part: StackPart, record: Record, java: Java) -> None:
        self._check_ports(part, record)
        self._progress.doing(f"{part.name} starts")
        for folder in (self.home / "logs", self.home / "data" / part.name):
            folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self._temporary(part), ignore_errors=True)  # what a killed JVM left
        self._temporary(part).mkdir(parents=True)
        if part.jars == "pinot" and part.after and (dead := record.processes.get(part.name)):
            forget_instance(f"{LOOPBACK}:{record.ports['zookeeper']['client']}", dead.pid)
        command = [
            str(java.executable),
            _marker(record, part),
            f"@{self._class_path_file(part.jars)}",
            f"-XX:ErrorFile={self._log(part).with_suffix('.crash')}",
            # Not the machine's: nothing removes what a killed JVM leaves there (`.pinotAdminServer-….pid`).
            f"-Djava.io.tmpdir={self._temporary(part)}",
            *part.arguments(Site(self.home, record)),
        ]
        record.processes[part.name] = processes.spawn(command, self._log(part))
        save_record(self.home, record)

    def _check_ports(self, part: StackPart, record: Record) -> None:
        taken = [port for port in record.ports[part.name].values() if not processes.is_free_port(port)]
        if not taken:
            return
        if part.name in record.settled:
            raise LocalStackError(
                f"{processes.port_holder(taken[0])} uses port {taken[0]} of {part.name}",
                why="the stack's data need the same ports",
                hint="end that process, or start again with `pinot-assets local down --purge`",
            )
        del record.ports[part.name]
        _assign_ports(record)
        save_record(self.home, record)

    def _bring_up(
        self,
        record: Record,
        needed: list[StackPart],
        running: dict[str, psutil.Process],
        start: Callable[[StackPart], None] | None,
    ) -> None:
        deadlines = {part.name: Deadline(MONOTONIC, _PATIENCE) for part in needed if part.name in running}
        waiting, ready = list(needed), set[str]()

        def look() -> list[StackPart]:
            for part in list(waiting):
                if (deadline := deadlines.get(part.name)) is None:
                    if start is not None and ready.issuperset(part.after):
                        start(part)
                        deadlines[part.name] = Deadline(MONOTONIC, _PATIENCE)
                    continue
                if (missing := self._missing(part, record)) is None:
                    waiting.remove(part)
                    ready.add(part.name)
                    if part.name not in record.settled:
                        record.settled.add(part.name)
                        save_record(self.home, record)
                    if part.name not in running:
                        self._progress.done(f"{part.name} is ready ({deadline.waited:.1f} s)")
                elif deadline.is_over:
                    raise self._failed(part, f"it was not ready after {_PATIENCE:.0f} s: {missing}")
            if waiting:
                self._progress.doing("waiting for " + ", ".join(part.name for part in waiting))
            return waiting

        poll_until(Deadline(MONOTONIC, math.inf), 0.1, look, operator.not_)  # each part has its own deadline

    def _missing(self, part: StackPart, record: Record) -> str | None:
        if (process := processes.find(record.processes[part.name])) is None:
            raise self._failed(part, "its process ended")
        return part.missing(Site(self.home, record, process.pid))

    def _failed(self, part: StackPart, why: str) -> LocalStackError:
        log = self._log(part)
        return LocalStackError(
            f"{part.name} did not start",
            why=f"{why}. The end of its log:\n{processes.tail(log)}\n",
            hint=f"read {log}; then `pinot-assets local up` tries again, and `local down` stops the rest",
        )

    # --- stopping --------------------------------------------------------------------------------

    def _stop(self, record: Record) -> None:
        running = self._running(record)
        for names in _STOP_ORDER:
            if wave := [running[name] for name in names if name in running]:
                self._progress.doing("stopping " + ", ".join(name for name in names if name in running))
            killed = {process.pid for process in processes.stop_processes(wave, grace=_GRACE)}
            for name in names:
                record.processes.pop(name, None)
                if name in running:
                    how = "had to be killed" if running[name].pid in killed else "has stopped"
                    self._progress.done(f"{name} {how}")
            save_record(self.home, record)

    # --- files -----------------------------------------------------------------------------------

    def _log(self, part: StackPart) -> Path:
        return self.home / "logs" / f"{part.name}.log"

    def _temporary(self, part: StackPart) -> Path:
        return self.home / "tmp" / part.name

    def _class_path_file(self, name: str) -> Path:
        return self.home / "conf" / f"{name}.class-path"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Allow one `up` or `down` at a time per home; a second one waits and sees the first one's result."""
        try:
            self.home.mkdir(parents=True, exist_ok=True)
            with (self.home / "lock").open("w") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    self._progress.doing("another `local up` or `down` works here; waiting for it")
                    fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise LocalStackError(
                f"the stack's home {self.home} cannot be used",
                why=str(error),
                hint="free disk space and check its permissions, or set PINOT_ASSETS_HOME to another folder",
            ) from error


def _marker(record: Record, part: StackPart) -> str:
    return f"-Dpinot.assets.part={record.stack}/{part.name}"


def _runs_pinot(running: dict[str, psutil.Process]) -> bool:
    return any(part.name in running for part in parts.PINOT)


def _choose_release(record: Record, running: dict[str, psutil.Process], release: str) -> None:
    """Note in the record the release that the user names.

    :raises LocalStackError: it is no release, or another Pinot is named or runs.
    """
    apache.require_release(release)
    if home := os.environ.get("PINOT_HOME"):
        raise LocalStackError(
            f"--pinot {release} and PINOT_HOME name two Pinots",
            why=f"PINOT_HOME is {home}",
            hint="unset PINOT_HOME, or leave --pinot out",
        )
    if release != record.pinot_release and _runs_pinot(running):
        raise LocalStackError(
            f"the stack that runs here is Pinot {record.pinot_version}, and not of --pinot {release}",
            why="a running stack keeps its version",
            hint="stop it first with `pinot-assets local down`",
        )
    record.pinot_release = release


def _assign_ports(record: Record) -> None:
    """Assign a port to each purpose that has none, of all parts: Pinot's config has S3's port at once."""
    taken = {port for of_part in record.ports.values() for port in of_part.values()}
    for part in parts.ALL:
        of_part = record.ports.setdefault(part.name, {})
        for purpose in part.ports:
            if purpose not in of_part:
                of_part[purpose] = processes.free_port(taken)
                taken.add(of_part[purpose])
