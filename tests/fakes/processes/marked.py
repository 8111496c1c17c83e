"""Processes that a test started, and what they started in turn, found by a mark in their environment."""

from __future__ import annotations

from typing import Final

import psutil

MARK: Final = "PINOT_ASSETS_TEST_MARK"
"""Variable of the environment, which children inherit."""


def marked(mark: str) -> list[str]:
    """Process ids and command lines of those whose `MARK` has this value."""
    lines = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark:
                lines.append(f"{process.pid} {' '.join(process.cmdline())[:200]}")
        except psutil.Error:
            continue
    return lines
