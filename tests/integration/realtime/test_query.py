"""`query` and `status` of a REALTIME table on real Kafka, also while a server does not answer."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import yaml
from fakes.processes.shell import call
from fakes.realtime.kafka_table import Clicks
from fakes.realtime.specs import BLOCK, SCHEMA, TABLE

from pinot_assets.core.json_object import JsonObject
from pinot_assets.settings.local_stack import SERVERS, StackState, load_record

ROWS = 200


def typed(clicks: Clicks, folder: Path, *words: str) -> tuple[int, str, str]:
    """Exit code, standard output and error of a command."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PINOT_")} | {
        "PINOT_CONTROLLER_URL": clicks.stack.controller_url,
        "PINOT_ZOOKEEPER": clicks.stack.zookeeper,
        "PINOT_CLUSTER": clicks.stack.cluster,
    }
    return call(words, str(folder), environment)


@contextmanager
def paused(stack: StackState, server: str) -> Iterator[None]:
    """The process stands still for as long as ZooKeeper takes it for alive."""
    record = load_record(stack.home)
    assert record is not None
    process = psutil.Process(record.processes[server].pid)
    process.suspend()
    try:
        yield
    finally:
        process.resume()


def answered(clicks: Clicks) -> None:
    clicks.send(ROWS)
    clicks.until(lambda state: len(state.queryable) == 2 and set(state.queryable.values()) == {ROWS})


def test_what_a_silent_server_leaves_out_is_said(clicks: Clicks, tmp_path: Path) -> None:
    answered(clicks)
    words = ("query", f"SELECT COUNT(*) FROM {clicks.name}", "--timeout", "1", "--json")
    code, out, _ = typed(clicks, tmp_path, *words)
    assert (code, json.loads(out)["rows"]) == (0, [[ROWS]])
    part: JsonObject = {"partial": False}
    with paused(clicks.stack, SERVERS[0]):
        for _ in range(10):  # by turns, a query has both segments from the server that answers
            code, out, err = typed(clicks, tmp_path, *words)
            if (part := json.loads(out))["partial"]:
                break
    assert part["partial"], part
    assert (code, part["exit"]) == (2, 2)
    assert part["servers"] == {"asked": 2, "answered": 1}
    assert 427 in [one["code"] for one in part["exceptions"]]
    assert part["rows"][0][0] < ROWS
    assert "partial: " in err


def test_a_table_of_a_stream_has_a_line(clicks: Clicks, tmp_path: Path) -> None:
    answered(clicks)
    (tmp_path / "tables").mkdir()
    spec = {
        "schema": {**SCHEMA, "schemaName": clicks.name},
        "table": {**TABLE, "tableName": clicks.name},
        "realtime": BLOCK,
    }
    (tmp_path / "tables" / f"{clicks.name}.yaml").write_text(yaml.safe_dump(spec))
    code, out, err = typed(clicks, tmp_path, "status", "--json")
    assert code == 0, out + err
    [value] = json.loads(out)
    assert (value["table"], value["state"], value["rows"]) == (clicks.table, "consuming", ROWS)
