"""Dagster on Postgres, once for real: a sensor's tick, the queue and a whole run of one table.

Needs Debian's package `postgresql` and starts a server of its own. `make postgres-test` names this file;
pytest does not find it by itself, so `make test` needs no Postgres.
"""

from __future__ import annotations

import os
import pwd
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import psutil
import pytest
import sqlalchemy
from fakes.tables import write_files, write_table

from pinot_assets.assets.keys import TABLE_TAG, keys_of
from pinot_assets.local import processes
from pinot_assets.local.processes import stop_processes
from pinot_assets.pinot import HttpPinotClient
from pinot_assets.settings.environment import load_settings
from pinot_assets.settings.local_stack import StackState
from pinot_assets.table_spec import load_tables
from pinot_assets.table_spec.tables.apply import apply_plan, plan_apply

pytestmark = pytest.mark.timeout(1200)

ROOT = Path(__file__).parents[2]
TABLE = "on_postgres"


def until(holds: Callable[[], bool], seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.5)


def program(name: str) -> str:
    """Debian keeps the server's programs apart, by version."""
    beside = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = shutil.which(name) or (str(beside[-1]) if beside else None)
    assert found, f"{name} is not here: install Debian's package postgresql"
    return found


def as_postgres(command: list[str]) -> list[str]:
    """Postgres does not run as root; Debian's package brings a user for it."""
    return ["runuser", "-u", "postgres", "--", *command] if os.geteuid() == 0 else command


@pytest.fixture
def postgres(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a fresh server on loopback, also in the variables that docs/deploy.md names."""
    home = Path(tempfile.mkdtemp(prefix="pinot-assets-postgres-"))
    password, port = secrets.token_urlsafe(12), processes.free_port(())
    (home / "password").write_text(password)
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        for path in (home, home / "password"):
            os.chown(path, user.pw_uid, user.pw_gid)
    initdb = [program("initdb"), "-D", f"{home}/data", "-U", "dagster", "--auth=scram-sha-256"]
    subprocess.run(
        as_postgres([*initdb, f"--pwfile={home}/password"]), check=True, capture_output=True, cwd="/"
    )
    serve = [program("postgres"), "-D", f"{home}/data", "-c", "listen_addresses=127.0.0.1", "-p", str(port)]
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            as_postgres([*serve, "-c", "unix_socket_directories="]), stdout=log, stderr=log, cwd="/"
        )
    for name, value in {"HOST": "127.0.0.1", "PORT": port, "USER": "dagster", "PASSWORD": password}.items():
        monkeypatch.setenv(f"DAGSTER_PG_{name}", str(value))
    monkeypatch.setenv("DAGSTER_PG_DB", "postgres")
    try:
        url = f"postgresql://dagster:{password}@127.0.0.1:{port}/postgres"
        until(lambda: answers(url), 30, f"Postgres does not come up, see {home}/log")
        yield url
    finally:
        end(process)
        shutil.rmtree(home)


def end(process: subprocess.Popen[bytes]) -> None:
    """With all that it started; it is our child, so it is for us to wait for it."""
    below = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    process.wait(60)
    stop_processes(below, grace=20)


def answers(url: str) -> bool:
    engine = sqlalchemy.create_engine(url)
    try:
        with engine.connect():
            return True
    except sqlalchemy.exc.OperationalError:
        return False
    finally:
        engine.dispose()


@pytest.fixture
def dagster_home(
    postgres: str, stack: StackState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """An instance as docs/deploy.md describes it, its daemon running, for one table on the local stack."""
    home = tmp_path / "dagster"
    home.mkdir()
    (storage,) = re.findall(r"```yaml\n(storage:\n.*?)```", (ROOT / "docs/deploy.md").read_text(), re.DOTALL)
    (home / "dagster.yaml").write_text(f"{(ROOT / 'dagster.yaml').read_text()}\n{storage}")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.setenv("PINOT_ASSETS_TABLES", str(tmp_path / "tables"))
    monkeypatch.setenv("PINOT_ASSETS_PROFILE", "production")
    monkeypatch.setenv("PINOT_ASSETS_ALLOW_OPEN_ZOOKEEPER", "true")
    monkeypatch.setenv("PINOT_ASSETS_SPARK_MASTER", "local[2]")
    monkeypatch.setenv("PINOT_CONTROLLER_URL", stack.controller_url)
    monkeypatch.setenv("PINOT_ZOOKEEPER", stack.zookeeper)
    spec = write_table(tmp_path, TABLE)
    write_files(tmp_path, F1="a b", F2="c")
    with HttpPinotClient(load_settings().pinot) as pinot:
        apply_plan(plan_apply(spec, pinot), pinot)
        try:
            dagster("sensor", "start", f"{TABLE}_files")
            with daemon(home):
                yield home
        finally:
            pinot.delete_table(TABLE)
            pinot.delete_schema(TABLE)


@contextmanager
def daemon(home: Path) -> Iterator[None]:
    """Dagster's daemon and the code servers that it starts."""
    command = [sys.executable, "-m", "dagster._daemon", "run", "-w", str(ROOT / "workspace.yaml")]
    with (home / "daemon.log").open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
    try:
        yield
    finally:
        end(process)


def dagster(*arguments: str) -> None:
    command = [sys.executable, "-m", "dagster", *arguments, "-w", str(ROOT / "workspace.yaml")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr


def shown(pinot: HttpPinotClient) -> list[str]:
    broker = pinot.broker(pinot.brokers(TABLE)[0])
    return sorted(str(value) for (value,) in broker.query(f'SELECT v FROM "{TABLE}" LIMIT 100').rows)


def test_a_tick_a_queue_and_a_whole_run(dagster_home: Path, postgres: str, tmp_path: Path) -> None:
    keys = keys_of(load_tables(tmp_path / "tables")[TABLE])
    with dg.DagsterInstance.get() as instance:
        assert "Postgres" in type(instance.event_log_storage).__name__
        until(lambda: instance.get_runs_count() > 0, 420, f"no run, see {dagster_home}/daemon.log")
        until(lambda: instance.get_runs()[0].is_finished, 600, "the run does not end")
        (run,) = instance.get_runs()
        assert run.status is dg.DagsterRunStatus.SUCCESS, [
            record.event_log_entry.user_message for record in instance.get_records_for_run(run.run_id).records
        ]
        assert run.tags[TABLE_TAG] == TABLE
        assert instance.get_latest_materialization_event(keys.snapshot)
    engine = sqlalchemy.create_engine(postgres)
    with engine.connect() as connection:
        for table in ("runs", "event_logs", "job_ticks", "asset_check_executions", "dynamic_partitions"):
            rows = connection.execute(sqlalchemy.text(f"select count(*) from {table}")).scalar()
            assert rows, f"nothing is stored in {table}"
    engine.dispose()
    assert not list(dagster_home.rglob("*.db")), "something still went to SQLite"
    with HttpPinotClient(load_settings().pinot) as pinot:
        assert shown(pinot) == ["a", "b", "c"]
