"""Finds what changed between the published files and the listed ones. Pure: decides from values alone."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.snapshot.receipt import Fingerprint, SourceFile
from pinot_assets.source.file_table import in_order

# The etags that S3 computes from content alone: the MD5 of one part, or of the parts' MD5s.
_CONTENT_ETAG = re.compile(r"[0-9a-f]{32}(-\d+)?")

_NO_ETAG = "\0"  # equal to no real etag
_VERSION = ["size", "mtime_us", "etag"]

_STRETCH = 250  # rows; if one of them changed, each of them is looked up


@dataclass(frozen=True, slots=True)
class Diff:
    """All files of both sides, each in exactly one field, in the order of their URIs.

    :ivar new: listed, not published.
    :ivar rewritten: published with other content.
    :ivar deleted: URIs that are published and no longer listed.
    :ivar unchanged: listed with the published fingerprint.
    :ivar touched: listed with another fingerprint and the same content. There is nothing to build; storing
        the new fingerprint saves another read of the content.
    """

    new: tuple[SourceFile, ...]
    rewritten: tuple[SourceFile, ...]
    deleted: tuple[str, ...]
    unchanged: tuple[SourceFile, ...]
    touched: tuple[SourceFile, ...]


def differing(listed: pa.Table, published: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the rows that do not have the same version on both sides; fast for a million rows on each side.

    :param listed: columns as `file_table.COLUMNS`, each URI once.
    :param published: these columns and maybe others; if a URI comes twice, its last row counts.
    :returns: the rows left of each side; each URI once.
    """
    listed, published = _without_equal_stretches(listed, published)
    if not listed.num_rows and not published.num_rows:
        return listed, published
    uris, backwards = listed.column("uri"), np.arange(published.num_rows)[::-1]
    from_end = pc.index_in(uris, value_set=published.column("uri").take(pa.array(backwards)))
    place = pc.subtract(published.num_rows - 1, from_end)  # index of the last row with the same URI
    beside = published.select(_VERSION).take(place)
    changed = pc.invert(pc.fill_null(_same_version(listed, beside), False))
    rewritten = published.take(place.filter(changed).drop_null())
    untouched = np.ones(published.num_rows, dtype=bool)
    untouched[place.drop_null().to_numpy()] = False
    left = published.filter(pa.array(untouched))  # URIs that are gone, and older rows of the other URIs
    known = uris.filter(pc.is_in(uris, value_set=left.column("uri")))
    gone = left.filter(pc.invert(pc.is_in(left.column("uri"), value_set=known)))
    return listed.filter(changed), pa.concat_tables([rewritten, _newest(gone)])


def _without_equal_stretches(listed: pa.Table, published: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return both sides without the stretches whose rows are equal on both: usually nearly all of them.

    If both sides are in the order of their URIs, we cut them at the same URIs and compare the pieces as
    memory. That costs a hundredth of looking up a million URIs.
    """
    if not all(in_order(side, pc.less_equal) for side in (listed, published)):
        return listed, published
    names = ["uri", *_VERSION]  # without the ledger's "not null", which would make every row differ
    mine, theirs = (pa.table({name: side.column(name) for name in names}) for side in (listed, published))
    uris, others = mine.column("uri"), theirs.column("uri")
    left, right = [listed.slice(0, 0)], [published.slice(0, 0)]
    start, beside = 0, 0
    while start < len(uris) or beside < len(others):
        end = start + _STRETCH
        beyond = _place(others, uris[end].as_py(), beside) if end < len(uris) else len(others)
        here, there = (start, _STRETCH), (beside, beyond - beside)
        if not mine.slice(*here).equals(theirs.slice(*there)):
            left.append(listed.slice(*here))
            right.append(published.slice(*there))
        start, beside = end, beyond
    return pa.concat_tables(left), pa.concat_tables(right)


def _place(uris: pa.ChunkedArray, uri: str, start: int) -> int:
    """Return the index of the first URI that is not before `uri`."""
    return bisect_left(uris, uri, start, key=pa.StringScalar.as_py)


def _newest(published: pa.Table) -> pa.Table:
    """Return each URI once, with its last row."""
    last = {uri: n for n, uri in enumerate(published.column("uri").to_pylist())}
    return published.take(pa.array([*last.values()], pa.int64()))


def _same_version(some: pa.Table, others: pa.Table) -> pa.ChunkedArray:
    """Return for each row whether both sides have the same version; null if the other side has no row."""
    numbers = pc.and_(
        pc.equal(some.column("size"), others.column("size")),
        pc.equal(some.column("mtime_us"), others.column("mtime_us")),
    )
    etag, other = (pc.fill_null(table.column("etag"), _NO_ETAG) for table in (some, others))
    return pc.and_(numbers, pc.equal(etag, other))


def diff(
    listed: Mapping[str, SourceFile],
    published: Mapping[str, Fingerprint],
    ask_if_same_content: Callable[[SourceFile], bool],
) -> Diff:
    """Compare a listing with the ledger (edge case E3: a new fingerprint triggers, the content decides).

    :param published: the versions in the ledger, by URI.
    :param ask_if_same_content: reads a file and compares it with what was read for the ledger. Called only
        if the sizes are equal, the fingerprints differ and no etag proves equal content; its errors are not
        caught.
    """
    new, rewritten, unchanged, touched = [], [], [], []
    for uri, file in sorted(listed.items()):
        if (before := published.get(uri)) is None:
            new.append(file)
        elif file.fingerprint == before:
            unchanged.append(file)
        elif file.fingerprint.size == before.size and (
            _etag_proves(file.fingerprint, before) or ask_if_same_content(file)
        ):
            touched.append(file)
        else:
            rewritten.append(file)
    deleted = sorted(published.keys() - listed.keys())
    return Diff(tuple(new), tuple(rewritten), tuple(deleted), tuple(unchanged), tuple(touched))


def _etag_proves(now: Fingerprint, then: Fingerprint) -> bool:
    """Whether the etags prove equal content. Unequal ones prove nothing: other parts, or KMS (MD5-like)."""
    return now.etag is not None and now.etag == then.etag and _CONTENT_ETAG.fullmatch(now.etag) is not None
