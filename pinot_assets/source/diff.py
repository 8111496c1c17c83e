"""What changed between what is published and what is listed. Pure: decides from values alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pinot_assets.source.fingerprint import Fingerprint, SourceFile
from pinot_assets.source.inventory import Inventory

# What S3 makes from content alone: the MD5 of one part, or of the parts' MD5s.
_CONTENT_ETAG = re.compile(r"[0-9a-f]{32}(-\d+)?")


@dataclass(frozen=True, slots=True)
class Published:
    """The version of a file that the ledger holds.

    :ivar sha256: hex digest of the bytes as they were read.
    """

    fingerprint: Fingerprint
    sha256: str


@dataclass(frozen=True, slots=True)
class Diff:
    """All files of both sides, each in exactly one place; files in the order of their URIs.

    :ivar new: listed, not published.
    :ivar rewritten: published with other content.
    :ivar deleted: URIs published and no longer listed.
    :ivar unchanged: the same version.
    :ivar touched: another version with the same content: nothing to build; the new fingerprint is worth
        remembering, so that the content is not read again.
    """

    new: tuple[SourceFile, ...]
    rewritten: tuple[SourceFile, ...]
    deleted: tuple[str, ...]
    unchanged: tuple[SourceFile, ...]
    touched: tuple[SourceFile, ...]


def diff(
    inventory: Inventory,
    published: Mapping[str, Published],
    content_sha256: Callable[[SourceFile], str],
) -> Diff:
    """Compare a listing with the ledger (edge case E3: the fingerprint wakes, content decides).

    :param content_sha256: reads a file and gives its sha256 in hex. Asked only where size is equal, the
        rest is not, and no etag proves the content equal; what it raises goes through.
    """
    new, rewritten, unchanged, touched = [], [], [], []
    for uri, file in sorted(inventory.files.items()):
        before = published.get(uri)
        if before is None:
            new.append(file)
        elif file.fingerprint == before.fingerprint:
            unchanged.append(file)
        elif _has_same_content(file, before, content_sha256):
            touched.append(file)
        else:
            rewritten.append(file)
    deleted = sorted(published.keys() - inventory.files.keys())
    return Diff(tuple(new), tuple(rewritten), tuple(deleted), tuple(unchanged), tuple(touched))


def _has_same_content(
    file: SourceFile, before: Published, content_sha256: Callable[[SourceFile], str]
) -> bool:
    now, then = file.fingerprint, before.fingerprint
    if now.size != then.size:
        return False
    if now.etag is not None and now.etag == then.etag and _CONTENT_ETAG.fullmatch(now.etag):
        return True
    # Unequal etags prove nothing: other parts, or encrypted with KMS (then they look like an MD5).
    return content_sha256(file) == before.sha256
