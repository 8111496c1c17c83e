"""The preflight as turning pauseless on or off asks for it (`operations.pauseless`)."""

from __future__ import annotations

from collections.abc import Sequence

from pinot_assets.errors import PinotNotFound
from pinot_assets.pinot.realtime import RealtimeReads
from pinot_assets.realtime.model.state import RealtimeState
from pinot_assets.realtime.operations.pauseless import Preflight
from pinot_assets.realtime.operations.pauseless_plan import Goal
from pinot_assets.realtime.preflight.facts import Aim
from pinot_assets.realtime.preflight.gather import ReadRetention, gather
from pinot_assets.realtime.preflight.judge import judge
from pinot_assets.realtime.preflight.retention import read_retention


def before_drain(pinot: RealtimeReads, read_stream: ReadRetention = read_retention) -> Preflight:
    """Why pauseless must not go on. Off it may always go: draining is what keeps that from losing anything.

    :param read_stream: what a stream keeps, by its config.
    """

    def against(state: RealtimeState, goal: Goal) -> Sequence[str]:
        if goal is Goal.OFF:
            return ()
        config = pinot.table_config(state.table)
        if config is None:
            raise PinotNotFound(f"there is no table {state.table}")
        answers = judge(gather(pinot, state.table, config, Aim.PAUSELESS, read_stream))
        return [f"{one.name}: {one.message}" for one in answers if one.blocks]

    return against
