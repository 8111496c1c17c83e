"""The files of a new project: what the docs tell people to use who have no clone of the repository.

They are in the folder `project` beside this module. In the repository these are links to the files that
`make dev` uses; in a wheel they are the files themselves.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Final

from pinot_assets.core.files import write_new
from pinot_assets.table_spec.tables.load import write_new_spec

_SHIPPED: Final = Path(__file__).with_name("project")
_TABLES: Final = Path("tables")


class Scaffolded(StrEnum):
    """What happened to one file of a project."""

    WRITTEN = "written"
    SAME = "same"
    """It was there already, as this release ships it."""
    KEPT = "kept"
    """It was there already and differs from what this release ships."""


def shipped_file(name: str) -> Path:
    """Return where a file of the project is in this installation.

    :param name: its path below the project's folder, such as `dagster.yaml`.
    """
    return _SHIPPED / name


def shipped_names() -> list[str]:
    """Return the paths of all files of a project, below its folder, in order."""
    return sorted(str(path.relative_to(_SHIPPED)) for path in _SHIPPED.rglob("*") if path.is_file())


def write_project(folder: Path) -> dict[str, Scaffolded]:
    """Write the files that are missing in the folder; a file that is there stays as it is.

    :returns: what happened to each file, by its path below the folder, in order.
    :raises SpecError: the sample table would make the loader leave out a table of the folder.
    :raises OSError: a file cannot be written.
    """
    return {name: _write(folder / name, name) for name in shipped_names()}


def _write(target: Path, name: str) -> Scaffolded:
    text = shipped_file(name).read_text(encoding="utf-8")
    write = write_new_spec if Path(name).parent == _TABLES and target.suffix == ".yaml" else write_new
    try:
        write(target, text)
    except FileExistsError:
        is_same = target.is_file() and target.read_bytes() == text.encode()
        return Scaffolded.SAME if is_same else Scaffolded.KEPT
    return Scaffolded.WRITTEN
