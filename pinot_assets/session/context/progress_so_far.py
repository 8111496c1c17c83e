"""What a run of a table has done by now, in words: for an error that ends one of its steps half way."""

from __future__ import annotations

from typing import Final

from pinot_assets.core.effects import SoFar, standing
from pinot_assets.core.text import plural
from pinot_assets.session.context.context import Run
from pinot_assets.session.values.state import Mode, Outcome, PushKind, Session

_NEXT: Final = {
    "rollback": "pinot-assets rollback {}",
    "resume": "pinot-assets resume {}",
    "rebuild": "pinot-assets session rebuild {}",
    "upgrade": "pinot-assets state upgrade {}",
    "clear": "pinot-assets session clear {}",
    "collect": "pinot-assets gc {} --apply",
}
"""What goes on with a step that was broken off; all others are parts of a run."""


def so_far(run: Run, step: str) -> SoFar:
    """What was done, what is not known, what queries see, and the command that goes on.

    :param step: name of the driver's method.
    """
    built = [f"{plural(run.built, 'file')} built and staged"] if run.built else []
    told = standing(run.effects, built)
    session = run.opened
    parts = [told or "no file was built, and nothing was changed in Pinot"]
    parts += [*_queries(run, session), *_session(session)]
    command = _NEXT.get(step, "pinot-assets run {}").format(run.spec.name) + _to(run, step, session)
    then = f"`{command}` {_goes_on(session) if step not in _NEXT else 'does what is left'}"
    return SoFar("; ".join(parts), then, changed=bool(told) or run.lease.session is not None)


def _to(run: Run, step: str, session: Session | None) -> str:
    """Where a rollback was to lead, as long as no session remembers it: without, it may lead elsewhere."""
    is_begun = session is not None and session.mode is Mode.ROLLBACK and session.outcome is Outcome.OPEN
    return f" --to {run.goal}" if step == "rollback" and run.goal and not is_begun else ""


def _queries(run: Run, session: Session | None) -> list[str]:
    """What queries see, where that is sure, or sure not to be."""
    done, unknown = run.effects.done, run.effects.unknown
    if session is None or session.outcome is not Outcome.OPEN:
        return []
    shows = _showing(session)
    if any((effect.method, effect.subject) in shows for effect in done):
        return ["Pinot has made the switch, and queries see it as soon as every broker has noticed"]
    sent = any((effect.method, effect.subject) in shows for effect in unknown)
    if sent or _sent_before(run, session):
        return ["whether queries see the switch is not known: Pinot may still make it by itself"]
    methods = {effect.method for effect in (*done, *unknown)}
    if session.push is PushKind.PLAIN or methods & _MAY_SHOW:
        return []
    return ["queries see what they saw before"]


_MAY_SHOW: Final = frozenset({"delete_segments", "end_replace_segments", "revert_replace_segments"})
"""What may change what queries see, besides the switch: a stray deleted, a hidden segment shown again."""


def _showing(session: Session) -> frozenset[tuple[str, str]]:
    """The calls that change what queries see, each with its entry: a rollback may go by a revert."""
    entry = session.lineage_entry_id
    back = session.mode is Mode.ROLLBACK and session.switch_object is None
    return frozenset({("revert_replace_segments" if back else "end_replace_segments", entry)})


def _sent_before(run: Run, session: Session) -> bool:
    """Whether an earlier run sent that call, and nobody has heard of it."""
    found = run.found
    if found is None or found.lineage_entry_id != session.lineage_entry_id:
        return False
    back = session.mode is Mode.ROLLBACK and session.switch_object is None
    return found.reverting if back else found.ending and not found.reverting


def _session(session: Session | None) -> list[str]:
    if session is None:
        return []
    if session.outcome is not Outcome.OPEN:
        return [f"session {session.id} is closed ({session.outcome})"]
    return [f"session {session.id} is open ({session.state})"]


def _goes_on(session: Session | None) -> str:
    if session is None or session.outcome is not Outcome.OPEN:
        return "begins again"
    kept = session.push is PushKind.CONSISTENT and session.mode is not Mode.ROLLBACK
    return "goes on from there with what is built" if kept else "goes on from there"
