"""Spark's Python daemon with this package imported before it forks, so that no worker has to.

Spark's setting `spark.python.daemon.module` names it; it is the one of Spark in every other respect.
"""

from __future__ import annotations

from pyspark.daemon import manager

import pinot_assets.ingest.task  # noqa: F401  # what every worker would import first

if __name__ == "__main__":
    manager()
