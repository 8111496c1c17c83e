"""The Dagster resource `push`: makes one driver per table and run, and releases its lease after the run."""

from contextlib import ExitStack
from typing import cast

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from py4j.protocol import Py4JError
from pydantic import PrivateAttr
from pyspark import SparkContext
from pyspark.sql import SparkSession

from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.lineage_events.sending import lineage_after
from pinot_assets.metrics.pushing import pushed_after
from pinot_assets.resources.pinot import PinotResource
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.clients import open_clients
from pinot_assets.session.values.progress import Progress
from pinot_assets.table_spec import TableSpec


class ConsistentPushResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Drives tables on behalf of Dagster runs."""

    pinot: PinotResource
    spark: LazyPySparkResource

    _used: SparkContext | None = PrivateAttr(default=None)
    _open: ExitStack = PrivateAttr(default_factory=ExitStack)
    _drivers: dict[tuple[str, str], Driver] = PrivateAttr(default_factory=dict)

    def driver(self, spec: TableSpec, run_id: str, progress: Progress, asked_by: str = "") -> Driver:
        """Return the driver of this table in this run; all steps of a process share it.

        :param asked_by: who started the run.
        """
        key = (spec.name, run_id)
        if key not in self._drivers:
            builder = SparkBuilder(self._spark_session, self._spark_context)
            settings = self.pinot.settings()
            clients = self._open.enter_context(open_clients(spec, settings, builder))
            driver = Driver(spec, clients, run_id, progress, asked_by)
            self._open.enter_context(lineage_after(driver, settings.pinot.controller_url, progress.note))
            self._drivers[key] = self._open.enter_context(pushed_after(driver, progress.note))
        self._drivers[key].report_to(progress)
        return self._drivers[key]

    def _spark_session(self) -> SparkSession:
        self._used = self.spark.spark_context
        return cast("SparkSession", self.spark.spark_session)

    def _spark_context(self) -> SparkContext:
        self._used = cast("SparkContext", self.spark.spark_context)
        return self._used

    def spark_ui(self) -> str | None:
        """Return the address of Spark's UI; None if the run did not use Spark, or Spark has no UI."""
        try:
            return self._used.uiWebUrl if self._used is not None else None
        except (Py4JError, OSError):  # Spark died after its work was done; the link is optional
            return None

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:  # noqa: ARG002
        """Release all leases and close all connections."""
        self._drivers.clear()
        self._open.close()
