"""Decide from values alone whether an open session makes no progress, and whether to launch a run for it.

The files sensor starts a table's job when files have changed. This sensor is for an open session that no run
works on. It continues a session whose driver died, and one whose trouble passes by itself; neither spends a
retry. It leaves a session that failed otherwise to the schedule and to people
(docs/design/session.md#retries, rule R26).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from pinot_assets.core.waiting import doubled
from pinot_assets.scheduling.files_tick import FIRST_WAIT_S, LONGEST_WAIT_S, Tick, audit_failed, retry_reason
from pinot_assets.scheduling.stored_cursor import StoredCursor
from pinot_assets.session.detect.observe import Observation
from pinot_assets.session.values.state import Mode, Session, utc_text
from pinot_assets.session.values.trouble import again_ms, since_ms
from pinot_assets.table_spec import TableSpec

PATIENCE_S = 60
"""Seconds without progress after which the sensor continues a session: Dagster's own retry comes first."""
DEAD_S = 120
"""Seconds that a run which Dagster shows as started may lack the lease that it held, until it counts as dead.
A living run holds the lease until its last work (W6, the end of Spark) is done."""


@dataclass(frozen=True, slots=True)
class StallCursor(StoredCursor):
    """What the session sensor remembers between its ticks. Times are seconds since the epoch.

    :ivar epoch: of the lease's last owner; a different one means that some driver held the lease since.
    :ivar since_s: when the lease of that owner was first seen to be free, 0 while it is held.
    :ivar progress: `_progress` of the session at the last launch.
    :ivar launched_s: time of that launch.
    :ivar times: launches in a row without progress.
    """

    what: ClassVar = "the cursor of the session sensor"

    epoch: int = -1
    since_s: int = 0
    progress: str = ""
    launched_s: int = 0
    times: int = 0

    def at(self, epoch: int, now_s: int) -> StallCursor:
        """Return the cursor for a free lease; `since_s` is kept if this epoch was seen free before."""
        return self if self.since_s and self.epoch == epoch else replace(self, epoch=epoch, since_s=now_s)

    def due_s(self, progress: str) -> int:
        """Return the time, in seconds since the epoch, from which on the session may be launched."""
        due = self.since_s + PATIENCE_S
        if progress != self.progress:
            return due
        wait = doubled(FIRST_WAIT_S, self.times, LONGEST_WAIT_S)
        return max(due, self.launched_s + wait)


def decide_session(
    spec: TableSpec, observation: Observation, running: Mapping[str, str], cursor: str, now_s: int
) -> Tick:
    """Decide one tick of the session sensor.

    :param running: status of each run of the table that has not ended, by id; `STARTED` while it works.
    :param now_s: seconds since the epoch.
    """
    watch, session = StallCursor.read(cursor), observation.session
    if observation.holder is not None:
        what = f"session {session.id}" if session else spec.name
        return Tick(False, f"paused: {what} held by {observation.holder}", replace(watch, since_s=0).text)
    watch = watch.at(observation.pointer.epoch, now_s)
    if running:
        return _beside(running, observation, watch, now_s)
    if session is None:
        return Tick(False, "no session is open", watch.text)
    if reason := _waits(spec, session, observation):
        return Tick(False, f"session {session.id} {reason}", watch.text)
    return _try_again(session, watch, now_s) if observation.passing else _go_on(session, watch, now_s)


def _beside(running: Mapping[str, str], observation: Observation, watch: StallCursor, now_s: int) -> Tick:
    """Decide a tick with unfinished runs while the lease is free: one of them may have died unseen.

    An owner that releases the lease removes its name from the pointer; one that died leaves it there. The
    run of a dead owner can change nothing (rule R2), but it keeps other runs of the table from starting.
    """
    owner = observation.pointer.owner
    for run_id, status in running.items():
        if owner is None or run_id != owner.run or status != "STARTED":
            continue
        gone = f"run {run_id} lost its lease ({owner}) and has not ended since {_utc(watch.since_s)}"
        if now_s - watch.since_s < DEAD_S:
            return Tick(False, f"{gone}; it has {DEAD_S} s to end", watch.text)
        return Tick(False, f"{gone}: marked as failed", watch.text, dead_run=run_id)
    run_id, status = next(iter(running.items()))
    return Tick(False, f"paused: run {run_id} is {status.lower().replace('_', ' ')}", watch.text)


def _waits(spec: TableSpec, session: Session, observation: Observation) -> str:
    """Return why this sensor must not continue the session; empty when it may."""
    if session.mode is Mode.ROLLBACK:
        return ""
    if spec.mode == "swap" and observation.pointer.hold is not None:
        return f"is held after a rollback until `pinot-assets resume {spec.name}`"
    trouble = retry_reason(spec, observation)
    if trouble and not spec.ingestion.sensor_retries:
        return f"{trouble} and waits for the schedule or a run by hand (sensorRetries is off)"
    if observation.failures and not observation.passing:
        return f"{trouble} and waits for a change of what failed"
    return f"{trouble} and waits for a change of its files" if audit_failed(observation) else ""


def _try_again(session: Session, watch: StallCursor, now_s: int) -> Tick:
    """Decide on a session whose trouble may pass. The files sensor comes first: it sees other files, too."""
    what = f"session {session.id} has had trouble that may pass since {utc_text(since_ms(session))}"
    progress = _progress(session)
    due_s = again_ms(session) // 1000 + PATIENCE_S
    if watch.launched_s * 1000 > session.attempt_started_ms:  # that run died before it began an attempt
        due_s = max(due_s, watch.due_s(progress))
    if due_s > now_s:
        return Tick(False, f"{what}; tried again in {due_s - now_s} s", watch.text)
    times = watch.times + 1 if progress == watch.progress else 1
    launched = replace(watch, progress=progress, launched_s=now_s, times=times)
    return Tick(True, f"{what}: tried again", launched.text)


def _go_on(session: Session, watch: StallCursor, now_s: int) -> Tick:
    what = f"session {session.id} ({session.state}, attempt {session.attempt})"
    what += f" has made no progress since {_utc(watch.since_s)}"
    progress = _progress(session)
    left = watch.due_s(progress) - now_s
    if left > 0:
        return Tick(False, f"{what}; a run is launched in {left} s unless one takes it", watch.text)
    times = watch.times + 1 if progress == watch.progress else 1
    again = f" again, number {times} without progress" if times > 1 else ""
    launched = replace(watch, progress=progress, launched_s=now_s, times=times)
    return Tick(True, f"{what}: launched{again}", launched.text)


def _progress(session: Session) -> str:
    """Return a text that changes when a run got further; `attempt` is left out, as every run increases it."""
    done = session.counts.get("done", 0)
    parts = (session.id, session.state, done, session.switch, session.lineage_entry_id, session.end_issued)
    return " ".join(map(str, parts))


def _utc(seconds: int) -> str:
    return utc_text(seconds * 1000)
