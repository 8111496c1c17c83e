"""The most that is read of what comes from outside; source files have limits of their own.

Whoever answers, or writes an object, may be wrong or hostile: a megabyte of gzip unpacks to a gigabyte, and a
few kilobytes of brackets end Python's stack. Each limit is far above what an installation of the size in
docs/scale.md needs. Those that a larger one could reach can be raised by the environment.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from pinot_assets.errors import PinotAssetsError

MIB: Final = 1024 * 1024
HIGHEST_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ByteLimit:
    """A number of bytes.

    :ivar what: what it limits, as it is named in an error.
    :ivar variable: raises or lowers it, in MiB; read each time, so that Spark's executors take it too.
    :ivar mib: without that.
    """

    what: str
    variable: str
    mib: int

    @property
    def bytes(self) -> int:
        """The limit.

        :raises PinotAssetsError: the variable holds no number of MiB.
        """
        return _number(self.variable, self.mib, HIGHEST_MIB, "MiB") * MIB

    @property
    def why(self) -> str:
        """Why something is refused that is larger."""
        return f"it is larger than {self.bytes // MIB:,} MiB, which is the most that is read of {self.what}"

    @property
    def hint(self) -> str:
        """What to do where it is rightly larger."""
        return f"if it should be so large, set {self.variable} to more MiB"


def _number(variable: str, default: int, highest: int, unit: str) -> int:
    text = os.environ.get(variable, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and 1 <= int(text) <= highest):
        raise PinotAssetsError(
            f"{variable} is not a number of {unit}", hint=f"write 1 to {highest}, or unset it for {default}"
        )
    return int(text)


REPLY: Final = ByteLimit("one answer of Pinot", "PINOT_ASSETS_MAX_REPLY_MIB", 256)
"""Of an HTTP reply, unpacked. The ideal state of 100,000 segments on three servers has 25 MiB."""

ANSWER: Final = ByteLimit("one answer of a server", "PINOT_ASSETS_MAX_ANSWER_MIB", 64)
"""Of a server's answer by gRPC. The audit asks for aggregates: some kilobytes."""

OBJECT: Final = ByteLimit("one object of the staging area", "PINOT_ASSETS_MAX_OBJECT_MIB", 512)
"""Of a plan, a snapshot, a switch and the like. The rows of a snapshot of a million files have 100 MiB."""

RECEIPT: Final = ByteLimit("one receipt", "PINOT_ASSETS_MAX_RECEIPT_MIB", 32)
"""Of a receipt, several of which are read at a time. One of 100 segments of 500 columns has 6 MiB."""

RECEIPTS: Final = ByteLimit("all receipts of one session", "PINOT_ASSETS_MAX_RECEIPTS_MIB", 1024)
"""Of the receipts of a session's files together, all of which a run has in memory, at four times that size.
Those of 300,000 files of 30 columns have 900 MiB."""

UNPACKED: Final = 8
"""How many times as large as `OBJECT` the columns of a Parquet object may be once they are unpacked. Plans
and snapshots shrink to a third or so."""

MOST_ROWS: Final = 100_000_000
"""Rows of a Parquet object. Encodings write a billion equal rows in a few bytes."""

NODE_BYTES: Final = 4 * MIB
"""Of a node of ZooKeeper, whose servers take 1 MiB unless `jute.maxbuffer` is raised. Ours have kilobytes."""

ERROR_BYTES: Final = 64 * 1024
"""What is read of a reply that refuses a call; some hundred characters of it are shown."""

ENTRY_BYTES: Final = 128 * MIB
"""Of a segment's index map or properties within its tar. Those of 20,000 columns have 40 MiB."""

MESSAGE_BYTES: Final = MIB
"""Of a message in a queue: SQS' own limit."""

SPEC_BYTES: Final = MIB
"""Of a table spec, a policy, settings of OpenLineage, and of what `tables import` reads. PyYAML takes ten
seconds for that."""

MOST_VALUES: Final = 5_000_000
"""Values of a JSON text, lists and objects counted twice. One empty list is two bytes of text and sixty of
memory. The ideal state of 100,000 segments on three servers has 400,000."""
VALUES_VARIABLE: Final = "PINOT_ASSETS_MAX_JSON_VALUES"
HIGHEST_VALUES: Final = 1_000_000_000


def most_values() -> int:
    """`MOST_VALUES`, unless the environment says another number.

    :raises PinotAssetsError: the variable holds no number.
    """
    return _number(VALUES_VARIABLE, MOST_VALUES, HIGHEST_VALUES, "values")


DEEPEST: Final = 100
"""How deep JSON may be nested. Pinot's own is by a dozen levels."""
