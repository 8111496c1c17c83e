"""Whether every server holds exactly what was published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pinot_assets.core.check_result import CheckProblem, CheckResult, Severity, check_result_of, some
from pinot_assets.core.text import plural, plural_are
from pinot_assets.pinot.lineage import Replicas

NAME = "replicas_and_crc"


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the servers themselves say.

    :ivar crcs: server → segment → CRC, as loaded.
    :ivar silent: server → why it did not answer.
    """

    crcs: Mapping[str, Mapping[str, int]]
    silent: Mapping[str, str]


def replicas_and_crc(
    table: str, built: Mapping[str, int], replicas: Replicas, registered: Mapping[str, int], loaded: Loaded
) -> CheckResult:
    """Every replica of every published segment is ONLINE and has the CRC that was built.

    :param built: published segment → CRC.
    :param replicas: segment → server → state, those that should be there included.
    :param registered: segment → CRC in Pinot's own metadata.
    """
    expected = good = 0
    lost: list[str] = []
    down: list[str] = []
    wrong: list[str] = []
    for segment, crc in sorted(built.items()):
        states = replicas.get(segment) or {}
        expected += max(1, len(states))
        serving = 0
        if segment in registered and registered[segment] != crc:
            wrong.append(f"{segment} has CRC {registered[segment]} in Pinot, built {crc}")
        for server, state in sorted(states.items()):
            there = loaded.crcs.get(server, {}).get(segment)
            if state != "ONLINE":
                down.append(f"{segment} is {state} on {server}")
            elif there is not None and there != crc:
                wrong.append(f"{segment} has CRC {there} on {server}, built {crc}")
            elif there is None and server in loaded.crcs:
                down.append(f"{segment} is not loaded on {server}")
            else:
                serving += 1
        good += serving
        if serving == 0:
            lost.append(segment)
    problems = []
    if lost:
        gone = [segment for segment in lost if not replicas.get(segment)]
        what = f"{plural_are(len(lost), 'published segment')} served by no replica ({some(lost)})"
        again = (
            f"upload segments/{gone[0]}.tar.gz and its like from the staging area again: "
            f"POST /v2/segments?tableName={table}&tableType=OFFLINE"
            if gone
            else f"look at the servers' logs; POST /segments/{table}_OFFLINE/reset loads broken ones again"
        )
        problems.append(CheckProblem(what, again, Severity.ERROR))
    if wrong:
        reload = f"POST /segments/{table}_OFFLINE/reload?forceDownload=true on the controller"
        problems.append(CheckProblem(some(wrong), reload, Severity.ERROR))
    if down:
        what = f"{plural_are(len(down), 'replica')} down: {some(down)}"
        problems.append(CheckProblem(what, f"POST /segments/{table}_OFFLINE/reset, then the server's log"))
    if loaded.silent:
        what = "; ".join(f"{server} does not answer: {why}" for server, why in sorted(loaded.silent.items()))
        problems.append(CheckProblem(what, "is that server up, and its admin port reachable from here?"))
    return check_result_of(
        NAME,
        problems,
        expected=expected,
        found=good,
        good=f"ONLINE as built: {good:,} of {plural(expected, 'replica')} of {plural(len(built), 'segment')}",
        numbers={
            "segments": len(built),
            "segments_lost": len(lost),
            "replicas_down": len(down),
            "crc_wrong": len(wrong),
            "servers_silent": len(loaded.silent),
        },
    )
