"""A task's folder on the worker's disk."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from pinot_assets.core.files import temporary_folder


def scratch_folder() -> AbstractContextManager[Path]:
    """A folder that is gone afterwards; also removes what killed tasks left behind."""
    return temporary_folder("build")
