"""Decide what one tick of the files sensor does, from values alone.

A tick compares fingerprints and changes nothing; the run lists again and compares contents. The cursor keeps
the listing that was launched last, so that no tick launches it again at once. It is launched again after a
while, longer each time: the run may have ended without a trace (Pinot was away, the driver died), and its
files would wait until other files arrive. A different listing in between makes the cursor forget what was
launched. So a rewrite, its way back and the same rewrite again are three changes, not one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from pinot_assets.core.json_object import JsonValue
from pinot_assets.core.text import plural
from pinot_assets.core.waiting import doubled
from pinot_assets.scheduling.stored_cursor import StoredCursor
from pinot_assets.session.context.context import WRITER_VERSION
from pinot_assets.session.detect.listing import ListingCursor, listing_of
from pinot_assets.session.detect.observe import ListingComparison, Observation, compare_listing
from pinot_assets.session.values.state import Mode
from pinot_assets.session.values.trouble import again_ms, causes
from pinot_assets.session.values.waiting_files import why_files_wait
from pinot_assets.snapshot.manifest import sha256_hex
from pinot_assets.snapshot.receipt import BECAME_FOLDER
from pinot_assets.source import Inventory, unready_words
from pinot_assets.table_spec import TableSpec

FIRST_WAIT_S = 300
"""Seconds until a listing or a session whose launch had no effect is launched again; doubled each time. It is
longer than the time-outs of one run, so a restarting Pinot fails at most one or two runs."""
LONGEST_WAIT_S = 15 * 60
"""A run that ended without a trace mostly found Pinot, ZooKeeper or a store away. Once that is back, the
table should not wait for hours."""
SETTLED_S = 3600
"""Seconds for which a settled listing is not looked at again; Dagster's own records may change meanwhile."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a tick launches nothing.

    :ivar stays_behind: whether something failed, so that the table stays behind its files until they change,
        a person acts, or time passes.
    """

    text: str
    stays_behind: bool = False


@dataclass(frozen=True, slots=True)
class Tick:
    """What one tick of a sensor decided.

    :ivar launch: whether to start the job.
    :ivar message: why, for people.
    :ivar cursor: what the next tick starts from.
    :ivar dead_run: id of a run that is dead although Dagster believes that it is alive.
    """

    launch: bool
    message: str
    cursor: str
    dead_run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesTick(Tick):
    """What one tick of the files sensor decided.

    :ivar diff: the comparison of listing and ledger from which it decided.
    :ivar stays_behind: as `Reason.stays_behind`; False when the job is launched.
    """

    diff: ListingComparison
    stays_behind: bool = False


@dataclass(frozen=True, slots=True)
class FilesCursor(StoredCursor):
    """What the sensor remembers between its ticks. Times are seconds since the epoch.

    :ivar launched: digest of the files that counted at the last tick, whether they were launched or not.
    :ivar snapshot: key of the snapshot that was published then.
    :ivar at_s: when the sensor last launched the job for these files and this snapshot, 0 if it never did.
    :ivar times: how often it did so in a row; 0 again as soon as the files or the snapshot differ.
    :ivar listing: digest of everything listed at the last tick, ready or not.
    :ivar since_s: since when this digest is the same.
    :ivar quiet: what was listed last (as `listing_of` returns it), if it left nothing to wait for.
    :ivar quiet_s: time of that; where `quiet` is empty, since when every look has failed (`failing_s`). This
        is not a separate field because release 0.1.0 discards a cursor that has an unknown field.
    :ivar settled: `settlement` of a listing that was looked at to the end and left nothing to do.
    :ivar settled_s: time of that look.
    :ivar told: the message of that look.
    :ivar sweep: progress of a listing that takes several ticks, None between two listings.
    """

    what: ClassVar = "the cursor of the files sensor"

    launched: str = ""
    snapshot: str = ""
    at_s: int = 0
    times: int = 0
    listing: str = ""
    since_s: int = 0
    quiet: str = ""
    quiet_s: int = 0
    settled: str = ""
    settled_s: int = 0
    told: str = ""
    sweep: ListingCursor | None = None

    @classmethod
    def _values(cls, stored: JsonValue) -> JsonValue:
        if isinstance(stored, dict):  # an invalid bookmark only makes the listing start again
            stored["sweep"] = ListingCursor.read(stored.get("sweep"))
        return stored

    @property
    def wait_s(self) -> int:
        """Seconds after a launch until the same listing may be launched again."""
        return doubled(FIRST_WAIT_S, self.times, LONGEST_WAIT_S)

    def rests_s(self, spec: TableSpec, now_s: int) -> int:
        """Return the seconds left without a sweep where a queue reports changes; 0 or less when one is due.

        The last listing must have left nothing to wait for, and must have listed what the spec lists now.
        """
        is_quiet = self.sweep is None and self.quiet == listing_of(spec)
        return self.quiet_s + spec.ingestion.sweep_seconds - now_s if is_quiet else 0

    @property
    def restless(self) -> FilesCursor:
        """The cursor that makes the next tick sweep, whatever a queue reports, and look to the end."""
        return replace(self, quiet="", quiet_s=self.failing_s, settled="", settled_s=0, told="")

    def is_settled(self, settlement: str, now_s: int) -> bool:
        """Return whether a recent look at the same settlement went to the end and left nothing to do.

        :param settlement: as `settlement` returns it for the current listing.
        """
        return settlement == self.settled != "" and self.settled_s <= now_s < self.settled_s + SETTLED_S

    def not_launched(self, before: FilesCursor) -> FilesCursor:
        """Return the cursor after a tick whose launch failed: the next tick decides again.

        :param before: the cursor at the begin of the tick.
        """
        return replace(
            self, launched=before.launched, snapshot=before.snapshot, at_s=before.at_s, times=before.times
        )

    def listed_anew(self, spec: TableSpec, now_s: int) -> FilesCursor:
        """Return the cursor after a sweep that found the settled listing, which left nothing to wait for."""
        return replace(self, sweep=None, quiet=listing_of(spec), quiet_s=now_s)

    @property
    def failing_s(self) -> int:
        """Since when every look at the table has failed; 0 when the last one did not."""
        return 0 if self.quiet else self.quiet_s

    def fails(self, now_s: int) -> FilesCursor:
        """Return the cursor after a look that failed: the next tick looks again, whatever a queue reports."""
        began = self.failing_s if 0 < self.failing_s <= now_s else now_s
        return replace(self, quiet="", quiet_s=began)

    @property
    def works(self) -> FilesCursor:
        """The cursor after a look that did not fail."""
        return self if self.quiet else replace(self, quiet_s=0)

    def settles(self, settlement: str, message: str, now_s: int) -> FilesCursor:
        """Return the cursor after a look to the end; it is settled if the look left nothing to do."""
        if not self.quiet:
            return self
        return replace(self, settled=settlement, settled_s=now_s, told=message)

    def sees(self, diff: ListingComparison, snapshot: str, now_s: int) -> FilesCursor:
        """Return the cursor with what this tick saw, before the tick decides whether to launch."""
        cursor = self
        if diff.listing != self.listing:
            cursor = replace(cursor, listing=diff.listing, since_s=now_s)
        if (diff.digest, snapshot) != (self.launched, self.snapshot):
            cursor = replace(cursor, launched=diff.digest, snapshot=snapshot, at_s=0, times=0)
        return cursor


def settlement(spec: TableSpec, inventory: Inventory, published: str) -> str:
    """Return a hash of what a look depends on: a listing, what is published, and the spec's settings.

    :param published: `observe.published_token` of the table.
    :returns: 64 hex digits; empty where `published` is empty, as there is more to look at.
    """
    if not published:
        return ""
    said = (spec.name, spec.input_uri(), repr(spec.ingestion), WRITER_VERSION, inventory.digest, published)
    return sha256_hex("\n".join(said).encode())


def decide_tick(
    spec: TableSpec,
    inventory: Inventory,
    observation: Observation,
    cursor: str,
    now_s: int,
    differences: tuple[pa.Table, pa.Table] | None = None,
) -> FilesTick:
    """Decide one tick (docs/design/session.md#retries, rule R26).

    The sensor retries a session whose trouble passes by itself, later each time, whatever the listing is. The
    schedule or a person retries a session that failed otherwise. The sensor continues such a session only if
    the spec allows it (`sensorRetries`), and then only when something has changed for it.

    :param now_s: seconds since the epoch.
    :param differences: as `compare_listing` takes them.
    """
    diff = compare_listing(spec, inventory, observation, differences)
    snapshot = observation.pointer.current_snapshot
    last = replace(FilesCursor.read(cursor).works, sweep=None)
    last = last.sees(diff, snapshot.key if snapshot else "", now_s)
    reason = (
        _stays_out(spec, inventory, observation, diff)
        or _waits_for_others(spec, inventory, observation, diff, now_s)
        or _not_yet(spec, observation, diff, last, now_s)
    )
    later = f"; {unready_words(diff.later)}" if diff.later else ""
    last = last.restless
    if _leaves_nothing(spec, observation, diff):
        last = replace(last, quiet=listing_of(spec), quiet_s=now_s)
    if reason is not None:
        text = reason.text + later
        return FilesTick(False, text, last.text, diff=diff, stays_behind=reason.stays_behind)
    again = replace(last, at_s=now_s, times=last.times + 1)
    text = f"{diff}; launched{' again' if last.times else ''}{later}"
    return FilesTick(True, text, again.text, diff=diff)


def _leaves_nothing(spec: TableSpec, observation: Observation, diff: ListingComparison) -> bool:
    """Return whether there is no work and nothing that has to wait for its time."""
    if observation.session or observation.holder or observation.pointer.hold or diff.later or diff.waiting:
        return False
    return not (diff.new or diff.rewritten or (diff.deleted and spec.mode != "append"))


def _stays_out(
    spec: TableSpec, inventory: Inventory, observation: Observation, diff: ListingComparison
) -> Reason | None:
    """Return why there is nothing to launch, None when there may be something."""
    session, hold = observation.session, observation.hold
    if observation.holder is not None:
        what = f"session {session.id}" if session else "lease"
        return Reason(f"paused: {what} held by {observation.holder}")
    if spec.mode == "swap" and observation.pointer.hold is not None:
        text = f"held after a rollback until `pinot-assets resume {spec.name}`; {diff}"
        return Reason(text)
    if diff.waiting:
        return Reason(f"{diff}; waiting: {unready_words(diff.waiting)}")
    if session is None:
        # Append never takes rows away, so a deleted file is no work.
        if diff.new or diff.rewritten or (diff.deleted and spec.mode != "append") or diff.restored:
            return None
        if not hold.is_empty:
            kinds = (
                (len(hold.files), "file version"),
                (len(hold.removals), "removal"),
                (int(hold.rebuilds), "rebuild"),
                (int(hold.merges), "merge"),
            )
            held = " and ".join(plural(count, what) for count, what in kinds if count)
            return Reason(f"{held} held after a rollback until `pinot-assets resume {spec.name}`; {diff}")
        return Reason(f"{diff} of {plural(diff.listed, 'file')} listed")
    trouble = retry_reason(spec, observation)
    if trouble and not spec.ingestion.sensor_retries:
        return Reason(
            f"{session.id} {trouble} and waits for the schedule or a run by hand "
            f"(sensorRetries is off); {diff}",
            stays_behind=True,
        )
    if observation.failures and not observation.passing and not _failed_files_changed(inventory, observation):
        text = f"{session.id} waits for {plural(len(observation.failures), 'failed file')} to change; {diff}"
        return Reason(text, stays_behind=True)
    return None


def _waits_for_others(
    spec: TableSpec, inventory: Inventory, observation: Observation, diff: ListingComparison, now_s: int
) -> Reason | None:
    """Return why new files wait for others; None where a session is open, or other work is due."""
    replaces = spec.mode != "append" and (diff.deleted or diff.rewritten)
    if observation.session is not None or diff.restored or replaces:
        return None
    files = [inventory.files[uri] for uri in (*diff.new, *diff.rewritten)]
    why = why_files_wait(spec.layout.wait_for, files, now_s * 1000)
    return Reason(f"{diff}; {why}") if why else None


def _not_yet(
    spec: TableSpec, observation: Observation, diff: ListingComparison, last: FilesCursor, now_s: int
) -> Reason | None:
    """Return why the work is not launched at this tick, None when it is."""
    settling = last.since_s + spec.ingestion.settle_seconds - now_s
    if settling > 0:
        return Reason(f"{diff}; settling, {settling:,} s left")
    if last.times and audit_failed(observation):
        return Reason(f"{diff}; the audit of this listing failed, waiting for a change", stays_behind=True)
    session = observation.session
    left = last.at_s + last.wait_s - now_s if last.times else 0
    if session is not None and observation.passing:
        if last.at_s * 1000 <= session.attempt_started_ms:  # else that run died before it began an attempt
            left = again_ms(session) // 1000 - now_s
        if left > 0:
            cause = causes(observation.failures) or session.last_error
            text = f"{diff}; {session.id} has trouble that may pass ({cause}), tried again in {left:,} s"
            return Reason(text, stays_behind=True)
    if left > 0:
        return Reason(
            f"{diff}; a run of this listing was launched before, launched again in {left:,} s",
            stays_behind=True,
        )
    return None


def retry_reason(spec: TableSpec, observation: Observation) -> str:
    """Return why the next trigger would spend a retry of the open session or give it up; empty otherwise."""
    session = observation.session
    if session is None or session.mode is Mode.ROLLBACK:
        return ""
    if observation.failures and not observation.passing:
        return f"failed with {plural(len(observation.failures), 'file')}"
    if audit_failed(observation):
        return "failed its audit"
    if session.config_fingerprint != spec.config_fingerprint(WRITER_VERSION):
        return "was planned for another table spec"
    return ""


def audit_failed(observation: Observation) -> bool:
    """Return whether the session's audit failed for a reason that does not pass by itself."""
    session = observation.session
    failed = session is not None and session.audit is not None and not session.audit.passed
    return failed and not observation.passing


def _failed_files_changed(inventory: Inventory, observation: Observation) -> bool:
    """Return whether a failed file is gone, or is listed in another version than the one that failed.

    A file whose path became a folder is not listed while it fails. It has changed when it is listed again.
    """
    folders = {failure.uri for failure in observation.failures if failure.code == BECAME_FOLDER}

    def changed(uri: str, version: str) -> bool:
        listed = inventory.files.get(uri)
        if uri in folders:
            return listed is not None
        return listed is None or listed.fingerprint.token != version

    return any(changed(uri, version) for uri, version in observation.failed_versions.items())
