"""What a repair remembers, as text for ZooKeeper."""

from __future__ import annotations

import json

from pinot_assets.core.stored_format import plain, structured
from pinot_assets.core.untrusted import fields_of_json, reading
from pinot_assets.errors import SessionError
from pinot_assets.realtime.repair.model import Memory, RepairLimits, Try

SUBJECT = "repair"
"""Under which it is kept (`realtime.lease`)."""
WHAT = "what a repair remembers"


def to_text(memory: Memory) -> str:
    """The memory as JSON; empty where nothing was tried."""
    return json.dumps(plain(memory.tried)) if memory.tried else ""


def from_text(text: str) -> Memory:
    """Inverse of `to_text`.

    :raises ValueError: it is something else.
    """
    if not text:
        return Memory()
    try:
        found = {key: structured(Try, fields, WHAT) for key, fields in fields_of_json(text).items()}
    except ValueError as error:
        raise ValueError(f"not {WHAT}: {error}") from error
    return Memory(found)


def recalled(text: str, table: str, now_ms: int, limits: RepairLimits) -> Memory:
    """What is still worth knowing of it: what nobody tried for so long is mended, or gone.

    :param table: whose memory it is.
    :raises SessionError: it cannot be read.
    """
    with reading(f"what the repair of {table} remembers", SessionError):
        return from_text(text).since(now_ms - 2 * limits.longest_backoff_ms)
