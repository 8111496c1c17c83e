"""What a session's switch would take away that nobody deleted: rows and columns of rewritten files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final

from pinot_assets.audit import Finding
from pinot_assets.audit.bounds import RowsSeen
from pinot_assets.audit.losses import (
    Rewritten,
    emptied_files,
    shrunk_files,
    shrunk_table,
    vanished_columns,
)
from pinot_assets.session.kept_receipts import kept_receipts
from pinot_assets.session.model import Mode, Session
from pinot_assets.session.receipt import Receipt
from pinot_assets.session.run import Run
from pinot_assets.snapshot.manifest import PublishedFile
from pinot_assets.spec.audit_check import Loss, LossName, RowChange

_TAKES_AWAY: Final = (Mode.SYNC, Mode.SWAP)
"""Append takes nothing away: the rows of the published version stay. A rollback shows what was audited."""


def loss_findings(run: Run, session: Session, receipts: Collection[Receipt]) -> tuple[Finding, ...]:
    """What is found; nothing where no published file is rewritten and no table swapped.

    :param receipts: those that the session's plan accepted.
    """
    current = run.current_snapshot()
    if current is None or session.mode not in _TAKES_AWAY:
        return ()
    rewritten = _rewritten(run, receipts, current.ledger)
    had = any(file.rows for file in rewritten)
    left = any(file.rows and file.receipt.rows for file in rewritten)
    found: list[Finding] = []
    if had:
        found += (emptied_files(rewritten, bound) for bound in _bounds(run, "emptied_files"))
    if left and not _bounded(run, "file"):
        found += (shrunk_files(rewritten, bound) for bound in _bounds(run, "shrunk_files"))
    if left:
        found += (vanished_columns(rewritten, bound) for bound in _bounds(run, "vanished_columns"))
    if session.mode is Mode.SWAP and receipts and current.rows and not _bounded(run, "table"):
        seen = RowsSeen(current.rows, sum(receipt.rows for receipt in receipts))
        found += (shrunk_table(run.spec.name, seen, bound) for bound in _bounds(run, "shrunk_table"))
    return tuple(found)


def _bounds(run: Run, name: LossName) -> list[Loss | None]:
    asked: list[Loss | None] = [
        check for check in run.spec.audit.checks if isinstance(check, Loss) and check.check == name
    ]
    return asked or [None]


def _bounded(run: Run, of: str) -> bool:
    """Whether the table spec itself says how many rows may go before the gate is shut."""
    return any(
        isinstance(check, RowChange) and (check.of, check.severity) == (of, "error") and check.min is not None
        for check in run.spec.audit.checks
    )


# --- what was rewritten ----------------------------------------------------------------------------


def _rewritten(
    run: Run, receipts: Collection[Receipt], ledger: dict[str, PublishedFile]
) -> tuple[Rewritten, ...]:
    """Published files whose content is another one; a swap reads the others again, too."""
    pairs = [
        (Rewritten(receipt, ledger[receipt.uri].rows), ledger[receipt.uri])
        for receipt in receipts
        if receipt.uri in ledger and receipt.sha256 != ledger[receipt.uri].sha256
    ]
    former = _former(run, [file for new, file in pairs if new.suspects])
    return tuple(replace(new, former=former.get(file.uri)) for new, file in pairs)


def _former(run: Run, files: Collection[PublishedFile]) -> dict[str, Receipt]:
    """Receipts of the published versions; only of files that lack something, as few do."""
    by_session: dict[str, dict[str, str]] = defaultdict(dict)
    for file in files:
        by_session[file.session][file.uri] = file.version
    return dict(_read(run, by_session))


def _read(run: Run, by_session: dict[str, dict[str, str]]) -> Iterator[tuple[str, Receipt]]:
    for session, versions in by_session.items():
        yield from kept_receipts(run.edges.staging, session, versions).items()
