"""What stops a trigger before it looks at the source: the same for a plan and for a run."""

from __future__ import annotations

from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.detect.hybrid import refuse_second_writer
from pinot_assets.session.values.state import Mode, Session
from pinot_assets.table_spec.blocks.pinot_settings import refuse_settings
from pinot_assets.table_spec.tables.apply import refuse_drift


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
    refuse_second_writer(context)


def waits_for_resume(context: TriggerContext, session: Session | None) -> bool:
    """Whether a rollback holds back all that could be done: a swap is of all files."""
    return session is None and context.mode is Mode.SWAP and context.lease.pointer.hold is not None


def wants_clear(context: TriggerContext) -> bool:
    """Whether `clearConsistentPushState` acts: once per change of the spec, not at every run.

    Source: docs/design/session.md#clear.
    """
    return context.spec.ingestion.clear_state and context.clear_token != context.lease.pointer.clear_token
