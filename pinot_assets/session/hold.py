"""What a rollback holds back (rule R23): versions of files that it took back, and removals that it undid."""

from __future__ import annotations

from dataclasses import replace

from pinot_assets.session.plan import NO_HOLD, Hold
from pinot_assets.snapshot.manifest import Snapshot


def hold_of(source: Snapshot, target: Snapshot, before: Hold = NO_HOLD) -> Hold:
    """What must not come back by itself while the table is at a former snapshot.

    :param source: the newest snapshot that was made from the source, not by a rollback.
    :param before: what former rollbacks hold back.
    """
    made, back = source.ledger, target.ledger
    files = {
        uri: f.fingerprint.token
        for uri, f in made.items()
        if uri not in back or back[uri].fingerprint != f.fingerprint
    }
    # A held file is missing there because of the hold, not because it was removed.
    removed = set(back) - set(made) - set(before.files)
    removals = tuple(sorted(removed | set(before.removals)))
    return replace(before, files={**before.files, **files}, removals=removals)


def still_held(hold: Hold, now: Snapshot) -> Hold:
    """The hold less what a snapshot settles: versions that it shows, removals of files that it lacks."""
    ledger = now.ledger
    return replace(
        hold,
        files={
            uri: token
            for uri, token in hold.files.items()
            if uri not in ledger or ledger[uri].fingerprint.token != token
        },
        removals=tuple(uri for uri in hold.removals if uri in ledger),
    )
