"""What failed uploads left behind, or Pinot is still at work on: metadata without a place in the table."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pinot_assets.errors import PushRefused
from pinot_assets.pinot.upload import Uploads
from pinot_assets.session.receipt import Output
from pinot_assets.words import plural

LEFTOVER_SECONDS = 10.0
"""A controller removes what a failed upload left behind after 2 s, then after 4 s more."""

POLL_SECONDS = 0.25


def await_no_leftovers(pinot: Uploads, table: str, outputs: Sequence[Output]) -> None:
    """Wait until Pinot has cleaned up after failed uploads of these names.

    Up to 0.11 an upload that meets what is left is taken for a refresh: refused, or accepted and never
    assigned to a server. Later on it starts afresh, but a clean-up that comes late takes the new metadata
    with it; what a batch left before the one that it could not copy stays there.
    """
    names = {output.segment for output in outputs}
    started = time.monotonic()
    waited = False
    while names and (left := (pinot.registered_segments(table) - pinot.all_segments(table)) & names):
        if time.monotonic() - started >= LEFTOVER_SECONDS:
            if pinot.takes_over_half_uploads():
                return
            raise PushRefused(
                f"half there from an earlier upload: {plural(len(left), 'segment')} of table {table}",
                why=f"{min(left)} has metadata and no place in the ideal state",
                hint="delete them in Pinot, then push again",
            )
        time.sleep(POLL_SECONDS)
        waited = True
    if waited:
        # Pinot removes the metadata first and the file of that name in the deep store a moment later.
        time.sleep(POLL_SECONDS)
