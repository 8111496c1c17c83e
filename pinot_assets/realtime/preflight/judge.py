"""The preflight: the rules about time (what Pinot allows, what this cluster needs), the rules of a change,
and the judgement by all rules that matter for a change.

Source: docs/design/realtime.md#s2, #s5 and #s7.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pinot_assets.core.check_result import CheckResult
from pinot_assets.core.text import plural_are
from pinot_assets.errors import PinotNotFound, PreflightRefused
from pinot_assets.pinot.realtime import RealtimeReads
from pinot_assets.realtime.model.state import RealtimeState
from pinot_assets.realtime.operations.pauseless import Goal, Preflight
from pinot_assets.realtime.preflight import rules_settings
from pinot_assets.realtime.preflight.facts import Aim, Facts, Rule, passed, refuse, rule, warn
from pinot_assets.realtime.preflight.gather import ReadRetention, gather
from pinot_assets.realtime.read.stream import read_retention

COMMIT_START_LIMIT_S: Final = 10.0
"""Seconds that a server waits for commitStart; not configurable (docs/design/realtime.md#t-17885)."""
COMMIT_LIMIT_S: Final = 300.0
"""Seconds from commitStart to commitEnd; not configurable up to 1.5.1 (docs/design/realtime.md#t-17936)."""
SLOW_COMMIT_BYTES_PER_S: Final = 7_500_000
"""2 GB were built in 3.5 min and uploaded in 1 (docs/design/realtime.md#t-17936)."""
_HOUR_MS: Final = 3_600_000


@rule(Aim.PAUSELESS, needs=("commit_start",))
def commit_start(facts: Facts) -> CheckResult:
    """Later, the controller's writes happen, but the server does not learn so and does not build the segment.

    Source: docs/design/realtime.md#t-17885.
    """
    took = facts.commit_start
    assert took is not None, "what could not be measured is in `unread`, and the rule was not checked"
    text = f"commitStart takes {took.seconds:.2f} s of the {COMMIT_START_LIMIT_S:.0f} s ({took.how})"
    if took.seconds >= COMMIT_START_LIMIT_S / 2:
        return _too_slow(
            facts,
            f"{text}: beyond the limit no server builds the segment, and it ends in ERROR on all replicas",
            "fewer segments in the ideal state (larger ones, or a shorter retention), or a faster ZooKeeper",
        )
    if took.seconds >= COMMIT_START_LIMIT_S / 5:
        return warn(text, "watch the value: it grows with the ideal state")
    return passed(text)


@rule(Aim.PAUSELESS, needs=("commit_times",))
def build_and_upload(facts: Facts) -> CheckResult:
    """Pinot refuses a commit's end more than 300 s after its start (docs/design/realtime.md#window-300)."""
    if (times := facts.commit_times) is None:
        return warn("no commit was seen yet", "look again after the table has committed a segment")
    seconds, how = times.seconds, "the slowest commit"
    if seconds is None:
        seconds = times.largest_bytes / SLOW_COMMIT_BYTES_PER_S
        how = f"the largest segment has {times.largest_bytes / 1e6:.0f} MB, at 7.5 MB/s"
    text = f"build and upload take about {seconds:.0f} s of the {COMMIT_LIMIT_S:.0f} s ({how})"
    fix = "smaller segments: flushThresholdSegmentSize or flushThresholdRows"
    if seconds >= COMMIT_LIMIT_S:
        return _too_slow(facts, f"{text}: each commit would wait for a repair", fix)
    if times.late:
        late = (
            f"{times.late} of the newest segments were written later than that: by repairs, or changed since"
        )
        return warn(f"{text}; {late}", f"check whether repairs wrote them; {fix}")
    return warn(text, fix) if seconds >= COMMIT_LIMIT_S / 2 else passed(text)


def _too_slow(facts: Facts, reason: str, fix: str) -> CheckResult:
    """Return a warning if the table is pauseless already, as the change may be the remedy; else a refusal."""
    return warn(reason, fix) if facts.held is not None and facts.held.pauseless else refuse(reason, fix)


@rule(Aim.BYPASS, Aim.PAUSELESS, needs=("retention",))
def stream_retention(facts: Facts) -> CheckResult:
    """Re-ingestion leaves out expired rows, without an error (docs/design/realtime.md#s7)."""
    if (kept := facts.retention) is None:
        return passed("the table has no stream")
    needed = facts.flush_ms + 1000 * facts.worst_repair_s
    is_short = kept.ms is not None and kept.ms < needed
    if kept.compacted and not is_short:  # a short retention is worse, and is reported below
        return warn(
            "the topic is compacted: a segment that is consumed again has fewer rows than before",
            "use a topic with cleanup.policy=delete",
        )
    size = kept.bytes_per_partition
    if kept.ms is None and size is None:
        return passed("the stream keeps all messages")
    if kept.ms is not None:
        text = (
            f"the stream keeps {kept.ms / _HOUR_MS:.1f} h; {facts.flush_ms / _HOUR_MS:.1f} h until a commit "
            f"and {facts.worst_repair_s / 3600:.1f} h until a repair make {needed / _HOUR_MS:.1f} h"
        )
        fix = "use a longer retention of the topic, a shorter flushThresholdTime, or a faster repair"
        if is_short and facts.pauseless:
            short = (
                f"{text}: a segment that no server has would be consumed again with fewer rows, "
                "without an error"
            )
            return refuse(short, fix)
        if is_short or size is None:
            return warn(text, fix) if is_short else passed(text)
    return warn(
        f"the topic also has a limit of {(size or 0) / 1000000000.0:.1f} GB a partition, which it "
        "may reach before its time",
        "make sure that a partition holds "
        f"{(facts.flush_ms / 1000 + facts.worst_repair_s) / 3600:.0f} h of rows",
    )


RULES: Final = (*rules_settings.RULES, commit_start, build_and_upload, stream_retention)
"""The rules, in the order in which they answer."""


@rule()
def pauseless_is_drained(facts: Facts) -> CheckResult:
    """No commit may begin in one protocol and end in the other (docs/design/realtime.md#point-8)."""
    if facts.held is None or facts.held.pauseless is facts.target.pauseless:
        return passed("pauseless consumption stays as it is")
    raw = facts.table.removesuffix("_REALTIME")
    if facts.target.pauseless:
        return refuse(
            "pauseless consumption would be turned on while segments are being consumed, which "
            "would then be committed half in one way, half in the other",
            f"pinot-assets realtime pauseless enable {raw}, then this",
        )
    return refuse(
        "pauseless consumption would be turned off while segments are being committed "
        f"({facts.committing} now): they would stay COMMITTING, and no server would upload them "
        "any more",
        f"pinot-assets realtime pauseless disable {raw}, then this",
    )


@rule(needs=("peers_only",))
def scheme_is_not_needed(facts: Facts) -> CheckResult:
    """Servers can load a segment with an empty URL only from peers (docs/design/realtime.md#s6-download)."""
    if facts.held is None or facts.held.peer_scheme is None or facts.target.peer_scheme is not None:
        return passed("the peer scheme is not removed")
    if waiting := facts.peers_only + facts.committing:
        return refuse(
            f"{plural_are(waiting, 'segment')} not in the deep store: "
            "without the peer scheme no server can load it",
            f"pinot-assets realtime repair {facts.table.removesuffix('_REALTIME')} --apply, then again",
        )
    return passed("every segment is in the deep store, so no server needs a peer")


RULES_OF_CHANGE: Final[tuple[Rule, ...]] = (pauseless_is_drained, scheme_is_not_needed)
"""Rules for a change that `tables apply` makes at once: what it must not change so, and what must stay.

Only that command uses them: pauseless consumption is turned on or off by a drain (`operations.pauseless`).
"""


def run_rules(facts: Facts) -> tuple[CheckResult, ...]:
    """Return the answer of every rule that matters for the aims: whether the table would work with them."""
    return tuple(r.answer(facts) for r in RULES if not r.aims or r.aims & facts.aims)


def judge_change(facts: Facts) -> tuple[CheckResult, ...]:
    """Return the same answers, and whether Pinot's config may be changed to this at once."""
    return (*run_rules(facts), *(rule.answer(facts) for rule in RULES_OF_CHANGE))


def verdict(answer: CheckResult) -> str:
    """Return in one word what an answer means for a change."""
    return answer.pick("pass", "warn", "refuse")


def recap(answers: Iterable[CheckResult]) -> str:
    """Return a line such as `18 rules: 2 refuse (version, peer_scheme), 3 warn`."""
    results = list(answers)
    refused = [answer.name for answer in results if answer.blocks]
    warned = sum(not answer.passed for answer in results) - len(refused)
    parts = [f"{len(refused):,} refuse ({', '.join(refused)})"] if refused else []
    parts += [f"{warned} warn"] if warned else []
    return f"{len(results):,} rules: {', '.join(parts) or 'all pass'}"


def refuse_unless_safe(table: str, answers: Iterable[CheckResult]) -> None:
    """Refuse a change of a REALTIME table's config if a rule does; every such change calls this.

    :raises PreflightRefused: a rule refuses; the text lists each with its fix.
    """
    if refused := [answer for answer in answers if answer.blocks]:
        listed = "".join(f"\n  {a.name}: {a.message}\n    → {a.next_step}" for a in refused)
        raise PreflightRefused(
            f"the preflight of {table} refuses this config:{listed}",
            hint=f"nothing was changed; `pinot-assets realtime preflight {table.removesuffix('_REALTIME')}` "
            "shows all rules",
        )


def before_drain(pinot: RealtimeReads, read_stream: ReadRetention = read_retention) -> Preflight:
    """Return the preflight of a drain. It never refuses the goal OFF: draining itself prevents any loss.

    :param read_stream: returns what a stream keeps, by its config.
    """

    def against(state: RealtimeState, goal: Goal) -> Sequence[str]:
        if goal is Goal.OFF:
            return ()
        if (config := pinot.table_config(state.table)) is None:
            raise PinotNotFound(f"there is no table {state.table}")
        answers = run_rules(gather(pinot, state.table, config, Aim.PAUSELESS, read_stream))
        return [f"{one.name}: {one.message}" for one in answers if one.blocks]

    return against
