"""What failed uploads left behind, or Pinot is still at work on: metadata without a place in the table."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence, Set

from pinot_assets.core.text import plural
from pinot_assets.errors import PushRefused
from pinot_assets.pinot.push.upload import Uploads
from pinot_assets.snapshot.receipt import Output

LEFTOVER_SECONDS = 10.0
"""A controller removes what a failed upload left, and what is deleted, after 2 s, then after 4 s more."""

POLL_SECONDS = 0.25


def await_no_partial_uploads(
    pinot: Uploads, table: str, outputs: Sequence[Output], before_write: Callable[[], None]
) -> None:
    """Wait until Pinot has cleaned up after failed uploads of these names; what stays is left behind.

    A controller that was killed in the middle of an upload cleans nothing up. Up to 0.11 an upload that meets
    what is left is taken for a refresh: refused, or accepted and never assigned to a server. So it is deleted
    there. Later on an upload starts afresh, but a clean-up that comes late takes the new metadata with it;
    what a batch left before the one that it could not copy stays there.

    :param before_write: asked before something is deleted: whether the lease is still held.
    :raises PushRefused: it is still there after it was deleted.
    """
    names = {output.segment for output in outputs}
    left, waited = _wait(pinot, table, names)
    if left and not pinot.takes_over_half_uploads():
        before_write()
        pinot.delete_segments(table, left)
        left, waited = _wait(pinot, table, left)
        if left:
            raise PushRefused(
                f"half there from an earlier upload: {plural(len(left), 'segment')} of table {table}",
                why=f"{min(left)} has metadata and no place in the ideal state, and was deleted in vain",
                hint="delete them in Pinot, then push again",
            )
    if waited and not left:
        # Pinot removes the metadata first and the file of that name in the deep store a moment later.
        time.sleep(POLL_SECONDS)


def _wait(pinot: Uploads, table: str, names: Set[str]) -> tuple[frozenset[str], bool]:
    """Those that are half there after a while, and whether there were any before."""
    started, waited = time.monotonic(), False
    while names and (left := (pinot.registered_segments(table) - pinot.all_segments(table)) & names):
        if time.monotonic() - started >= LEFTOVER_SECONDS:
            return left, True
        time.sleep(POLL_SECONDS)
        waited = True
    return frozenset(), waited
