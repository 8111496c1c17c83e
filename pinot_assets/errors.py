"""Every error of this project, in one tree.

An error says what happened, why, and what to do next. The class tells a caller how to react:
`SwitchConflict` may be tried again after a fresh look, `SwitchStateUnknown` must be looked up first.
"""

from __future__ import annotations

from pinot_assets.printable import visible


class PinotAssetsError(Exception):
    """Base of all errors raised on purpose.

    :param what: what happened, one sentence without a final full stop.
    :param why: the reason, where one is known.
    :param hint: what to do next.
    """

    def __init__(self, what: str, *, why: str | None = None, hint: str | None = None) -> None:
        # What a controller, a file name or a stored object says must not steer the terminal that shows it.
        self.what = visible(what)
        self.why = None if why is None else visible(why)
        self.hint = None if hint is None else visible(hint)
        super().__init__(self.what)

    @property
    def reason(self) -> str:
        """What happened and why, in one line; without the hint."""
        return f"{self.what}: {self.why}" if self.why else self.what

    @property
    def in_one_line(self) -> str:
        """What happened, why, and what to do next."""
        return self.reason if self.hint is None else f"{self.reason} → {self.hint}"

    def __str__(self) -> str:
        return self.reason if self.hint is None else f"{self.reason}\n  → {self.hint}"

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders (Spark's workers), keyword arguments included.
        return (_rebuild, (type(self), self.what, self.why, self.hint))


def _rebuild(cls: type[PinotAssetsError], what: str, why: str | None, hint: str | None) -> PinotAssetsError:
    error = cls.__new__(cls)
    PinotAssetsError.__init__(error, what, why=why, hint=hint)
    return error


# --- what the user wrote -------------------------------------------------------------------------


class SpecError(PinotAssetsError):
    """A table spec is wrong; the text lists every problem of every file."""


class SpecDrift(PinotAssetsError):
    """Pinot's schema or table config is not what the table spec says."""


class UnsupportedFeature(PinotAssetsError):
    """The segment writer cannot do what schema or table config ask for; names column and feature."""


# --- the source ----------------------------------------------------------------------------------


class SourceError(PinotAssetsError):
    """The input directory or the staging area could not be used."""


class SettingError(SourceError):
    """A setting of the place is wrong, missing or refused: no later try is another one until it is mended."""


class ListingFailed(SourceError):
    """A listing did not complete. It is never treated as an empty one (invariant I12)."""


class SourceChanged(SourceError):
    """A file changed while it was read, or after the plan was made."""


class StoreConflict(SourceError):
    """Another object with other content already stands at that name (rule R13)."""


class TooLarge(SourceError):
    """An object is larger than what is read of its kind (`pinot_assets/core/untrusted.py`)."""


class StreamUnreadable(SourceError):
    """What a stream holds could not be read beside Pinot."""


# --- building ------------------------------------------------------------------------------------


class BuildError(PinotAssetsError):
    """A file could not be turned into a segment."""


# --- Pinot ---------------------------------------------------------------------------------------


class TypedWrong(PinotAssetsError):
    """The command itself cannot be understood: exit code 2, as for all that is typed wrong."""


class PinotError(PinotAssetsError):
    """Pinot refused a call."""


class PinotUnreachable(PinotError):
    """No connection could be made for this call, so it was not sent; or a read got no answer.

    Calls before it may have had their effects: what breaks off says so (`pinot_assets.core.effects`)."""


class PinotNotFound(PinotError):
    """The table, segment or schema does not exist."""


class PushRefused(PinotError):
    """An upload was refused (quota, time range, malformed segment, unreachable download URI)."""


class SwitchConflict(PinotError):
    """A lineage call was refused because of what the lineage holds now: look again, then retry."""


class SwitchStateUnknown(PinotError):
    """A lineage call may or may not have happened: read the lineage before doing anything else."""


class SnapshotIncomplete(PinotAssetsError):
    """The gate stays shut: not every file is built, or the audit has not passed for this switch."""


# --- REALTIME tables ------------------------------------------------------------------------------


class PreflightRefused(PinotAssetsError):
    """A REALTIME table is not changed: the text lists every rule that refuses, and its fix."""


# --- the session ---------------------------------------------------------------------------------


class SessionError(PinotAssetsError):
    """The stored session does not allow what was asked."""


class NodeUnreadable(SessionError):
    """A node in ZooKeeper holds something else than it should; names the node."""


class SessionHeld(SessionError):
    """Another run holds the table's lease."""


class LeaseLost(SessionError):
    """This run no longer holds the table's lease and must not change anything any more."""


class NeedsNewerRelease(SessionError):
    """Something stored was written for a newer release, whose format this one does not know."""


class SnapshotCorrupt(SessionError):
    """The snapshot object that the pointer names is missing or does not match its hash (rule R18)."""


class PlanOutdated(SessionError):
    """A run was to do what a plan showed, and would do something else by now; nothing was done."""


class RollbackRefused(SessionError):
    """There is no safe way back from here; says why."""


# --- the local stack -----------------------------------------------------------------------------


class LocalStackError(PinotAssetsError):
    """The local stack could not be resolved, started or stopped."""
