"""The client of Pinot for REALTIME tables: reads and writes."""

from __future__ import annotations

from pinot_assets.pinot.realtime.reads import RealtimeReads
from pinot_assets.pinot.realtime.writes import RealtimeWrites


class RealtimePinot(RealtimeReads, RealtimeWrites):
    """One Pinot cluster, for REALTIME tables. Thread-safe; close it, or use it in a `with`."""
