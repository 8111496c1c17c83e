"""Spark's Python daemon, which does before it forks what every worker would do: import this package.

Spark's setting `spark.python.daemon.module` names this module. Otherwise it is Spark's own daemon.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path


def without_archives(path: Sequence[str]) -> list[str]:
    """Return Python's path without the archives of a PySpark whose installed modules are in the path, too.

    Spark puts its archives first. Python stores no bytecode for an archive: the daemon and each worker would
    compile the same sources again, half a second of CPU each. Archives of another PySpark stay where they
    are, because they fit the JVM.
    """
    folders = [entry for entry in path if os.path.isdir(entry)]
    pyspark, py4j = (PathFinder.find_spec(name, folders) for name in ("pyspark", "py4j"))
    if pyspark is None or pyspark.origin is None or py4j is None:
        return [*path]
    home = Path(pyspark.origin).resolve().parent
    return [entry for entry in path if not (os.path.isfile(entry) and home in Path(entry).resolve().parents)]


def main() -> None:
    """Run the daemon."""
    sys.path[:] = without_archives(sys.path)
    sys.path_importer_cache.clear()  # a worker would list the archives again
    # Nothing of what is imported becomes garbage, but Python would look through it again and again: while it
    # is imported and, because Spark says so, after each task, which takes as long as to build a small file.
    gc.disable()

    from pinot_assets.core.this_machine import convert_without_pandas, numpy_settings

    os.environ.update(numpy_settings(os.environ))  # before numpy is imported

    from pyspark.daemon import manager

    import pinot_assets.ingest.spark.tasks  # noqa: F401  # what every worker would import first

    import_module("pyspark.worker")
    import_module("numpy.ma")  # by Arrow, with the first array that it takes from numpy
    convert_without_pandas()
    gc.freeze()
    gc.enable()
    manager()


if __name__ == "__main__":
    main()
