"""What a rollback holds back (rule R23): versions of files that it took back, and removals that it undid."""

from __future__ import annotations

from pinot_assets.session.plan import NO_HOLD, Hold
from pinot_assets.snapshot.manifest import Snapshot


def hold_of(current: Snapshot, target: Snapshot, before: Hold = NO_HOLD) -> Hold:
    """What must not come back by itself once the table is taken from one snapshot to the other."""
    there, back = current.ledger, target.ledger
    files = {
        uri: f.fingerprint.token
        for uri, f in there.items()
        if uri not in back or back[uri].fingerprint != f.fingerprint
    }
    removals = tuple(sorted((set(back) - set(there)) | set(before.removals)))
    return Hold(files={**before.files, **files}, removals=removals)


def without(hold: Hold, taken: Hold) -> Hold:
    """The hold less what one rollback added to it."""
    return Hold(
        files={uri: token for uri, token in hold.files.items() if taken.files.get(uri) != token},
        removals=tuple(uri for uri in hold.removals if uri not in taken.removals),
    )


def still_held(hold: Hold, now: Snapshot) -> Hold:
    """The hold less what a snapshot settles: versions that it shows, removals of files that it lacks."""
    ledger = now.ledger
    return Hold(
        files={
            uri: token
            for uri, token in hold.files.items()
            if uri not in ledger or ledger[uri].fingerprint.token != token
        },
        removals=tuple(uri for uri in hold.removals if uri in ledger),
    )
