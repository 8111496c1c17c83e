"""What a trigger sees of the source beside ledger and open session; everything else it decides from this."""

from __future__ import annotations

from dataclasses import dataclass

from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.detect.became_folder import with_folders
from pinot_assets.session.detect.listing import changes_of, list_ready
from pinot_assets.session.detect.open_session import Opened, look_at
from pinot_assets.session.values.hold import as_listed
from pinot_assets.session.values.plan import Changes, Hold
from pinot_assets.session.values.state import Mode, Session
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.source import Readiness


@dataclass(frozen=True, slots=True)
class SourceState:
    """One look.

    :ivar found: the listing, judged.
    :ivar changes: it beside the ledger; None while everything waits for a file that is being rewritten.
    :ivar opened: the open session as its last attempt left it; None without one, and while waiting.
    :ivar hold: what a rollback holds back of it, with the tokens that held files have now.
    """

    found: Readiness
    changes: Changes | None
    opened: Opened | None
    hold: Hold


def read_source_state(
    context: TriggerContext, session: Session | None, current: Snapshot | None
) -> SourceState:
    """List the source and compare; writes nothing.

    :raises ListingFailed: the listing did not complete, or an empty one is not to be believed.
    """
    found, hold = list_ready(context, session, current), context.hold()
    if found.waiting:
        return SourceState(found, None, None, hold)
    source = context.clients.source
    changes = changes_of(source, found.counted, current)
    if context.mode is not Mode.SWAP:  # which is held as a whole, by a hold that may be empty
        hold = as_listed(hold, changes, lambda file: source.sha256(source.key_of(file.uri)))
    if context.mode is not Mode.APPEND:  # which takes no rows away
        changes = with_folders(source, changes, current, hold.removals)
    return SourceState(found, changes, look_at(context, session) if session is not None else None, hold)
