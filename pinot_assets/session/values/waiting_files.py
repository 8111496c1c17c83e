"""Whether new files wait for others before a session begins (`layout.waitFor`; docs/tables.md#layout).

Only the start of a session by a schedule, a sensor or `watch` waits. A person who asks for a run gets one,
and an open session continues at once. No I/O here.
"""

from __future__ import annotations

from collections.abc import Collection

from pinot_assets.core.text import duration, plural, size
from pinot_assets.snapshot.receipt import SourceFile
from pinot_assets.table_spec.blocks.layout import WaitFor


def why_files_wait(wait: WaitFor | None, files: Collection[SourceFile], now_ms: int) -> str:
    """Return why no session begins for these files yet; "" if one may begin.

    :param files: new files, and in append mode rewritten ones, which no rollback holds.
    :param now_ms: epoch milliseconds.
    """
    if wait is None or not files:
        return ""
    amount, enough = sum(file.fingerprint.size for file in files), wait.enough_bytes
    oldest_ms = min(file.fingerprint.mtime_us for file in files) // 1000
    left_s = (oldest_ms - now_ms) / 1000 + wait.minutes * 60
    if left_s <= 0 or (enough is not None and amount >= enough):
        return ""
    text = f"{plural(len(files), 'new file')} of {size(amount)} wait for others: a session begins in "
    text += duration(min(left_s, wait.minutes * 60))
    return text if enough is None else f"{text}, or once there are {size(enough)}"
