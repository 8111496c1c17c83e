"""Spark's Python daemon, which imports this package before it forks, so that no worker has to import it.

Spark's setting `spark.python.daemon.module` names this module. Otherwise it is Spark's own daemon.
"""

from __future__ import annotations

from pyspark.daemon import manager

import pinot_assets.ingest.task  # noqa: F401  # what every worker would import first

if __name__ == "__main__":
    manager()
