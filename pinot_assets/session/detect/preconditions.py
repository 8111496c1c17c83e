"""What stops a trigger before it looks at the source: the same for a plan and for a run."""

from __future__ import annotations

from pinot_assets.session.context.context import Run
from pinot_assets.session.detect.hybrid import refuse_second_writer
from pinot_assets.session.values.state import Mode, Session
from pinot_assets.table_spec.blocks.pinot_settings import refuse_settings
from pinot_assets.table_spec.tables.apply import refuse_drift


def refuse_absent(run: Run) -> None:
    """Before anything else of Pinot is asked for.

    :raises SpecDrift: Pinot has no such table; says how it is made.
    """
    if run.edges.pinot.get_table_config(run.spec.name) is None:
        refuse_drift(run.spec, run.edges.pinot)


def refuse_unfit(run: Run) -> None:
    """Once what was left half way is finished, which no table config may keep from it.

    :raises SpecDrift: Pinot's schema or table config is not what the spec says.
    :raises SpecError: the table, or the REALTIME one of its name, has a setting that no session can live
        with.
    """
    refuse_drift(run.spec, run.edges.pinot)
    refuse_settings(run.spec.name, run.table_config)
    refuse_second_writer(run)


def waits_for_resume(run: Run, session: Session | None) -> bool:
    """Whether a rollback holds back all that could be done: a swap is of all files."""
    return session is None and run.mode is Mode.SWAP and run.lease.pointer.hold is not None
