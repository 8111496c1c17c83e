"""What stops a trigger before it looks at the source: the same for a plan and for a run."""

from __future__ import annotations

from pinot_assets.errors import SpecError
from pinot_assets.pinot.table_config import setting
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.values.state import Mode, Session
from pinot_assets.table_spec.blocks.pinot_settings import TASKS, refuse_settings
from pinot_assets.table_spec.tables.apply import refuse_drift

_MOVER = "RealtimeToOfflineSegmentsTask"


def refuse_absent(context: TriggerContext) -> None:
    """Before anything else of Pinot is asked for.

    :raises SpecDrift: Pinot has no such table; says how it is made.
    """
    if context.clients.pinot.get_table_config(context.spec.name) is None:
        refuse_drift(context.spec, context.clients.pinot)


def refuse_unfit(context: TriggerContext) -> None:
    """Once what was left half way is finished, which no table config may keep from it.

    :raises SpecDrift: Pinot's schema or table config is not what the spec says.
    :raises SpecError: the table, or the REALTIME one of its name, has a setting that no session can live
        with.
    """
    refuse_drift(context.spec, context.clients.pinot)
    refuse_settings(context.spec.name, context.table_config)
    stream = context.clients.pinot.get_realtime_config(context.spec.name)
    if context.mode is Mode.SWAP and stream is not None and setting(stream, *TASKS, _MOVER) is not None:
        table = context.spec.name
        raise SpecError(
            f"{table} is a swap table, and {_MOVER} of {table}_REALTIME writes into it",
            why="a swap replaces every visible segment, those that the task moved here too",
            hint=f"use append or sync, or take {_MOVER} off the REALTIME table",
        )


def waits_for_resume(context: TriggerContext, session: Session | None) -> bool:
    """Whether a rollback holds back all that could be done: a swap is of all files."""
    return session is None and context.mode is Mode.SWAP and context.lease.pointer.hold is not None


def wants_clear(context: TriggerContext) -> bool:
    """Whether `clearConsistentPushState` acts: once per change of the spec, not at every run.

    Source: docs/design/session.md#clear.
    """
    return context.spec.ingestion.clear_state and context.clear_token != context.lease.pointer.clear_token
