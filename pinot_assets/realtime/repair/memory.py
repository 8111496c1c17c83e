"""What a repair remembers, as text for ZooKeeper."""

from __future__ import annotations

import json
from dataclasses import asdict

from pinot_assets.errors import SessionError
from pinot_assets.foreign import fitting, read_json
from pinot_assets.realtime.repair.model import Kind, Limits, Means, Memory, Try

SUBJECT = "repair"
"""Under which it is kept (`realtime.lease`)."""


def to_text(memory: Memory) -> str:
    """The memory as JSON; empty where nothing was tried."""
    return json.dumps({key: asdict(tried) for key, tried in memory.tried.items()}) if memory.tried else ""


def from_text(text: str) -> Memory:
    """Inverse of `to_text`.

    :raises ValueError: it is something else.
    """
    if not text:
        return Memory()
    try:
        return Memory({key: _try(fields) for key, fields in read_json(text).items()})
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"not what a repair remembers: {error!r}") from error


def recalled(text: str, table: str, now_ms: int, limits: Limits) -> Memory:
    """What is still worth knowing of it: what nobody tried for so long is mended, or gone.

    :param table: whose memory it is.
    :raises SessionError: it cannot be read.
    """
    try:
        return from_text(text).since(now_ms - 2 * limits.longest_backoff_ms)
    except ValueError as error:
        raise SessionError(f"what the repair of {table} remembers cannot be read", why=str(error)) from error


def _try(fields: dict[str, object]) -> Try:
    made = Try(**fields)  # type: ignore[arg-type]
    return fitting(
        Try(Kind(made.kind), Means(made.means), made.at_ms, made.until_ms, made.times, tuple(made.segments))
    )
