"""All checks of a REALTIME table, and which parts of its state each one needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pinot_assets.core.check_result import CheckResult, unknown
from pinot_assets.realtime.health import answers, consuming, copies, errors, progress, servers
from pinot_assets.realtime.model.state import RealtimeState


@dataclass(frozen=True, slots=True)
class RealtimeCheck:
    """One check.

    :ivar promise: what holds when it passes, one sentence.
    :ivar needs: parts of the state (keys of `RealtimeState.unread`) without which it answers "not known".
    """

    name: str
    promise: str
    needs: tuple[str, ...]
    answer: Callable[[RealtimeState], CheckResult]


def examine(state: RealtimeState) -> tuple[CheckResult, ...]:
    """The answer of every check, in the order of `CHECKS`. Never raises."""
    return tuple(_answer(check, state) for check in CHECKS)


def _answer(check: RealtimeCheck, state: RealtimeState) -> CheckResult:
    missing = [f"{part}: {state.unread[part]}" for part in check.needs if part in state.unread]
    if missing:
        return unknown(check.name, "; ".join(missing), "look again when it answers")
    try:
        return check.answer(state)
    except Exception as error:
        # A check that breaks is a failed check with its reason, as those of OFFLINE tables are.
        return unknown(check.name, repr(error), "this is a fault of the check itself: please report it")


_NODES = ("segments", "modified_ms")
_COPIES = (*_NODES, "external", "servers")

CHECKS = (
    RealtimeCheck(
        progress.STATUS,
        "Every segment has a status, and no commit is older than 300 s.",
        _NODES,
        progress.segment_status,
    ),
    RealtimeCheck(
        progress.NEXT,
        "Every partition has its consuming segment, unless it is paused.",
        (*_NODES, "pause"),
        progress.next_segment,
    ),
    RealtimeCheck(
        progress.LISTED,
        "Pinot's list of committing segments is right.",
        (*_NODES, "committing_listed"),
        progress.committing_list,
    ),
    RealtimeCheck(
        copies.URLS, "Every committed segment is in the deep store after 300 s.", _NODES, copies.download_urls
    ),
    RealtimeCheck(
        copies.ONLY_COPIES, "No committed segment hangs on a single server.", _COPIES, copies.only_copy
    ),
    RealtimeCheck(
        copies.REPLICAS,
        "Every replica that the ideal state wants is served.",
        ("segments", "external", "servers"),
        copies.replicas,
    ),
    RealtimeCheck(errors.ERRORS, "No replica is in ERROR.", _COPIES, errors.error_segments),
    RealtimeCheck(
        errors.NOT_MOVED,
        "Every replica is where it should be, or a message about it waits.",
        (*_COPIES, "pending"),
        errors.replicas_not_moved,
    ),
    RealtimeCheck(
        consuming.CONSUMPTION,
        "The table is consumed, or an operator paused it.",
        ("segments", "external", "servers", "pause"),
        consuming.consumption,
    ),
    RealtimeCheck(
        consuming.LAG,
        "What is queried is younger than five minutes, and nothing leaves the stream unread.",
        ("segments", "consumption", "stream"),
        consuming.consumption_lag,
    ),
    RealtimeCheck(
        answers.ANSWERS,
        "Every broker finds every row that was committed or consumed.",
        ("segments",),
        answers.answers,
    ),
    RealtimeCheck(
        answers.DEAD_ROUTES,
        "No segment that brokers take for new is assigned to a dead server.",
        ("segments", "servers"),
        answers.new_segments_on_dead_servers,
    ),
    RealtimeCheck(
        servers.SERVERS, "Every server lives, is enabled and serves.", ("servers",), servers.servers
    ),
    RealtimeCheck(
        servers.TMP_UPLOADS,
        "No upload lies in the deep store that was never moved to its place.",
        ("tmp_uploads",),
        servers.tmp_uploads,
    ),
)
"""In the order of a dashboard."""
