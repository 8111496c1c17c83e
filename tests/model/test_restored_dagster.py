"""ZooKeeper, staging area and Dagster's database put back, in every combination: the files sensor launches a
run or says what stands against it, runs converge, and Dagster has the partitions of the files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext

import dagster as dg
import pytest
from fakes.stores.memory import open_memory
from model.world.lives import PUSHES, make_table, write
from model.world.restored import (
    STAGINGS,
    ZOOKEEPERS,
    between_sessions,
    converge,
    publish_twice,
    rows,
    snapshot,
    store_of,
    take_backup,
    watch,
)
from model.world.table import TABLE, ModelTable

from pinot_assets.assets.history import TableHistory
from pinot_assets.assets.partitions import ALL_FILES
from pinot_assets.resources import PinotResource
from pinot_assets.sensors import files
from pinot_assets.session.stores.staging import Staging


class Database:
    """One of Dagster, and the files sensor that keeps its cursor there."""

    def __init__(self, instance: dg.DagsterInstance, table: ModelTable) -> None:
        self._instance, self._table = instance, table
        self._cursor: str | None = None

    def tick(self) -> dg.SensorResult:
        """Of the files sensor."""
        resources = {"pinot": PinotResource()}
        with dg.build_sensor_context(self._instance, cursor=self._cursor, resources=resources) as context:
            result = files.files_sensor(self._table.spec)(context)
        assert isinstance(result, dg.SensorResult)
        self._cursor = result.cursor
        return result

    @property
    def files(self) -> set[str]:
        """Those that have a partition."""
        known = TableHistory(self._instance, self._table.spec).partitions()
        return {name.rpartition("/")[2] for name in known if name != ALL_FILES}


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[ModelTable], Database]]:
    """Opens an empty one, whose sensor sees that table."""
    monkeypatch.setenv("PINOT_CONTROLLER_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("PINOT_ZOOKEEPER", "127.0.0.1:9")
    with dg.DagsterInstance.ephemeral() as instance:

        def opened(table: ModelTable) -> Database:
            monkeypatch.setattr(files, "open_staging", lambda _: Staging(table.staging))
            monkeypatch.setattr(files, "open_source", lambda _: open_memory(table.source.uri))
            monkeypatch.setattr(files, "open_session_store", lambda *_: nullcontext(store_of(table)))
            return Database(instance, table)

        yield opened


BACKUP, AFTER = "before the backup", "after it"
DAGSTERS = {"new": (BACKUP, AFTER), "old": (BACKUP,), "lost": ()}
"""When each had its ticks: one that is put back knows nothing of what came after, as if it had never been."""

SCENES = [
    *(("sync", zk, staged, db) for zk in ZOOKEEPERS for staged in STAGINGS for db in DAGSTERS),
    *((m, "old nodes", staged, "old") for m in ("append", "swap", *PUSHES) for staged in STAGINGS),
]


@pytest.mark.parametrize(("mode", "zookeeper", "staging", "dagster"), SCENES)
def test_r02_r17_every_combination_of_backups_converges(
    mode: str,
    zookeeper: str,
    staging: str,
    dagster: str,
    database: Callable[[ModelTable], Database],
) -> None:
    table = make_table(mode)
    known, ticks = database(table), DAGSTERS[dagster]
    between_sessions(table)
    if BACKUP in ticks:
        known.tick()
    backup = take_backup(table)
    publish_twice(table)
    if AFTER in ticks:
        known.tick()

    STAGINGS[staging](table, backup)
    ZOOKEEPERS[zookeeper](table, backup)
    shown, before = watch(table), rows(table)
    write(Z="Z1")(table)
    first = known.tick()
    if (zookeeper, staging) == ("new", "old"):
        assert "restore the object from a backup" in str(first.skip_reason)
    else:
        assert first.run_requests, "there is Z to publish"
    assert shown == [before], "a sensor changes nothing that queries see"
    converge(table)
    assert not known.tick().run_requests, "all is published"
    assert known.files == set(table.files)
    assert set(snapshot(table).segments) == table.pinot.visible_segments(TABLE)
