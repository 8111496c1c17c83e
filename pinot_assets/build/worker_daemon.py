"""Spark's Python daemon, which does before it forks what every worker would do: import this package.

Spark's setting `spark.python.daemon.module` names this module. Otherwise it is Spark's own daemon.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Container, Sequence
from pathlib import Path


def installed_first(path: Sequence[str]) -> list[str]:
    """Return Python's path with the archives of an installed PySpark behind the folder that it is in.

    Spark puts `pyspark/python/lib/*.zip` first. Python stores no bytecode for an archive: the daemon and each
    worker would compile the same sources again, half a second of CPU each. An archive of another PySpark
    stays where it is, because it fits the JVM.
    """
    folders = {Path(entry).resolve() for entry in path}
    last = [entry for entry in path if _is_archive_of_pyspark_in(folders, Path(entry).resolve())]
    return [*(entry for entry in path if entry not in last), *last]


def _is_archive_of_pyspark_in(folders: Container[Path], entry: Path) -> bool:
    lib = entry.parent
    return (
        entry.suffix == ".zip"
        and lib.parts[-3:] == ("pyspark", "python", "lib")
        and lib.parents[2] in folders
    )


def main() -> None:
    """Run the daemon."""
    sys.path[:] = installed_first(sys.path)
    # Nothing of what is imported becomes garbage, but Python would look through it again and again: while it
    # is imported and, because Spark says so, after each task, which takes as long as to build a small file.
    gc.disable()

    from pyspark.daemon import manager

    import pinot_assets.ingest.spark.tasks  # noqa: F401  # what every worker would import first
    from pinot_assets.core.this_machine import convert_without_pandas

    convert_without_pandas()
    gc.freeze()
    gc.enable()
    manager()


if __name__ == "__main__":
    main()
