"""What operations on a REALTIME table are given beside the client of Pinot."""

from __future__ import annotations

from collections.abc import Callable

from pinot_assets.realtime.model.state import RealtimeState

Reader = Callable[[], RealtimeState]
"""Reads the table anew.

:raises PinotError: what nothing can be decided without did not answer.
"""

Sweeper = Callable[[str], None]
"""Deletes a left-over upload (`<segment>.tmp.<uuid>`) from the table's folder in the deep store."""

Tell = Callable[[str], None]
"""Hears, line by line, what is done."""
