"""A guarded rebalance of a real table: dry run, judgement, the real rebalance, and waiting for its end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.text import counted, plural_are
from pinot_assets.core.waiting import Deadline
from pinot_assets.errors import PinotError, PinotNotFound, PreflightRefused, SwitchStateUnknown
from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.realtime.operations.rebalance_plan import Preview, RebalancePlan, Request, judge, moves_of
from pinot_assets.realtime.operations.table_operation import TableChange
from pinot_assets.realtime.read.reading import Reader
from pinot_assets.realtime.repair.facts import not_known

POLL_S: Final = 5.0
_OVER: Final = frozenset({"DONE", "NO_OP", "FAILED", "ABORTED", "CANCELLED"})
_WELL: Final = frozenset({"DONE", "NO_OP"})


class End(StrEnum):
    """How a rebalance ended."""

    NOTHING = "nothing to move"
    DONE = "done"
    FAILED = "failed"
    UNFINISHED = "continues"
    """Patience was over; Pinot still moves segments."""


@dataclass(frozen=True, slots=True)
class RebalanceReport:
    """The result of a rebalance.

    :ivar text: Pinot's message, or what is still missing.
    """

    end: End
    text: str = ""


def preview_rebalance(
    pinot: RealtimePinot, read: Reader, table: str, request: Request
) -> tuple[Preview, RebalancePlan]:
    """Return Pinot's dry run and the guard's judgement of it. Changes nothing.

    :raises PinotError: Pinot does not answer.
    """
    previewed = Preview.from_json(pinot.preview_rebalance(table, request.options))
    return previewed, judge(request, read(), previewed)


@dataclass(frozen=True, slots=True)
class Rebalance(TableChange):
    """Rebalances a table if the guard allows it.

    :ivar patience_s: how long it waits for the end, in seconds.
    """

    patience_s: float = 6 * 3600.0

    def run(self, request: Request) -> RebalanceReport:
        """Judge the rebalance again, start it, and wait for its end.

        :raises PreflightRefused: the guard refuses it.
        :raises PinotError: Pinot refuses it.
        :raises LeaseLost: another run took the lease of the table.
        """
        table = self.lease.table
        previewed, judgement = preview_rebalance(self.pinot, self.read, table, request)
        if judgement.refused:
            grave = [objection for objection in judgement.objections if objection.blocks]
            raise PreflightRefused(
                f"the rebalance of {table} is refused",
                why="; ".join(f"{one.name}: {one.message}" for one in grave),
                hint="; ".join(dict.fromkeys(one.next_step for one in grave)),
            )
        if not judgement.moves and previewed.status == "NO_OP":
            return RebalanceReport(End.NOTHING, previewed.description)
        self.lease.assert_held()
        job: str | None = None
        try:
            started = self.pinot.rebalance(table, request.options)
            job = started.get("jobId")
            if started.get("status") == "FAILED":
                return RebalanceReport(End.FAILED, str(started.get("description") or ""))
            self.tell(
                counted(len(judgement.moves), "segment moves", "segments move")
                + (f", job {job}" if job else "")
            )
        except SwitchStateUnknown as error:
            self.tell(f"{error.what}; checking whether it continues")
        return self._follow(previewed, job)

    def _follow(self, previewed: Preview, job: str | None) -> RebalanceReport:
        """Wait for the end: it shows in the job where there is one, and always in the table itself."""
        deadline, heard = Deadline(self.clock, self.patience_s), ""
        while True:
            deadline.pause(POLL_S)
            status, words = self._job(job)
            left = self._left(previewed)
            if status in _OVER and status not in _WELL:
                return RebalanceReport(
                    End.FAILED, f"{status}: {words}; {left or 'every segment is in its place'}"
                )
            # The job ends with the ideal state; servers still load segments for some time.
            if left is None and status in (None, *_WELL):
                return RebalanceReport(End.DONE, words)
            if left is not None and left != heard:
                self.tell(left)
                heard = left
            if deadline.is_over:
                return RebalanceReport(End.UNFINISHED, left or words)

    def _job(self, job: str | None) -> tuple[str | None, str]:
        """Return Pinot's status of the job; (None, …) if it has none: before 1.0, or after a lost answer."""
        if job is None:
            return None, ""
        try:
            answer = self.pinot.rebalance_status(job)
        except PinotNotFound:
            return None, ""
        except PinotError as error:
            return "UNKNOWN", error.what
        stats: JsonMapping = answer.get("tableRebalanceProgressStats") or {}
        return str(stats.get("status")), str(stats.get("completionStatusMsg") or "")

    def _left(self, previewed: Preview) -> str | None:
        """Return what is not in its place yet; None when all is."""
        try:
            state = self.read()
        except PinotError as error:
            return f"the table could not be read just now: {error.what}"
        if (unknown := not_known(state)) is not None:
            return f"the table could not be read completely: {unknown}"
        if moving := len(moves_of(state, previewed)):
            return f"{plural_are(moving, 'segment')} still to be moved"
        loading = sum(
            replica.ideal is not None and replica.external != replica.ideal
            for segment in state.segments
            if segment.name in previewed.target
            for replica in segment.replicas
        )
        return f"{plural_are(loading, 'replica')} still being loaded" if loading else None
