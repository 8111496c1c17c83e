"""The formats of a segment: what the servers of a release can read, and what its own builder writes.

A table spec names the oldest server that must read its segments (`writeFor`). The writer asks the `Target` of
that release for everything that differs between releases. A release between two of `TARGETS` takes the lower
one, a release after the last takes the last. Sources: docs/design/segment-format.md#s11 for what servers
read, tests/oracle for what Pinot's builders of 1.5.1 and 1.6 write.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class Target:
    """What a segment may hold, and how it is written.

    :ivar release: the first release of Pinot with this format, `major.minor`.
    :ivar murmur3: whether servers know the partition function Murmur3.
    :ivar raw_multi_value_4: whether servers read version 4 of a raw multi-value forward index.
    :ivar gzip: whether servers read the codec GZIP.
    :ivar raw_5: whether servers read version 5 of a raw forward index.
    :ivar entry_dictionary: whether servers read the codec MV_ENTRY_DICT.
    :ivar protected_texts: whether servers read a text of metadata that NULs protect; older ones take the NULs
        as part of the text.
    :ivar any_column_name: whether servers read column names outside ASCII.
    :ivar raw_6: whether there is a version 6 of a raw forward index; before, it is written as version 4.
    :ivar shared_dictionary: whether a column may have a raw forward index and a dictionary; if so, an index
        that needs a dictionary gets one.
    :ivar inverted_at_build: whether inverted indexes are always written, whatever
        `createInvertedIndexDuringSegmentGeneration` says.
    :ivar exact_lengths: whether `optimizeDictionaryType` compares the lengths of texts, and metadata have
        their lengths, `isAscii` and `forwardIndexEncoding`, and say of a column that none of its rows is null
        (`isNonNull`). Half a surrogate pair has no length: it is an error.
    """

    release: str
    murmur3: bool = False
    raw_multi_value_4: bool = False
    gzip: bool = False
    raw_5: bool = False
    entry_dictionary: bool = False
    protected_texts: bool = False
    any_column_name: bool = False
    raw_6: bool = False
    shared_dictionary: bool = False
    inverted_at_build: bool = False
    exact_lengths: bool = False

    @property
    def number(self) -> tuple[int, int]:
        """`release` as (major, minor)."""
        major, minor = self.release.split(".")
        return int(major), int(minor)


_0_11: Final = Target("0.11")
_1_1: Final = replace(_0_11, release="1.1", murmur3=True, raw_multi_value_4=True)
_1_2: Final = replace(_1_1, release="1.2", gzip=True)
_1_3: Final = replace(_1_2, release="1.3", raw_5=True)
_1_5: Final = replace(_1_3, release="1.5", entry_dictionary=True, protected_texts=True, any_column_name=True)
_1_6: Final = replace(
    _1_5, release="1.6", raw_6=True, shared_dictionary=True, inverted_at_build=True, exact_lengths=True
)

TARGETS: Final = (_0_11, _1_1, _1_2, _1_3, _1_5, _1_6)
"""Every format that differs, the oldest first."""

OLDEST: Final = _0_11
NEWEST: Final = _1_6
REFERENCE: Final = "1.5"

_RELEASE: Final = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})(?:\..*)?", re.ASCII)


def target_for(release: str) -> Target:
    """Return the format for servers of a release and newer ones.

    :param release: `major.minor`; what follows does not matter.
    :raises ValueError: it is no release, or older than the oldest target; its text says which.
    """
    if (match := _RELEASE.fullmatch(release)) is None:
        raise ValueError("not a version such as 1.5")
    asked = int(match[1]), int(match[2])
    if asked < OLDEST.number:
        raise ValueError(f"older than {OLDEST.release}")
    return max((target for target in TARGETS if target.number <= asked), key=lambda target: target.number)
