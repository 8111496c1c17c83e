"""Trouble that passes: since when a session or a table has had it, and when it is tried again.

Examples: a file vanished between listing and build, a store did not answer, a worker ran out of memory,
drivers died before a file was built, a server was down during the audit. No file has to be repaired, so the
session continues without spending a retry. The times of its tries follow from what ZooKeeper stores: sensors,
`watch` and every driver compute the same moment, and a restart loses nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from pinot_assets.core.text import duration
from pinot_assets.core.waiting import doubled
from pinot_assets.errors import PinotAssetsError, SettingError, SourceError, StoreConflict, TooLarge
from pinot_assets.session.values.state import Session, State, utc_text
from pinot_assets.snapshot.receipt import Failure, is_transient

STALLS = 2
"""After so many attempts in a row without progress, ends without an answer count as one failure, and builds
without a receipt as trouble that passes (rule R10)."""

FIRST_WAIT_MS: Final = 60_000
LONGEST_WAIT_MS: Final = 15 * 60_000
LASTS_MS: Final = 60 * 60_000
"""After this time, trouble is reported as a fault of the table: it should have passed and has not."""


_STAYS: Final = (SettingError, StoreConflict, TooLarge)
"""Errors of a store that do not pass with time: somebody must change something."""


def passes(failures: Sequence[Failure]) -> bool:
    """Whether there are failures and all of them may pass with time."""
    return bool(failures) and all(is_transient(failure.code) for failure in failures)


def may_pass(error: PinotAssetsError) -> bool:
    """Whether the error that ended a build may pass with time: a store does not answer."""
    return isinstance(error, SourceError) and not isinstance(error, _STAYS)


def stands(session: Session) -> bool:
    """Whether the stored session has trouble that passes; failed files are not considered here."""
    servers = session.audit is not None and session.audit.may_pass
    deaths = session.stalls >= STALLS and session.state is not State.SWITCH
    return session.trouble_since_ms > 0 or servers or deaths


def since_ms(session: Session) -> int:
    """Return since when the session has had its present trouble, epoch milliseconds.

    A driver of an older release does not store that; then it is the begin of the last attempt.
    """
    return session.trouble_since_ms or session.attempt_started_ms


def again_ms(session: Session) -> int:
    """Return when the session is tried again, epoch milliseconds: after 1, 2, 4, 8, then every 15 minutes.

    Format 1 does not store since when; there, the stalls in a row show how often it was tried.
    """
    since = since_ms(session)
    last = max(since, session.attempt_started_ms)
    by_deaths = doubled(FIRST_WAIT_MS, max(session.stalls - STALLS, 0) + 1, LONGEST_WAIT_MS)
    return last + min(max(last - since + FIRST_WAIT_MS, by_deaths), LONGEST_WAIT_MS)


def has_lasted(since_ms: int, now_ms: int) -> bool:
    """Whether trouble has lasted so long (`LASTS_MS`) that somebody should look.

    :param since_ms: epoch milliseconds, 0 without trouble.
    """
    return since_ms > 0 and now_ms - since_ms >= LASTS_MS


def so_long(since_ms: int, now_ms: int) -> str:
    """`for 1.2 h, since 2026-01-31 12:00:00 UTC`."""
    return f"for {duration((now_ms - since_ms) / 1000)}, since {utc_text(since_ms)}"


def aged(error: PinotAssetsError, since_ms: int, now_ms: int) -> str:
    """Return the text of an error that every try has met: what, why, for how long, what to do.

    :param since_ms: when the first of these tries failed, epoch milliseconds.
    """
    if now_ms <= since_ms:
        return str(error)
    text = f"{error.reason}; {so_long(since_ms, now_ms)}"
    return text if error.hint is None else f"{text}\n  → {error.hint}"


def causes(failures: Sequence[Failure]) -> str:
    """`2 VANISHED, 1 STORE`: how many files failed with which code."""
    counted = Counter(failure.code for failure in failures)
    return ", ".join(f"{number:,} {code}" for code, number in sorted(counted.items()))
