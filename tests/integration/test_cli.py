"""The command line on a real Pinot, as a person types it: `python -m pinot_assets …`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from fakes.monitoring.pushgateway import pushgateway
from fakes.processes.shell import call
from fakes.project import ROOT
from fakes.tables import write_files, write_table

from pinot_assets.core.json_object import JsonObject
from pinot_assets.pinot import HttpPinotClient, PinotConnection
from pinot_assets.settings.local_stack import StackState

pytestmark = pytest.mark.integration


class Shell:
    """A working directory with one table spec, and the program."""

    def __init__(self, folder: Path, stack: StackState) -> None:
        self.folder = folder
        self.table = f"cli_{time.time_ns()}"
        write_table(folder, self.table)
        self._environment = {name: text for name, text in os.environ.items() if not name.startswith("PINOT_")}
        self._environment |= {
            "PINOT_CONTROLLER_URL": stack.controller_url,
            "PINOT_ZOOKEEPER": stack.zookeeper,
            "PYTHONSAFEPATH": "1",
        }

    def __call__(self, *arguments: str, code: int = 0, **environment: str) -> tuple[str, str]:
        """Standard output and error of one command; it must end with this code and never show a traceback."""
        ended, out, err = self._run(arguments, self._environment | environment)
        assert ended == code, out + err
        assert "Traceback" not in out + err
        return out, err

    def traced_run(self) -> str:
        """What a run shows, and through which modules it went (`tools.trace_run`)."""
        top = str(Path(__file__).parents[2])
        code, out, err = self._start("tools.trace_run", [self.table], self._environment | {"PYTHONPATH": top})
        assert code == 0, out + err
        return out

    def _run(self, arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str, str]:
        return self._start("pinot_assets", arguments, environment)

    def _start(
        self, module: str, arguments: Sequence[str], environment: Mapping[str, str]
    ) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
        return done.returncode, done.stdout, done.stderr

    def status(self) -> JsonObject:
        values: JsonObject = json.loads(self("status", self.table, "--json")[0])
        return values


class QuickShell(Shell):
    """The same in this process: forty starts of Python, and of Spark, would take minutes."""

    def _run(self, arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str, str]:
        return call(arguments, str(self.folder), environment)


@pytest.fixture
def shell(stack: StackState, tmp_path: Path) -> Iterator[Shell]:
    with _cleared(Shell(tmp_path, stack), stack) as shell:
        yield shell


@pytest.fixture
def quick_shell(stack: StackState, tmp_path: Path) -> Iterator[Shell]:
    with _cleared(QuickShell(tmp_path, stack), stack) as shell:
        yield shell


@contextmanager
def _cleared(shell: Shell, stack: StackState) -> Iterator[Shell]:
    """Its table is taken from Pinot at the end."""
    yield shell
    with HttpPinotClient(PinotConnection(stack.controller_url)) as pinot:
        if pinot.get_table_config(shell.table) is not None:
            pinot.delete_table(shell.table)
        if pinot.get_schema(shell.table) is not None:
            pinot.delete_schema(shell.table)


def test_without_work_no_java_starts_and_nothing_of_spark_is_imported(
    shell: Shell, executable: Callable[[str, str], Path]
) -> None:
    table = shell.table
    write_files(shell.folder, F1="a")
    shell("tables", "apply", table, "--yes")
    shell("run", table)
    java = executable("jdk/bin/java", 'touch "$(dirname "$0")/started"; exit 1')
    started = java.with_name("started")
    traced = {
        "JAVA_HOME": str(java.parents[1]),
        "PATH": f"{java.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPROFILEIMPORTTIME": "1",
    }
    unneeded = {
        "pyspark",
        "py4j",
        "pandas.core",
        "dagster",
        "prometheus_client",
        "openlineage.client",
        "sqlglot",
    }
    for command, needless in (("status", unneeded | {"httpx"}), ("run", unneeded)):
        out, err = shell(command, table, **traced)
        imported = {line.rpartition("|")[2].strip() for line in err.splitlines() if "import time:" in line}
        assert "pyarrow" in imported
        assert not needless & imported
        assert not started.exists()
    assert "nothing to do: 1 file listed" in out

    write_files(shell.folder, F2="b")
    shell("run", table, code=1, **traced)
    assert started.exists(), "with a file to build, Java is asked for"


def test_a_table_from_its_spec_to_its_rollback(quick_shell: Shell) -> None:
    shell = quick_shell
    table = shell.table
    assert f"ok {table}" in shell("tables", "validate")[0]
    assert f"schema {table} will be created" in shell("tables", "apply", "--dry-run")[0]
    assert f"applied {table}" in shell("tables", "apply", table, "--yes")[0]
    assert f"schema {table} is up to date" in shell("tables", "apply", "--yes")[0]

    write_files(shell.folder, F1="a b", F2="c")
    assert shell.status()["source"]["listed"] == 2
    plan = json.loads(shell("plan", table, "--json")[0])
    assert (plan["step"], len(plan["files"]["new"])) == ("BEGIN", 2)
    assert "has changed since plan" in shell("run", table, "--plan", "0" * 8, code=2)[1]
    with pushgateway() as gateway:
        shown, progress = shell("run", table, "--plan", plan["plan"], PINOT_ASSETS_PUSHGATEWAY=gateway.url)
    (pushed,) = gateway.groups.values()
    assert pushed["pinot_assets_run_success", table] == 1
    assert pushed["pinot_assets_run_rows", table] == 3
    assert "2 new, 0 rewritten, 0 deleted; built 2 of 2 files listed" in shown
    assert "switched: 2 files, 2 segments, 3 rows are visible" in shown
    assert "pushed 2 of 2 segments" in progress
    assert "nothing to do: 2 files listed, all published" in shell("run", table)[0]

    write_files(shell.folder, F2="c1", F4="d")
    broken = shell.folder / "source" / "F3[1].csv"
    broken.write_bytes(b"v\n\xff\xfe broken \xff\n")
    shown, said = shell("run", table, code=2)
    assert f"{said}{shown}".count("F3%5B1%5D.csv") == 1
    assert "queries still see the former state" in said
    assert said.splitlines()[-1] == f"  pinot-assets run {table}"
    status = shell.status()
    assert status["published"]["rows"] == 3
    assert status["session"]["state"] == "IN_PROGRESS"
    assert status["session"]["files"]["failed"] == 1
    assert len(status["session"]["failed"]) == 1
    assert status["leaseHolder"] is None
    assert "IN_PROGRESS, retry 0 of 3: 3 files, 2 done, 1 failed" in shell("status", table)[0]

    assert " cleared" in shell("session", "clear", table)[0]
    assert f"{table} has no open session" in shell("session", "clear", table)[0]
    assert shell.status()["session"] is None
    broken.unlink()
    assert "switched: 3 files, 3 segments, 4 rows" in shell("run", table)[0]

    assert "rolled back: 2 files, 3 rows are visible" in shell("rollback", table, "--yes")[0]
    assert shell.status()["heldBack"]["files"] == 2
    assert "held after a rollback" in shell("run", table)[0]
    assert "publishes again what was held" in shell("resume", table)[0]
    assert f"{table} holds nothing back" in shell("resume", table)[0]
    assert "switched: 3 files, 3 segments, 4 rows" in shell("run", table)[0]


def test_few_modules_lead_from_the_command_to_the_switch(shell: Shell) -> None:
    shell("tables", "apply", shell.table, "--yes")
    write_files(shell.folder, F1="a b", F2="c")
    shell("run", shell.table)
    write_files(shell.folder, F2="c1", F3="d")
    shown = shell.traced_run()
    modules = re.findall(r"^ *(\d+) (\S+\.py) \((.+)\)$", shown, re.MULTILINE)
    assert len(modules) <= 25, shown
    longest = max(int(lines) for lines, _, _ in modules)
    assert shown.splitlines()[-1] == f"{len(modules)} modules, the longest of {longest} lines", shown
    assert longest <= 400, shown
    page = re.findall(r"^\| `(\S+\.py)` \| `(.+)` \|$", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    assert page == [(module, effect.replace(shell.table, "TABLE")) for _, module, effect in modules], shown


def test_wrong_input_gets_a_sentence(shell: Shell) -> None:
    table = shell.table
    assert "No such command" in shell("rnu", table, code=2)[1]
    assert f"error: there is no table spec for {table}x" in shell("run", f"{table}x", code=1)[1]
    said = shell("run", table, code=1)[1]
    assert table in said
    assert "pinot-assets tables apply" in said
    assert "error: " in shell("rollback", table, "--yes", code=1)[1]
    said = shell("status", table, code=1, PINOT_ZOOKEEPER="")[1]
    assert "error: PINOT_ZOOKEEPER is not set" in said
    said = shell("tables", "apply", "--yes", code=1, PINOT_CONTROLLER_URL="http://127.0.0.1:9")[1]
    assert "127.0.0.1:9" in said

    spec = shell.folder / "tables" / f"{table}.yaml"
    spec.write_text(spec.read_text().replace("inputFormat: csv", "inputFormat: cvs"))
    shown = shell("tables", "validate", code=1)[0]
    line = 1 + [text.strip() for text in spec.read_text().splitlines()].index("inputFormat: cvs")
    assert f"{table}.yaml:{line}: problem fileIngestion.inputFormat" in shown
    assert f"{table}.yaml:{line}: " in shell("run", table, code=1)[1]


def test_a_table_from_a_sample_of_its_files(shell: Shell, stack: StackState) -> None:
    """`init`, `tables apply`, `run`: what was guessed of csv files is what queries see."""
    table = shell.table
    (shell.folder / "tables" / f"{table}.yaml").unlink()
    files = shell.folder / "clicks"
    files.mkdir()
    for day in (5, 6):
        rows = [f"{day}{n},2024-01-0{day}T10:00:0{n}Z,eu,{n}.5,a;b" for n in range(5)]
        (files / f"{day}.csv").write_text("\n".join(["id,at,region,price,tags", *rows]) + "\n")
    shell("init", "clicks", "--name", table)
    assert f"applied {table}" in shell("tables", "apply", table, "--yes")[0]
    assert "switched: 2 files, 2 segments, 10 rows" in shell("run", table)[0]
    sql = f"SELECT COUNT(*), SUM(price), MAX(id) FROM {table} WHERE tags = 'b' AND \"at\" > 1704412800000"
    with HttpPinotClient(PinotConnection(stack.controller_url)) as pinot:
        assert pinot.broker(pinot.brokers(table)[0]).query(sql).rows == ((10, 25.0, 64.0),)
