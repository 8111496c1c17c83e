"""Rows that were put aside: which of them `gc` deletes, and what it says of those that stay.

A run puts bad rows aside where the table spec allows that (docs/tables.md#bad-rows). They may hold personal
data, so they are kept for a limited time. No run, audit or rollback reads them again: receipts count them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from typing import Final

from pinot_assets.errors import SnapshotCorrupt
from pinot_assets.ingest.contract.task_outputs import file_id
from pinot_assets.pinot.versions import DAY_MS
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.hold import HeldVersion
from pinot_assets.session.values.state import Pointer
from pinot_assets.snapshot.published_files import tokens_of
from pinot_assets.source.file_table import ObjectInfo
from pinot_assets.table_spec import TableSpec

_KEY: Final = re.compile(
    r"sessions/(?P<session>cp[0-9]+-[0-9a-f]{6})/bad-rows/(?P<version>[0-9a-f]{16}-[0-9a-f]{12})-[0-9]+\.parquet"
)


def is_bad_rows(key: str) -> bool:
    """Whether that object of the staging area holds rows that a run of this project put aside."""
    return _KEY.fullmatch(key) is not None


def keeping_bad_rows(spec: TableSpec, days: int) -> TableSpec:
    """Return the table spec with another number of days for which rows put aside are kept."""
    return replace(spec, ingestion=spec.ingestion.model_copy(update={"bad_row_days_to_keep": days}))


@dataclass(frozen=True, slots=True)
class BadRowRetention:
    """How long a table keeps the rows that were put aside.

    :ivar days: as the table spec says.
    :ivar open_session: id of the open session, whose rows stay; "" if none is open.
    :ivar in_use: versions of files that are published or held back, as `versions_in_use` returns them.
    """

    days: int
    open_session: str
    in_use: frozenset[str] | None

    def is_over(self, key: str, age_ms: int) -> bool:
        """Whether an object with rows that were put aside is older than the table keeps them."""
        match = _KEY.fullmatch(key)
        return match is not None and match["session"] != self.open_session and age_ms >= self.days * DAY_MS

    def is_of_no_file(self, key: str) -> bool:
        """Whether the rows come from a version of a file that is neither published nor held back."""
        match = _KEY.fullmatch(key)
        return (
            match is not None
            and match["session"] != self.open_session
            and self.in_use is not None
            and match["version"] not in self.in_use
        )


def versions_in_use(staging: Staging, pointer: Pointer) -> frozenset[str] | None:
    """Return the versions of files that are published or that a rollback holds back, as names of objects
    have them; None if that cannot be read."""
    versions = set[tuple[str, str]]()
    try:
        if pointer.current_snapshot is not None:
            tokens = tokens_of(staging.snapshot(pointer.current_snapshot).files)
            versions.update(zip(*(column.to_pylist() for column in tokens.columns), strict=True))
        if pointer.hold is not None:
            hold = staging.hold(pointer.hold)
            versions.update(hold.files.items())
            versions.update(
                (uri, HeldVersion.read(one).token) for uri, all_ in hold.versions.items() for one in all_
            )
    except SnapshotCorrupt:
        return None
    return frozenset(f"{file_id(uri)}-{token}" for uri, token in versions)


@dataclass(frozen=True, slots=True)
class KeptBadRows:
    """The rows put aside that stay.

    :ivar days: for how long the table keeps them.
    :ivar objects: number of Parquet files; each has the bad rows of one file of the source.
    :ivar size: their bytes.
    :ivar oldest_ms: age of the oldest one in milliseconds; 0 without any.
    """

    days: int = 0
    objects: int = 0
    size: int = 0
    oldest_ms: int = 0

    @classmethod
    def of(cls, days: int, listed: Iterable[ObjectInfo], going: Set[str], now_ms: int) -> KeptBadRows:
        """Sum up the rows put aside among these objects of the staging area.

        :param going: keys of objects that do not stay.
        :param now_ms: time by the clock of the staging area.
        """
        kept = [one.fingerprint for one in listed if is_bad_rows(one.key) and one.key not in going]
        ages = (now_ms - one.mtime_us // 1000 for one in kept)
        return cls(days, len(kept), sum(one.size for one in kept), max(ages, default=0))


NO_BAD_ROWS: Final = KeptBadRows()
"""No rows were put aside."""
