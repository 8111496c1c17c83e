"""Which files fail again and again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pinot_assets.core.check_result import CheckProblem, CheckResult, base_name, check_result_of, some
from pinot_assets.core.text import plural_are
from pinot_assets.session.values.plan import Plan
from pinot_assets.snapshot.receipt import Failure, SourceFile

NAME = "failing_files"

OFTEN = 2
"""Attempts after which a file that still fails will not repair itself."""

Attempts = Mapping[tuple[str, int], Sequence[Failure]]
"""Session id and attempt → what failed in it."""


def still_there(
    failures: Sequence[Failure], plan: Plan, files: Mapping[str, SourceFile]
) -> tuple[Failure, ...]:
    """Of what a session failed at, what the source holds as it was then: neither removed nor repaired.

    :param plan: of that session; a file that Pinot refused is no more in it, and counts while it is listed.
    :param files: the listing, by URI.
    """
    planned = {row.ordinal: row.planned for row in plan.rows}
    listed = [(failure, files[failure.uri].fingerprint) for failure in failures if failure.uri in files]
    return tuple(failure for failure, found in listed if planned.get(failure.ordinal, found) == found)


def failing_files(table: str, attempts: Attempts, failing_now: Sequence[Failure]) -> CheckResult:
    """No file that fails now has failed in several attempts of the kept sessions.

    :param attempts: of the open and the kept sessions.
    :param failing_now: what failed in the last attempt and is not built since.
    """
    times = Counter(uri for failures in attempts.values() for uri in {f.uri for f in failures})
    reason = {f.uri: f"{f.code}: {f.reason}" for f in failing_now}
    keep = sorted((uri for uri in reason if times[uri] >= OFTEN), key=lambda uri: (-times[uri], uri))
    told = [f"{base_name(uri)} in {times[uri]} attempts ({reason[uri]})" for uri in keep]
    problems = (
        [
            CheckProblem(
                f"{plural_are(len(keep), 'file')} failing again and again: {some(told)}",
                f"repair {base_name(keep[0])} or take it away, then run {table}; "
                "skipFileIfFailToInitReader leaves unreadable files out",
            )
        ]
        if keep
        else []
    )
    once = len(reason) - len(keep)
    return check_result_of(
        NAME,
        problems,
        expected=0,
        found=len(keep),
        good="no file keeps failing" + (f"; {once} failed once" if once else ""),
        numbers={
            "files_failing": len(reason),
            "most_attempts": max((times[uri] for uri in reason), default=0),
            "attempts_with_failures": sum(bool(failures) for failures in attempts.values()),
        },
    )
