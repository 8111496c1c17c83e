"""What a switch does to a hybrid table: it may move the border between files and stream."""

from __future__ import annotations

from pinot_assets.errors import SpecError
from pinot_assets.pinot.table_config import setting, time_boundary_ms
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.values.state import Mode, utc_text
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.table_spec.blocks.pinot_settings import TASKS

_MOVER = "RealtimeToOfflineSegmentsTask"


def refuse_second_writer(context: TriggerContext) -> None:
    """Look at the REALTIME table of the same name.

    :raises SpecError: its task moves segments into this table, where a swap would delete them unseen.
    """
    stream = context.clients.pinot.get_realtime_config(context.spec.name)
    if context.mode is not Mode.SWAP or stream is None or setting(stream, *TASKS, _MOVER) is None:
        return
    raise SpecError(
        f"{context.spec.name} is a swap table, and {_MOVER} of {context.spec.name}_REALTIME writes into it",
        why="a swap replaces every visible segment, those that the task moved here too",
        hint=f"use append or sync, or take {_MOVER} off the REALTIME table",
    )


def note_time_boundary(context: TriggerContext, current: Snapshot | None, switch: Switch) -> None:
    """Say where the border will lie, if the table is hybrid and the switch moves it.

    By this project's own segments; what others pushed is not read for it.
    """
    if context.clients.pinot.get_realtime_config(context.spec.name) is None:
        return
    before = current.segments if current is not None else {}
    after = {**before, **{o.segment: o for o in switch.segments_to}}
    for name in switch.segments_from:
        after.pop(name, None)
    old, new = (
        time_boundary_ms(context.table_config, (o.end_ms for o in s.values())) for s in (before, after)
    )
    if old != new:
        context.note(
            f"hybrid table: rows up to {_told(old)} came from files and the later ones from the stream; "
            f"after the switch the border is {_told(new)}"
        )


def _told(boundary_ms: int | None) -> str:
    return "none (all from the stream)" if boundary_ms is None else utc_text(boundary_ms)
