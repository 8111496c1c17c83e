"""How many segments the files of a plan are expected to give, and the memory of a worker: an estimate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pinot_assets.core.text import plural, size
from pinot_assets.table_spec.blocks.ingestion import FileIngestion

_TEXTS: Final = frozenset({"csv", "json"})
_PACKED_ENDINGS: Final = (".gz", ".gzip", ".bz2", ".zst")
_UNPACKED_TIMES: Final = 4
"""Rows take about as much memory as their text, and several times as much as a packed file."""
_WORKER_BYTES: Final = 450_000_000
_PER_ROW_BYTE: Final = 2.5
"""A worker without rows, and what it takes for each byte of a segment's rows (`make bench-memory`)."""
MOST_BYTES: Final = 1_000_000_000
"""A worker stays below this by default."""


@dataclass(frozen=True, slots=True)
class BuildEstimate:
    """What is expected of files that are not read yet.

    :ivar files: that are not empty.
    :ivar segments: of all of them; None if only rows limit a segment, because rows are not counted before.
    :ivar worker_bytes: the most memory of one worker. Without a limit on bytes: for the largest file as one
        segment, so at most.
    """

    files: int
    segments: int | None
    worker_bytes: int

    @property
    def text(self) -> str:
        """Return the estimate as a sentence."""
        files = plural(self.files, "file")
        if self.segments is None:
            return (
                f"up to {size(self.worker_bytes)} if the largest file is one segment (estimated from sizes)"
            )
        return (
            f"about {size(self.worker_bytes)}, {files} as about {plural(self.segments, 'segment')} "
            "(estimated from sizes)"
        )

    @property
    def is_large(self) -> bool:
        """Whether a worker needs more than it does by default."""
        return self.worker_bytes > MOST_BYTES


def estimate_build(ingestion: FileIngestion, files: Iterable[tuple[str, int]]) -> BuildEstimate | None:
    """Return what to expect of the files; None if there is no row to build.

    :param files: URI and bytes of each.
    """
    rows = [_row_bytes(ingestion, uri, given) for uri, given in files if given]
    if not rows:
        return None
    limit, largest = ingestion.segment_bytes, max(rows)
    segments = None if limit is None else sum(-(-given // limit) for given in rows)
    most = largest if limit is None else min(largest, limit)
    return BuildEstimate(len(rows), segments, _WORKER_BYTES + round(_PER_ROW_BYTE * most))


def _row_bytes(ingestion: FileIngestion, uri: str, given: int) -> int:
    is_plain = ingestion.input_format in _TEXTS and not uri.lower().endswith(_PACKED_ENDINGS)
    return given if is_plain else given * _UNPACKED_TIMES
