"""Find the directory that a relative path of a job's spec means.

Pinot counts such a path from the folder in which its process was started, which no file records. A table spec
counts from its own folder.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from pinot_assets.authoring.importing.settings_found import Disposition, FoundSettings, ImportNote

_ABSOLUTE: Final = re.compile(r"/|\$\{|[A-Za-z][A-Za-z0-9+.-]*:")
"""A location that Pinot does not resolve from the folder in which its job or Minion was started."""


def is_relative(location: str) -> bool:
    """Whether the directory depends on where a process was started."""
    return _ABSOLUTE.match(location) is None


def with_absolute_path(
    ingestion: FoundSettings, job_file: Path, here: Path, notes: list[ImportNote]
) -> FoundSettings:
    """Return the ingestion of a job's spec with an absolute `inputDirURI`, as far as the directory is found.

    Look for it from the current folder, where the job may have been started as well, then from the folder of
    the job's spec and those around it: paths in the examples of Pinot begin in the distribution's folder.

    :param job_file: the file of the job's spec.
    :param here: the current folder.
    :param notes: gets a line if the path is changed.
    """
    location = ingestion.settings.get("inputDirURI")
    if not isinstance(location, str) or not is_relative(location):
        return ingestion
    around = [folder for folder in job_file.absolute().parents if folder != folder.parent]
    for base in (here.absolute(), *around):
        folder = os.path.normpath(base / location)
        if os.path.isdir(folder):
            why = (
                f"{location} is relative, and Pinot counts it from the folder in which the job is started; "
                f"it exists from {base}, so that is taken"
            )
            notes.append(ImportNote(Disposition.CHANGED, "inputDirURI", why))
            return replace(ingestion, settings=ingestion.settings | {"inputDirURI": folder})
    return ingestion
