"""Processes forked from a server that has imported the program, so that a start costs no more than a fork.

What is forked is a process of its own, which any signal ends like any other.
"""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

context = multiprocessing.get_context("forkserver")

# What is imported late, too: pandas, where there is one, by pyarrow.
_PRELOADED = (
    "crash.driver", "obstore.store", "httpcore", "pandas", "dagster", "prometheus_client", "simpy",
    "pinot_assets.cli.main", "pinot_assets.ingest.spark.builder", "pinot_assets.cli.realtime.group",
    "pinot_assets.scheduling.files_tick", "pinot_assets.metrics.collector",
    "pinot_assets.assets.partition_events",
)  # fmt: skip


def preload() -> None:
    """Let the fork server import everything once, before the first process is forked."""
    here = str(Path(__file__).parents[2])
    paths = [here, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(path for path in paths if path))
    context.set_forkserver_preload([*_PRELOADED])
