"""Where the project lies, for tests that read its pages, samples and sources."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
