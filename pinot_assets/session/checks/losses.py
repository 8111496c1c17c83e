"""What a session's switch would take away that nobody deleted: rows and columns of rewritten files, and of
files that are as they were, where the table spec was changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final

from pinot_assets.audit.checks import Finding
from pinot_assets.audit.row_changes import (
    Rewritten,
    RowsSeen,
    emptied_files,
    shrunk_files,
    shrunk_table,
    vanished_columns,
)
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.stores.stored_receipts import kept_receipts
from pinot_assets.session.values.state import Mode, Session
from pinot_assets.snapshot.manifest import PublishedFile, Snapshot
from pinot_assets.snapshot.receipt import Receipt
from pinot_assets.table_spec.blocks.audit_checks import Loss, LossName, RowChange

_TAKES_AWAY: Final = (Mode.SYNC, Mode.SWAP)
"""Append takes nothing away: the rows of the published version stay. A rollback shows what was audited."""


def loss_findings(
    context: TriggerContext, session: Session, receipts: Collection[Receipt]
) -> tuple[Finding, ...]:
    """What is found; nothing where no published file is built again and the table keeps its others.

    :param receipts: those that the session's plan accepted.
    """
    current = context.current_snapshot()
    if current is None or session.mode not in _TAKES_AWAY:
        return ()
    # What a rollback or a rebuild brought back was built by a table spec that nobody knows any more.
    same_spec = current.mode == session.mode and _same_fingerprint(session, current)
    rewritten = _rewritten(context, receipts, current.ledger, same_spec)
    had = any(file.rows for file in rewritten)
    left = any(file.rows and file.receipt.rows for file in rewritten)
    found: list[Finding] = []
    if had:
        found += (emptied_files(rewritten, bound) for bound in _bounds(context, "emptied_files"))
    if left and not _bounded(context, "file"):
        found += (shrunk_files(rewritten, bound) for bound in _bounds(context, "shrunk_files"))
    if left:
        found += (vanished_columns(rewritten, bound) for bound in _bounds(context, "vanished_columns"))
    if not _bounded(context, "table") and (seen := _table(context, session, current, receipts)) is not None:
        cause = "" if _same_fingerprint(session, current) else "the table spec was changed"
        found += (shrunk_table(context.spec.name, seen, b, cause) for b in _bounds(context, "shrunk_table"))
    return tuple(found)


def _same_fingerprint(session: Session, current: Snapshot) -> bool:
    return current.config_fingerprint == session.config_fingerprint


def _table(
    context: TriggerContext, session: Session, current: Snapshot, receipts: Collection[Receipt]
) -> RowsSeen | None:
    """The table's rows before and after, where a loss of most of them may be a slip: a swap replaces all,
    and a changed table spec lets a sync delete files that are there. None where it is not, or where the
    source lists no file at all, which was looked into when it was listed (edge cases E2, E33)."""
    kept: Collection[PublishedFile] = ()
    if session.mode is not Mode.SWAP:
        if _same_fingerprint(session, current):
            return None
        gone = {*context.clients.staging.plan(session.plan).removals, *(receipt.uri for receipt in receipts)}
        kept = [file for file in current.files if file.uri not in gone]
    if not current.rows or not (kept or receipts):
        return None
    after = sum(file.rows for file in kept) + sum(receipt.rows for receipt in receipts)
    return RowsSeen(current.rows, after)


def _bounds(context: TriggerContext, name: LossName) -> list[Loss | None]:
    asked: list[Loss | None] = [
        check for check in context.spec.audit.checks if isinstance(check, Loss) and check.check == name
    ]
    return asked or [None]


def _bounded(context: TriggerContext, of: str) -> bool:
    """Whether the table spec itself says how many rows may go before the gate is shut."""
    return any(
        isinstance(check, RowChange) and (check.of, check.severity) == (of, "error") and check.min is not None
        for check in context.spec.audit.checks
    )


# --- what was rewritten ----------------------------------------------------------------------------


def _rewritten(
    context: TriggerContext,
    receipts: Collection[Receipt],
    ledger: Mapping[str, PublishedFile],
    same_spec: bool,
) -> tuple[Rewritten, ...]:
    """Published files that are built into something else; of one table spec, a file of the published content
    gives what it gave: a swap reads those again, too."""
    pairs = []
    for receipt in receipts:
        if (file := ledger.get(receipt.uri)) is None:
            continue
        same = receipt.sha256 == file.sha256
        if not (same and same_spec):
            pairs.append((Rewritten(receipt, file.rows, same_content=same), file))
    former = _former(context, [file for new, file in pairs if new.suspects])
    return tuple(replace(new, former=former.get(file.uri)) for new, file in pairs)


def _former(context: TriggerContext, files: Collection[PublishedFile]) -> dict[str, Receipt]:
    """Receipts of the published versions; only of files that lack something, as few do."""
    by_session: dict[str, dict[str, str]] = defaultdict(dict)
    for file in files:
        by_session[file.session][file.uri] = file.version
    return dict(_read(context, by_session))


def _read(context: TriggerContext, by_session: dict[str, dict[str, str]]) -> Iterator[tuple[str, Receipt]]:
    for session, versions in by_session.items():
        yield from kept_receipts(context.clients.staging, session, versions).items()
