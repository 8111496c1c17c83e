"""`run` on a real Pinot, ended while Spark starts, or reads a file that never comes: no process and no folder
stays."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from fakes.processes.middles import Place, a_bucket, a_jvm, place, started
from fakes.tables import SYNC, write_table
from fakes.waiting import until

from pinot_assets.core.files import temporary_folder
from pinot_assets.pinot import HttpPinotClient, PinotConnection
from pinot_assets.settings.local_stack import StackState

pytestmark = [pytest.mark.integration, pytest.mark.spark]


@pytest.fixture
def table() -> str:
    return f"killed_{time.time_ns()}"


@pytest.fixture
def here(table: str, tmp_path: Path, stack: StackState, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """The table is in Pinot, and has one file, in a bucket that gives no file."""
    monkeypatch.setenv("TABLE_KEY", "key")
    with place(tmp_path) as here, HttpPinotClient(PinotConnection(stack.controller_url)) as pinot:
        here.environment |= {
            "PINOT_CONTROLLER_URL": stack.controller_url,
            "PINOT_ZOOKEEPER": stack.zookeeper,
        }
        bucket = {
            "inputDirURI": "s3://bucket/x",
            "input.fs.prop.region": "us-east-1",
            "input.fs.prop.endpoint": f"http://127.0.0.1:{here.port}",
            "input.fs.prop.accessKey": "${TABLE_KEY}",
            "input.fs.prop.secretKey": "${TABLE_KEY}",
        }
        spec = write_table(tmp_path, table, SYNC | bucket)
        pinot.put_schema(spec.schema_json)
        pinot.create_table(spec.table_json)
        yield here
        pinot.delete_table(table)
        pinot.delete_schema(table)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_run_with_spark_at_work(here: Place, table: str, number: signal.Signals) -> None:
    reads = a_bucket(here)
    with started(here, f"run {table}") as process:
        until(lambda: reads(process.pid) and any(here.tmp.glob("pinot-assets-build-*")), 120)
        assert process.poll() is None
        assert len(here.marked()) >= 5, "it, Spark's JVM, daemon and worker, and the shell that waits"
        os.killpg(process.pid, number) if number == signal.SIGINT else process.kill()
        assert process.wait(30) == (130 if number == signal.SIGINT else -number)
    until(lambda: not here.marked())
    with temporary_folder("next", here.tmp):
        pass
    assert [path.name for path in here.tmp.iterdir()] == []
    if number == signal.SIGINT:
        assert (
            "interrupted; what was done so far is stored; run it again to continue" in here.said.read_text()
        )
        assert "Traceback" not in here.said.read_text()


@pytest.mark.parametrize(
    ("words", "signals", "code"),
    [
        ("run", [signal.SIGINT], 130),
        ("run", [signal.SIGINT, signal.SIGINT], 130),
        ("run", [signal.SIGKILL], -signal.SIGKILL),
        ("watch", [signal.SIGTERM, signal.SIGTERM], 143),
    ],
)
def test_with_a_spark_that_starts(
    here: Place, table: str, words: str, signals: Sequence[signal.Signals], code: int
) -> None:
    """More of the moments of a start, and Spark with a master of one's own: `test_spark_start_killed.py`."""
    lists, starts = a_bucket(here), a_jvm(here, waits_in="jvm")
    with started(here, f"{words} {table}") as process:
        until(lambda: lists(process.pid) or starts(process.pid) or process.poll() is not None, 120)
        assert process.poll() is None, here.said.read_text()
        for number in signals:
            if process.poll() is None:
                os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
            time.sleep(0.02)  # of two that come together the second is lost
        assert process.wait(30) == code, here.said.read_text()
    until(lambda: not here.marked())
    with temporary_folder("next", here.tmp):
        pass
    assert [path.name for path in here.tmp.iterdir()] == []
