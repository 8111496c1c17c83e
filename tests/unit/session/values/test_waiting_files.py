"""When new files wait for others."""

from __future__ import annotations

import pytest

from pinot_assets.session.values.waiting_files import why_files_wait
from pinot_assets.snapshot.receipt import Fingerprint, SourceFile
from pinot_assets.table_spec.blocks.layout import WaitFor

MINUTE = 60_000
NOW = 1_800_000_000_000
WAIT = WaitFor(minutes=60, bytes="1mb")


def file(age_min: float, size: int = 100) -> SourceFile:
    return SourceFile(f"file:///{age_min}", Fingerprint(size, int((NOW - age_min * MINUTE) * 1000)))


@pytest.mark.parametrize(
    ("wait", "files", "why"),
    [
        (None, [file(1)], ""),
        (WAIT, [], ""),
        (WAIT, [file(1), file(59)], "2 new files of 200 B wait for others: a session begins in 1 min"),
        (WAIT, [file(1), file(60)], ""),
        (WAIT, [file(1, 1 << 20)], ""),
        (WAIT, [file(-600)], "1 new file of 100 B wait for others: a session begins in 1.0 h"),
        (WaitFor(minutes=60), [file(1, 1 << 30)], "1 new file of 1.0 GB wait for others"),
    ],
)
def test_they_wait_until_there_is_enough_or_the_oldest_has_waited(
    wait: WaitFor | None, files: list[SourceFile], why: str
) -> None:
    """A file from the future waits as long as any other."""
    said = why_files_wait(wait, files, NOW)
    assert said.startswith(why)
    assert bool(said) == bool(why)
