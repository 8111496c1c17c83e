"""Built files under the names of a later attempt: no Spark, the source is not read again.

A name once seen in a REVERTED lineage entry is spent for ever: a forced start queues it for deletion again
(rule R16). The renamed tars have receipts of their own, so that the plan stays the one source of what is
switched to (rule R11).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pinot_assets.core.threads import in_threads
from pinot_assets.ingest.contract.build_spec import segment_name
from pinot_assets.pinot.lineage import Lineage, LineageState
from pinot_assets.session.stores.staged_objects import THREADS
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.plan import Plan, Row, RowStatus
from pinot_assets.snapshot.receipt import Receipt


def spent_names(lineage: Lineage) -> frozenset[str]:
    """Names that must never be pushed again, as far as Pinot still knows."""
    return frozenset[str]().union(*(e.segments_to for e in lineage.in_state(LineageState.REVERTED)))


def renamed(staging: Staging, table: str, plan: Plan, receipts: Mapping[int, Receipt]) -> Plan:
    """The plan with those receipts' tars under names of its own attempt, each recorded as a new receipt.

    Repeating it after a death makes the same objects.

    :param receipts: by the ordinal of the row that takes them over; not necessarily the one that they were
        built for.
    """

    def taken(row: Row) -> Row:
        old = receipts.get(row.ordinal)
        if old is None:
            return row
        receipt = _receipt(staging, table, plan, row.ordinal, old)
        key = staging.put_receipt(plan.session, receipt)
        return replace(row, planned=receipt.read, status=RowStatus.DONE, receipt=key)

    return replace(plan, rows=tuple(in_threads(taken, plan.rows, THREADS, "rename")))


def _receipt(staging: Staging, table: str, plan: Plan, ordinal: int, old: Receipt) -> Receipt:
    outputs = tuple(
        staging.put_renamed(output, segment_name(table, plan.session, plan.attempt, ordinal, k))
        for k, output in enumerate(old.outputs)
    )
    return replace(old, ordinal=ordinal, attempt=plan.attempt, outputs=outputs)
