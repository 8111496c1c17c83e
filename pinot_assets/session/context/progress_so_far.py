"""What a run of a table has done by now, in words: for an error that ends one of its steps half way."""

from __future__ import annotations

from typing import Final

from pinot_assets.core.effects import SoFar, standing
from pinot_assets.core.text import plural
from pinot_assets.session.context.context import TriggerContext
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


def so_far(context: TriggerContext, step: str) -> SoFar:
    """What was done, what is not known, what queries see, and the command that goes on.

    :param step: name of the driver's method.
    """
    built = [f"{plural(context.built, 'file')} built and staged"] if context.built else []
    told = standing(context.effects, built)
    session = context.opened
    parts = [told or "no file was built, and nothing was changed in Pinot"]
    parts += [*_queries(context, session), *_session(session)]
    command = _NEXT.get(step, "pinot-assets run {}").format(context.spec.name) + _to(context, step, session)
    then = f"`{command}` {_goes_on(session) if step not in _NEXT else 'does what is left'}"
    return SoFar("; ".join(parts), then, changed=bool(told) or context.lease.session is not None)


def _to(context: TriggerContext, step: str, session: Session | None) -> str:
    """Where a rollback was to lead, as long as no session remembers it: without, it may lead elsewhere."""
    is_begun = session is not None and session.mode is Mode.ROLLBACK and session.outcome is Outcome.OPEN
    return f" --to {context.goal}" if step == "rollback" and context.goal and not is_begun else ""


def _queries(context: TriggerContext, session: Session | None) -> list[str]:
    """What queries see, where that is sure, or sure not to be."""
    done, unknown = context.effects.done, context.effects.unknown
    if session is None or session.outcome is not Outcome.OPEN:
        return []
    shows = _showing(session)
    if any((effect.method, effect.subject) in shows for effect in done):
        return ["Pinot has made the switch, and queries see it as soon as every broker has noticed"]
    sent = any((effect.method, effect.subject) in shows for effect in unknown)
    if sent or _sent_before(context, session):
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


def _sent_before(context: TriggerContext, session: Session) -> bool:
    """Whether an earlier run sent that call, and nobody has heard of it."""
    found = context.found
    if found is None or found.lineage_entry_id != session.lineage_entry_id:
        return False
    back = session.mode is Mode.ROLLBACK and session.switch_object is None
    return found.revert_sent if back else found.end_sent and not found.revert_sent


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
