"""Every error of this project, in one tree.

An error says what happened, why, and what to do next. The class tells a caller how to react:
`SwitchConflict` may be tried again after a fresh look, `SwitchStateUnknown` must be looked up first.
"""

from __future__ import annotations

from pinot_assets.printable import visible


class PinotAssetsError(Exception):
    """Base class of all errors that this project raises on purpose.

    :param what: what happened, one sentence without a final full stop.
    :param why: the reason, where one is known.
    :param hint: what to do next.
    """

    def __init__(self, what: str, *, why: str | None = None, hint: str | None = None) -> None:
        # Text from a controller, a file name or a stored object may contain escape codes for a terminal.
        self.what = visible(what)
        self.why = None if why is None else visible(why)
        self.hint = None if hint is None else visible(hint)
        super().__init__(self.what)

    @property
    def reason(self) -> str:
        """Return what happened and why, without the hint, in one line."""
        return f"{self.what}: {self.why}" if self.why else self.what

    @property
    def in_one_line(self) -> str:
        """Return what happened, why, and what to do next, in one line."""
        return self.reason if self.hint is None else f"{self.reason} → {self.hint}"

    def __str__(self) -> str:
        return self.reason if self.hint is None else f"{self.reason}\n  → {self.hint}"

    def __reduce__(self) -> tuple[object, ...]:
        # Spark's workers send errors to the driver: pickle has to keep the keyword arguments, too.
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
    """The segment writer does not support what schema or table config ask for; names column and feature."""


# --- the source ----------------------------------------------------------------------------------


class SourceError(PinotAssetsError):
    """The input directory or the staging area could not be used."""


class SettingError(SourceError):
    """A setting of source or staging area is wrong, missing or refused: retries fail until it is changed."""


class ListingFailed(SourceError):
    """A listing did not complete. It is never treated as an empty one (invariant I12)."""


class SourceChanged(SourceError):
    """A file changed while it was read, or after the plan was made."""


class StoreConflict(SourceError):
    """An object with this name and other content exists already (rule R13)."""


class TooLarge(SourceError):
    """An object is larger than the limit for its kind (`pinot_assets/core/untrusted.py`)."""


class StreamUnreadable(SourceError):
    """The stream of a REALTIME table could not be read directly, without Pinot."""


# --- building ------------------------------------------------------------------------------------


class BuildError(PinotAssetsError):
    """A file could not be turned into a segment."""


# --- Pinot ---------------------------------------------------------------------------------------


class TypedWrong(PinotAssetsError):
    """The command line is not valid: exit code 2, as for every mistyped command."""


class PinotError(PinotAssetsError):
    """Pinot refused a call."""


class PinotUnreachable(PinotError):
    """No connection could be made for this call, so it was not sent; or a read got no answer.

    Earlier calls may have had their effects; the final message lists them (`pinot_assets.core.effects`)."""


class PinotNotFound(PinotError):
    """The table, segment or schema does not exist."""


class PushRefused(PinotError):
    """An upload was refused (quota, time range, malformed segment, unreachable download URI)."""


class SwitchConflict(PinotError):
    """Pinot refused a lineage call because of the lineage as it is now: read it again, then retry."""


class SwitchStateUnknown(PinotError):
    """A lineage call may or may not have taken effect: read the lineage before anything else."""


class SnapshotIncomplete(PinotAssetsError):
    """The gate stays shut: not every file is built, or the audit has not passed for this switch."""


# --- REALTIME tables ------------------------------------------------------------------------------


class PreflightRefused(PinotAssetsError):
    """The preflight refused a change of a REALTIME table; the text lists each refusing rule and its fix."""


# --- the session ---------------------------------------------------------------------------------


class SessionError(PinotAssetsError):
    """The stored session does not allow what was asked."""


class NodeUnreadable(SessionError):
    """A node in ZooKeeper does not hold what it should; names the node."""


class SessionHeld(SessionError):
    """Another run holds the table's lease."""


class LeaseLost(SessionError):
    """This run no longer holds the table's lease and must not change anything any more."""


class NeedsNewerRelease(SessionError):
    """A newer release wrote a stored object in a format that this release does not know."""


class SnapshotCorrupt(SessionError):
    """The snapshot object that the pointer names is missing or does not match its hash (rule R18)."""


class PlanOutdated(SessionError):
    """A run was asked to do what a plan report showed, but would now do something else; it did nothing."""


class ForgetRefused(SessionError):
    """A table is not forgotten while work on it is open; nothing was removed."""


class RollbackRefused(SessionError):
    """No safe rollback is possible; the text says why."""


class RebuildRefused(SessionError):
    """Published files of the table cannot be built again; the text says why."""


# --- the local stack -----------------------------------------------------------------------------


class LocalStackError(PinotAssetsError):
    """The local stack could not be resolved, started or stopped."""
