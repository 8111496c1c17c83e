"""A table's partitions in the Dagster of this environment: as they are now, and as its spec has them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import dagster as dg

from pinot_assets.assets.history import TableHistory
from pinot_assets.assets.partition_events import PartitionEvents
from pinot_assets.assets.runs import runs_under_way
from pinot_assets.errors import PinotAssetsError
from pinot_assets.session.detect.observe import list_source, observe
from pinot_assets.session.stores.clients import open_session_store, open_source, open_staging
from pinot_assets.settings.environment import load_settings
from pinot_assets.settings.local_stack import default_home
from pinot_assets.table_spec import TableSpec


@dataclass(frozen=True, slots=True)
class Spread:
    """How the files of one table are spread over partitions.

    :ivar history: what Dagster knows of the table.
    :ivar now: as they are spread now.
    :ivar target: as the table spec alone would have it.
    """

    instance: dg.DagsterInstance
    spec: TableSpec
    history: TableHistory
    now: PartitionEvents
    target: PartitionEvents

    def refuse_beside_runs(self) -> None:
        """Nothing is moved below a run.

        :raises PinotAssetsError: a run of the table is under way.
        """
        if running := runs_under_way(self.instance, self.spec):
            raise PinotAssetsError(
                f"run {running[0].run_id} of {self.spec.name} is under way",
                why="Dagster fails a step whose partition has gone",
                hint=f"stop the sensor {self.spec.asset_name}_files, wait for the run to end, and run this "
                "again",
            )


@contextmanager
def open_spread(spec: TableSpec) -> Iterator[Spread]:
    """Read Dagster, the ledger and the source of a table.

    :raises PinotAssetsError: there is no Dagster instance, or something cannot be read.
    """
    if not os.environ.get("DAGSTER_HOME") and (default_home() / "dagster").is_dir():
        os.environ["DAGSTER_HOME"] = str(default_home() / "dagster")
    if not os.environ.get("DAGSTER_HOME"):
        raise PinotAssetsError(
            "no Dagster instance to talk to",
            why="DAGSTER_HOME is not set, and `pinot-assets dev` has not run here",
            hint="export DAGSTER_HOME=<the folder of its dagster.yaml>",
        )
    with dg.DagsterInstance.get() as instance:
        history = TableHistory(instance, spec)
        with open_session_store(spec, load_settings()) as store:
            snapshot = observe(store, open_staging(spec)).snapshot
        files = list_source(spec, open_source(spec)).files
        now = PartitionEvents.take(spec, files, snapshot, history.partitions())
        yield Spread(instance, spec, history, now, PartitionEvents.take(spec, files, snapshot, ()))
