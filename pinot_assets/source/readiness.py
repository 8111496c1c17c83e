"""Decides which listed files are ready: an unfinished upload is neither published nor taken for a deletion.

A file is ready if it is old enough (`minFileAgeSec`) and its directory holds the completeness marker
(`completenessMarker`), each only if the table spec asks for it. A *new* file that is not ready is left out.
A file that the table already knows cannot be left out, because it would look deleted: then everything waits.
Pure: decides from values alone, in the same way for the sensor and for the trigger.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from pinot_assets.core.text import plural_are
from pinot_assets.snapshot.receipt import Fingerprint, SourceFile
from pinot_assets.source.listing import Inventory, narrowed


@dataclass(frozen=True, slots=True)
class Rules:
    """When a file is ready.

    :ivar min_age_s: seconds since its last modification; 0: any age.
    :ivar marker: name of the file that must lie in the same directory; None: no marker needed.
    """

    min_age_s: int = 0
    marker: str | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """Files that the table already knows.

    :ivar versions: for every such URI, the versions that need no more work: the published one, and those that
        a rollback holds back. Empty for a file that is planned and not yet published.
    :ivar removable: URIs whose disappearance would remove rows or planned work.
    """

    versions: Mapping[str, Collection[Fingerprint]] = field(default_factory=dict)
    removable: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Unready:
    """One file that is not ready. `why` is the end of a sentence."""

    uri: str
    why: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """A listing with the files that are ready and those that are not.

    :ivar listed: everything that was listed.
    :ivar counted: the listing to work with: without the new files that are not ready.
    :ivar later: new files that are not ready.
    :ivar waiting: known files that are being rewritten; if there is one, nothing may be done.
    """

    listed: Inventory
    counted: Inventory
    later: tuple[Unready, ...] = ()
    waiting: tuple[Unready, ...] = ()


def judge_readiness(inventory: Inventory, rules: Rules, known: Known) -> Readiness:
    """Sort a listing into files that count, new files that are not ready, and known files to wait for.

    A file's age is measured back from the start of the listing, by this machine's clock. A time up to
    `min_age_s` in the future counts as young, too. Further ahead a clock must be wrong: the file is ready.
    """
    unready = {u.uri: u for u in (_look(file, inventory, rules) for file in inventory.files.values()) if u}
    later, waiting = [], []
    for uri, each in sorted(unready.items()):
        if uri not in known.versions:
            later.append(each)
        elif inventory.files[uri].fingerprint not in known.versions[uri]:
            waiting.append(each)
    waiting += _vanished_from_unfinished(inventory, rules, known)
    absent = {u.uri for u in later}
    if absent == inventory.files.keys() and known.removable:
        # All known files are gone, and all present ones are being written: an upload, not a deletion.
        waiting += later
    return Readiness(inventory, narrowed(inventory, absent), tuple(later), tuple(waiting))


def unready_words(files: Sequence[Unready]) -> str:
    """Return `2 files are not ready (s3://in/a.csv is 12 s old, minFileAgeSec is 60)`: count, first, why."""
    first = files[0]
    count = plural_are(len(files), "file")
    return f"{count} not ready ({first.uri} {first.why})"


def _look(file: SourceFile, inventory: Inventory, rules: Rules) -> Unready | None:
    age_s = (inventory.listed_at_ms - file.fingerprint.mtime_us / 1000) / 1000
    if abs(age_s) < rules.min_age_s:
        age = f"is {age_s:.0f} s old" if age_s >= 0 else f"is dated {-age_s:.0f} s ahead of this clock"
        return Unready(file.uri, f"{age}, minFileAgeSec is {rules.min_age_s}")
    if rules.marker is not None and _folder(file.uri) not in inventory.complete:
        return Unready(file.uri, f"is in a directory without {rules.marker}")
    return None


def _vanished_from_unfinished(inventory: Inventory, rules: Rules, known: Known) -> list[Unready]:
    """Return the known files that are gone while their directory is being written again."""
    if rules.marker is None:
        return []
    unfinished = {_folder(uri) for uri in inventory.files} | inventory.being_written
    unfinished -= inventory.complete
    why = f"was deleted from a directory that has other files and no {rules.marker}"
    gone = known.removable - inventory.files.keys()
    return [Unready(uri, why) for uri in sorted(gone) if _folder(uri) in unfinished]


def _folder(uri: str) -> str:
    return uri.rpartition("/")[0]
