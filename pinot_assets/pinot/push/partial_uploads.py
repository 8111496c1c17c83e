"""What failed uploads left behind, or Pinot is still at work on: metadata without a place in the table."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence, Set

from pinot_assets.core.deadline import MONOTONIC, Deadline, poll_until
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
    if not _half_there(pinot, table, names):
        return
    left = _not_cleaned_up(pinot, table, names)  # all of them: another one's turn may come meanwhile
    if left and not pinot.takes_over_half_uploads():
        before_write()
        pinot.delete_segments(table, left)
        left = _not_cleaned_up(pinot, table, left)
        if left:
            raise PushRefused(
                f"half there from an earlier upload: {plural(len(left), 'segment')} of table {table}",
                why=f"{min(left)} has metadata and no place in the ideal state, and was deleted in vain",
                hint="delete them in Pinot, then push again",
            )
    if not left:
        # Pinot removes the metadata first and the file of that name in the deep store a moment later.
        MONOTONIC.sleep(POLL_SECONDS)


def _not_cleaned_up(pinot: Uploads, table: str, names: Set[str]) -> Set[str]:
    """Those that are still half there after a while."""
    deadline = Deadline(MONOTONIC, LEFTOVER_SECONDS)
    return poll_until(deadline, POLL_SECONDS, lambda: _half_there(pinot, table, names), operator.not_)


def _half_there(pinot: Uploads, table: str, names: Set[str]) -> Set[str]:
    return (pinot.registered_segments(table) - pinot.all_segments(table)) & names
