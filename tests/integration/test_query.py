"""`query`, `status` of all tables and what a run points to, on a real Pinot."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.processes.shell import call
from fakes.tables import write_files, write_table

from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.json_object import JsonObject
from pinot_assets.pinot import HttpPinotClient, PinotConnection
from pinot_assets.settings.local_stack import StackState

pytestmark = pytest.mark.integration


class Project:
    """A folder with one table, whose files `F1` and `F2` a run has published: three rows.

    :ivar ran: what the run printed.
    """

    def __init__(self, folder: Path, stack: StackState) -> None:
        self.folder, self.stack = folder, stack
        self.table = f"query_{time.time_ns()}"
        self._environment = {name: text for name, text in os.environ.items() if not name.startswith("PINOT_")}
        self._environment |= {
            "PINOT_CONTROLLER_URL": stack.controller_url,
            "PINOT_ZOOKEEPER": stack.zookeeper,
        }
        write_table(folder, self.table)
        write_files(folder, F1="a b", F2="c")
        self.type("tables", "apply", self.table, "--yes")
        self.ran = self.type("run", self.table)[0]

    def type(self, *words: str, code: int = 0) -> tuple[str, str]:
        """Standard output and error of a command, which must end with this code."""
        ended, out, err = self.tried(*words)
        assert ended == code, out + err
        return out, err

    def tried(self, *words: str) -> tuple[int, str, str]:
        """Exit code, standard output and error of a command."""
        ended, out, err = call(words, str(self.folder), self._environment)
        assert "Traceback" not in out + err
        return ended, out, err

    def asked(self, *words: str, code: int = 0) -> JsonObject:
        """The answer to a query as JSON."""
        values: JsonObject = json.loads(self.type("query", *words, "--json", code=code)[0])
        return values


@pytest.fixture(scope="module")
def project(stack: StackState, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = Project(tmp_path_factory.mktemp("project"), stack)
    yield project
    with HttpPinotClient(PinotConnection(stack.controller_url)) as pinot:
        pinot.delete_table(project.table)
        pinot.delete_schema(project.table)


def test_what_a_run_points_to_shows_its_rows(project: Project) -> None:
    command, console = (line.strip() for line in project.ran.splitlines()[-2:])
    program, *words = shlex.split(command)
    assert program == "pinot-assets"
    head, *rows, summary, servers = project.type(*words)[0].splitlines()
    assert (head, sorted(rows)) == ("v", ["a", "b", "c"])
    assert summary.startswith("3 rows in ")
    assert servers.endswith("2 segments, 3 of 3 documents scanned")
    assert console.startswith(f"{project.stack.controller_url}/#/query?query=")


def test_an_answer_says_where_it_comes_from(project: Project) -> None:
    answer = project.asked(f"SELECT v, COUNT(*) FROM {project.table} GROUP BY v ORDER BY v LIMIT 2")
    assert answer["columns"] == [{"name": "v", "type": "STRING"}, {"name": "count(*)", "type": "LONG"}]
    assert answer["rows"] == [["a", 1], ["b", 1]]
    assert answer["limited"]
    assert not answer["partial"]
    assert answer["broker"] in project.stack.broker_urls
    assert answer["servers"]["asked"] == answer["servers"]["answered"] > 0
    assert (answer["segments"], answer["docsScanned"], answer["totalDocs"]) == (2, 3, 3)


def test_csv_of_a_plan(project: Project) -> None:
    text = project.type("query", f"EXPLAIN PLAN FOR SELECT v FROM {project.table}", "--csv")[0]
    head, *steps = csv.reader(io.StringIO(text))
    assert (head[0], len(steps) > 2) == ("Operator", True)


@pytest.mark.parametrize(
    ("sql", "code"),
    [("SELECT nosuch FROM {table}", 710), ("SELEC * FROM {table}", 150), ("DROP TABLE {table}", 150)],
)
def test_what_pinot_refuses_is_told_in_words(project: Project, sql: str, code: int) -> None:
    out, err = project.type("query", sql.format(table=project.table), code=1)
    assert out == ""
    assert f" {code} " in err
    assert ".java:" not in err
    answer = project.asked(sql.format(table=project.table), code=1)
    assert [one["code"] for one in answer["exceptions"]] == [code]
    assert (answer["rows"], answer["partial"], answer["exit"]) == ([], False, 1)


def test_a_table_that_is_not_there(project: Project) -> None:
    answer = project.asked(f"{project.table}x", code=1)
    assert answer["exceptions"][0]["code"] == 190
    assert project.table in answer["hint"]


def test_a_query_that_takes_too_long_ends(project: Project) -> None:
    """In a millisecond no server answers, or only one of them."""
    ended, out, _ = project.tried("query", f"SET timeoutMs = 1; SELECT v FROM {project.table}", "--json")
    answer = json.loads(out)
    assert answer["exceptions"][0]["code"] in ((427,) if ended == ExitCode.REFUSED else (240, 250, 400, 427))
    assert ended in (ExitCode.ERROR, ExitCode.REFUSED)
    assert answer["partial"] is (ended == ExitCode.REFUSED)


def test_an_insert_starts_no_task(project: Project) -> None:
    project.type("query", f"INSERT INTO {project.table} FROM FILE 'file:///x'", code=2)


def test_a_broker_that_is_down(project: Project) -> None:
    _, err = project.type("query", project.table, "--broker", "http://127.0.0.1:1", code=1)
    assert "no connection for POST http://127.0.0.1:1/query/sql" in err
    second = project.stack.broker_urls[1]
    assert project.asked(project.table, "--broker", second)["broker"] == second


def test_what_is_no_broker(project: Project) -> None:
    _, err = project.type("query", project.table, "--broker", project.stack.controller_url, code=1)
    assert "/query/sql" in err


def test_all_tables_and_one_have_the_same_values(project: Project) -> None:
    [of_all] = json.loads(project.type("status", "--json")[0])
    assert of_all == json.loads(project.type("status", project.table, "--json")[0])
    assert (of_all["state"], of_all["published"]["rows"]) == ("up to date", 3)
    head, line = project.type("status")[0].splitlines()
    assert head.split() == ["table", "mode", "published", "seq", "files", "rows", "state"]
    assert line.split()[0] == project.table
    assert line.split()[-6:] == ["1", "2", "3", "up", "to", "date"]
