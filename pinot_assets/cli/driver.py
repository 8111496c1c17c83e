"""Open the driver of a command, with its progress on standard error and the log of its Spark in a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pinot_assets.cli.json_progress import JsonProgress
from pinot_assets.cli.progress import ConsoleProgress
from pinot_assets.cli.terminal import new_console
from pinot_assets.core.decision_log import LogFormat
from pinot_assets.core.files import new_log
from pinot_assets.core.interrupts import saying
from pinot_assets.core.this_machine import user_here
from pinot_assets.errors import BuildError
from pinot_assets.ingest.spark.on_demand import SparkOnDemand
from pinot_assets.lineage_events.sending import lineage_after
from pinot_assets.metrics.pushing import pushed_after
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.clients import open_clients
from pinot_assets.session.values.progress import RunPhase
from pinot_assets.settings.environment import load_log_format, load_settings
from pinot_assets.table_spec import TableSpec


@contextmanager
def open_driver(spec: TableSpec, command: str) -> Iterator[Driver]:
    """Yield the driver of a table for a command; release its lease and close its connections at the end."""
    settings, log = load_settings(), new_log("spark")
    with saying("what was done so far is stored; run it again to continue"), _progress() as progress:
        progress.begin(RunPhase.CONNECT)
        with open_clients(spec, settings, SparkOnDemand(progress.starting_spark, log)) as clients:
            driver = Driver(spec, clients, f"pinot-assets {command}", progress, user_here())
            with (
                lineage_after(driver, settings.pinot.controller_url, progress.note),
                pushed_after(driver, progress.note),
                _named_in_errors(log),
            ):
                yield driver


def _progress() -> ConsoleProgress | JsonProgress:
    return (
        JsonProgress() if load_log_format() is LogFormat.JSON else ConsoleProgress(new_console(stderr=True))
    )


@contextmanager
def _named_in_errors(log: Path | None) -> Iterator[None]:
    """Let Spark's errors name the log of its JVM, if that wrote anything."""
    try:
        yield
    except BuildError as error:
        if log is not None and log.exists() and log.stat().st_size:
            error.hint = "; ".join(filter(None, (error.hint, f"Spark's log is {log}")))
        raise
