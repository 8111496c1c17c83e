"""Reload the segments of a table after its spec has changed, a few at a time, and read back what came of it.

Pinot changes no published segment by itself when a schema or a table config changes. Its servers build new
indexes and columns only when they load a segment again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from pinot_assets.core.text import plural
from pinot_assets.core.waiting import MONOTONIC, Clock, Deadline
from pinot_assets.errors import PinotError, PinotNotFound, PinotUnreachable
from pinot_assets.pinot.api import PinotClient
from pinot_assets.table_spec.changes.lacking import lacking
from pinot_assets.table_spec.changes.recipe import Recipe
from pinot_assets.table_spec.changes.spec_changes import SpecChange, Verdict

AT_A_TIME: Final = 8
"""Most segments that reload at a time: a reload costs servers CPU and disk."""
_PAUSE: Final = 0.5
_AGAIN_S: Final = 60.0
"""Seconds after which a segment is asked for once more: Pinot 0.11 may never report a fast reload."""
_LONGEST_S: Final = 1800.0
"""Seconds without any progress after which the wait ends: an index of a large segment takes minutes."""
_NAMED: Final = 5

Progress = Callable[[int, int], None]
"""Called with the number of reloaded segments and the number of all that have to be."""


def ignore_progress(done: int, of: int) -> None:
    """Ignore the progress."""


@dataclass(frozen=True, slots=True)
class ReloadPlan:
    """The segments that servers have to reload.

    :ivar segments: by name, what they lack or have too much; nothing where servers do not report it.
    :ivar of: number of segments of the table.
    """

    segments: Mapping[str, Sequence[str]] = field(default_factory=dict)
    of: int = 0

    @property
    def reasons(self) -> tuple[str, ...]:
        """What segments lack, the most frequent first."""
        counts = Counter(reason for reasons in self.segments.values() for reason in reasons)
        return tuple(reason for reason, _ in counts.most_common())

    def __str__(self) -> str:
        return f"{len(self.segments):,} of {plural(self.of, 'segment')}"


def plan_reload(table: str, recipe: Recipe, changes: Iterable[SpecChange], store: PinotClient) -> ReloadPlan:
    """Compare what servers hold with a recipe. This changes nothing.

    :param changes: what is about to change in Pinot; nothing where it holds the spec already.
    :raises PinotError: Pinot could not be asked.
    """
    names = store.all_segments(table)
    if not names:
        return ReloadPlan()
    reloads = any(change.verdict is Verdict.RELOAD for change in changes)
    needed = True if reloads else _ask_if_needed(table, store)
    if needed is False:
        return ReloadPlan(of=len(names))
    reasons = _lacking(table, recipe, names, store)
    # Servers do not report everything: a reload that Pinot or a change asks for is of all segments.
    if reloads or (needed and not reasons):
        reasons = {name: reasons.get(name, ()) for name in sorted(names)}
    return ReloadPlan(reasons, len(names))


def carry_out(
    plan: ReloadPlan,
    table: str,
    recipe: Recipe,
    store: PinotClient,
    on_progress: Progress = ignore_progress,
    clock: Clock = MONOTONIC,
) -> None:
    """Reload the segments of a plan, wait for their servers, and read back what these hold.

    Queries see each replica as it was until it is loaded again. Segments that are deleted meanwhile are left
    out. Idempotent: a plan that was broken off is made and carried out anew.

    :raises PinotError: servers did not reload some segments, or still lack what the recipe says.
    """
    waiting, running = deque(plan.segments), dict[str, str]()
    deadline, asked = Deadline(clock, _LONGEST_S), dict[str, float]()
    done = 0
    while waiting or running:
        for name in [waiting.popleft() for _ in range(min(len(waiting), AT_A_TIME - len(running)))]:
            running[name], asked[name] = _start(table, name, store), deadline.waited
        ended = [name for name, job in running.items() if _ask_if_done(table, name, job, plan, recipe, store)]
        for name in ended:
            del running[name]
        done += len(ended)
        if ended:
            on_progress(done, len(plan.segments))
            deadline.restart(_LONGEST_S)
        elif deadline.is_over:
            raise PinotError(
                f"{_some(running)} of {table} were not reloaded",
                why=f"their servers have not loaded them again within {_LONGEST_S / 60:.0f} minutes",
                hint=f"look into the logs of the servers, then `pinot-assets tables apply {table}` again",
            )
        else:
            deadline.pause(_PAUSE)
            for name in [name for name in running if deadline.waited - asked[name] >= _AGAIN_S]:
                running[name], asked[name] = _start(table, name, store), deadline.waited
    if left := _lacking(table, recipe, store.all_segments(table) & plan.segments.keys(), store):
        raise PinotError(
            f"{_some(left)} of {table} were reloaded and are still not as the spec says",
            why="; ".join(ReloadPlan(left).reasons[:_NAMED]),
            hint="look into the logs of the servers: they say why an index was not built",
        )


def _ask_if_needed(table: str, store: PinotClient) -> bool | None:
    """Return what Pinot says; None from a release that does not say, or if not all servers answer it."""
    try:
        return store.needs_reload(table)
    except PinotUnreachable:
        raise
    except PinotError:
        return None


def _start(table: str, name: str, store: PinotClient) -> str:
    """Start the reload of a segment; return its job, "" if the segment is gone."""
    try:
        return store.reload_segment(table, name)
    except PinotNotFound:
        return ""


def _ask_if_done(
    table: str, name: str, job: str, plan: ReloadPlan, recipe: Recipe, store: PinotClient
) -> bool:
    if not job:
        return True
    # Pinot 0.11 may never report a fast reload, and forgets a job if two are stored at a time. What a segment
    # lacked shows that it is reloaded, too.
    with suppress(PinotNotFound):
        if store.ask_if_reloaded(job):
            return True
    return bool(plan.segments[name]) and not _lacking(table, recipe, [name], store)


def _lacking(
    table: str, recipe: Recipe, names: Iterable[str], store: PinotClient
) -> dict[str, tuple[str, ...]]:
    """Return what the servers of each name lack, without the names that lack nothing."""
    names = sorted(names)
    replicas = store.online_replicas(table, names)
    servers = {server for states in replicas.values() for server in states}
    held = store.held_segments(table, names, servers)
    found = {
        name: tuple(dict.fromkeys(what for one in held[name].values() for what in lacking(recipe, one)))
        for name in names
    }
    return {name: reasons for name, reasons in found.items() if reasons}


def _some(names: Iterable[str]) -> str:
    """`2 segments (a, b)`, with the first few names."""
    listed = sorted(names)
    more = ", …" if len(listed) > _NAMED else ""
    return f"{plural(len(listed), 'segment')} ({', '.join(listed[:_NAMED])}{more})"
