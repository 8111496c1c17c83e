"""What the commands say: help that teaches, errors as sentences, nothing eaten on the way to the terminal."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.tables import write_table
from rich.console import Console
from typer.testing import CliRunner, Result

from pinot_assets.audit.checks import Finding
from pinot_assets.cli import driver as driven
from pinot_assets.cli import main, table_status
from pinot_assets.cli.commands import run as run_command
from pinot_assets.cli.commands import status as status_command
from pinot_assets.cli.progress import ConsoleProgress
from pinot_assets.core.check_result import Severity
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotAssetsError, PlanOutdated, PreflightRefused, SnapshotIncomplete
from pinot_assets.session.detect.observe import Observation
from pinot_assets.session.driver import Driver
from pinot_assets.session.values import report
from pinot_assets.session.values.hold import NO_HOLD, Hold
from pinot_assets.session.values.state import Mode, ObjectRef, Owner, Pointer, Session, State
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.receipt import Failure, Receipt
from pinot_assets.source import Fingerprint, Unready

ODD = "file:///in/[/red] a[1].csv"
"""A file name that Rich would take for markup."""
SETTINGS = SimpleNamespace(pinot=SimpleNamespace(controller_url="http://controller:9000"))
CONSOLE = "http://controller:9000/#/query?query=SELECT+*+FROM+%22flights%22+LIMIT+10"
SNAPSHOT = Snapshot(1, "t_OFFLINE", "cp1-aaaaaa", Mode.SYNC, "entry", None, "", "", 1_700_000_000_000, ())
SESSION = Session(
    "cp2-bbbbbb",
    2,
    Mode.SYNC,
    "f",
    0,
    ObjectRef("k", "0"),
    State.IN_PROGRESS,
    retry_count=1,
    counts={"done": 3, "failed": 2, "files": 5, "gone": 0},
)


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table `flights` in the working directory, and no Pinot anywhere."""
    write_table(tmp_path, "flights")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PINOT_ASSETS_HOME", str(tmp_path / "home"))
    for name in ("PINOT_CONTROLLER_URL", "PINOT_ZOOKEEPER", "PINOT_ASSETS_TABLES"):
        monkeypatch.delenv(name, raising=False)


def call(*arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(main.app, list(arguments), input=answer)


def program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str]:
    """The program as it is installed: exit code and standard error."""
    monkeypatch.setattr("sys.argv", ["pinot-assets", *arguments])
    with pytest.raises(SystemExit) as ended:
        main.main()
    code = ended.value.code
    assert isinstance(code, int)
    return code, capsys.readouterr().err


class FakeDriver:
    """Answers with what it is given; an error is raised."""

    gate_and_publish = Driver.gate_and_publish

    def __init__(self, **answers: Any) -> None:
        self._answers = answers
        self.asked: list[str] = []
        self.clients = SimpleNamespace(now_ms=lambda: 0)
        self.steps: JsonObject = {}

    def __enter__(self) -> FakeDriver:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, step: str) -> Any:
        def answer(*_: Any) -> Any:
            self.asked.append(step)
            found = self._answers[step]
            if isinstance(found, BaseException):
                raise found
            return found

        return answer


Drive = Callable[..., FakeDriver]


@pytest.fixture
def drive(monkeypatch: pytest.MonkeyPatch) -> Drive:
    """`drive(trigger=…, audit=…)`: the next command drives this."""

    def use(**answers: Any) -> FakeDriver:
        driver = FakeDriver(**answers)

        @contextmanager
        def clients(*_: Any) -> Iterator[None]:
            yield None

        def made(spec: Any, clients: Any, run_id: str, progress: Any, asked_by: str) -> FakeDriver:
            driver.asked.append(run_id)
            return driver

        monkeypatch.setattr(driven, "open_clients", clients)
        monkeypatch.setattr(driven, "load_settings", lambda: SETTINGS)
        monkeypatch.setattr(run_command, "load_settings", lambda: SETTINGS)
        monkeypatch.setattr(driven, "Driver", made)
        return driver

    return use


# --- help and wrong input --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "teaches"),
    [
        (
            [],
            [
                "pinot-assets doctor",
                "local",
                "tables",
                "run",
                "status",
                "snapshots",
                "rollback",
                "resume",
                "session",
                "dev",
            ],
        ),
        (["run"], ["TABLE", "Exits 0", "2 when files failed", "--tables", "--plan"]),
        (["plan"], ["TABLE", "--json", "Changes nothing", "run --plan"]),
        (["status"], ["TABLE", "--json", "without changing anything"]),
        (["snapshots"], ["TABLE", "--newest", "--json", "Changes nothing"]),
        (["rollback"], ["TABLE", "--to", "--dry-run", "--yes", "pinot-assets resume"]),
        (["resume"], ["TABLE", "rollback"]),
        (["session", "clear"], ["TABLE", "what is published stays"]),
        (["dev"], ["pinot-assets down"]),
        (["down"], ["data are kept"]),
    ],
)
def test_help_teaches(command: list[str], teaches: list[str]) -> None:
    result = call(*command, "--help")
    assert result.exit_code == 0
    text = " ".join(result.output.split())
    for words in teaches:
        assert words in text


def test_dev_never_touches_another_pinot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINOT_CONTROLLER_URL", "http://pinot.example:9000")
    result = call("dev")
    assert isinstance(result.exception, PinotAssetsError)
    assert "only on the local stack" in str(result.exception)


def test_a_command_that_does_not_exist() -> None:
    result = call("runn", "flights")
    assert result.exit_code == 2
    assert "No such command 'runn'" in result.output


@pytest.mark.parametrize(
    "command", [["run"], ["status"], ["rollback", "--yes"], ["resume"], ["session", "clear"]]
)
def test_a_wrong_table_name_is_a_sentence_with_the_right_one(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = program(monkeypatch, capsys, *command, "fligths")
    assert code == 1
    assert said.startswith("error: there is no table spec for fligths")
    assert "flights" in said.splitlines()[1]
    assert "Traceback" not in said


def test_without_a_pinot_the_error_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = program(monkeypatch, capsys, "run", "flights")
    assert code == 1
    assert said.startswith("error: there is no Pinot to connect to")
    assert "pinot-assets local up" in said


def test_a_directory_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = program(monkeypatch, capsys, "status", "flights", "--tables", "nowhere")
    assert code == 1
    assert "nowhere:1: does not exist" in said


def test_what_is_refused_is_no_error_of_the_command(
    drive: Drive, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drive(resume=PreflightRefused("the rebalance is refused", why="downtime", hint="leave it out"))
    code, said = program(monkeypatch, capsys, "resume", "flights")
    assert (code, said) == (2, "error: the rebalance is refused: downtime\n  → leave it out\n")


def test_brackets_in_an_error_are_shown(
    drive: Drive, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drive(resume=PinotAssetsError(f"{ODD} is wrong", why="[bold] is no number", hint="x" * 200))
    code, said = program(monkeypatch, capsys, "resume", "flights")
    assert code == 1
    assert said == f"error: {ODD} is wrong: [bold] is no number\n  → {'x' * 200}\n"


# --- run -------------------------------------------------------------------------------------------


def a_report(result: report.TriggerResult, *failed: Failure) -> report.TriggerReport:
    return report.TriggerReport(result, SESSION, listed=5, new=("a",), failed=failed)


@pytest.mark.parametrize(
    "result", [report.TriggerResult.NOTHING, report.TriggerResult.HELD, report.TriggerResult.NOOP]
)
def test_run_with_nothing_to_do(drive: Drive, result: report.TriggerResult) -> None:
    driver = drive(trigger=a_report(result))
    shown = call("run", "flights")
    assert shown.exit_code == 0
    assert shown.stdout.strip() == a_report(result).summary
    assert driver.asked == ["pinot-assets run", "trigger"]


def test_run_during_an_upload_changes_nothing_and_says_what_it_waits_for(drive: Drive) -> None:
    unready = (Unready(ODD, "is 3 s old, minFileAgeSec is 60"),)
    driver = drive(
        trigger=report.TriggerReport(report.TriggerResult.WAITING, SESSION, listed=5, unready=unready)
    )
    shown = call("run", "flights")
    assert shown.exit_code == 0
    assert shown.stdout.strip() == (
        f"waiting, nothing was changed: 1 file is not ready ({ODD} is 3 s old, minFileAgeSec is 60)"
    )
    assert driver.asked == ["pinot-assets run", "trigger"]


def test_a_planned_run_asks_for_that_plan(drive: Drive) -> None:
    driver = drive(trigger_planned=a_report(report.TriggerResult.NOTHING))
    assert call("run", "flights", "--plan", "0a1b2c3d").exit_code == 0
    assert driver.asked == ["pinot-assets run", "trigger_planned"]


@pytest.mark.parametrize("wanted", ["0a1b2c3d", ""])
def test_a_plan_that_does_not_hold_exits_2(
    drive: Drive, wanted: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also one of a variable that was never set: that is no leave to run whatever comes."""
    driver = drive(trigger_planned=PlanOutdated("flights is another", why=f"{ODD} is new", hint="plan again"))
    code, said = program(monkeypatch, capsys, "run", "flights", "--plan", wanted)
    assert (code, said) == (2, f"error: flights is another: {ODD} is new\n  → plan again\n")
    assert driver.asked == ["pinot-assets run", "trigger_planned"]


CHECKED = tuple(Finding(f"check {n}", True, 1, 1, f"{ODD} is good") for n in range(1200))


def test_run_that_switches_says_how_many_checks_passed_and_ends_on_what_queries_see(drive: Drive) -> None:
    answers = {"audit": (SESSION, CHECKED), "publish": SNAPSHOT, "last_failures": ()}
    drive(trigger=a_report(report.TriggerResult.STAGED), **answers)
    shown = call("run", "flights")
    assert shown.exit_code == 0
    assert shown.stdout.splitlines() == [
        "✓ 1,200 checks passed",
        a_report(report.TriggerResult.STAGED).work,
        "switched: 0 files, 0 segments, 0 rows are visible",
        """  pinot-assets query 'SELECT * FROM "flights" LIMIT 10'""",
        f"  {CONSOLE}",
    ]
    values = json.loads(call("run", "flights", "--json").stdout)
    assert (values["query"], values["console"]) == ('SELECT * FROM "flights" LIMIT 10', CONSOLE)


@pytest.mark.parametrize("option", ["-v", "--verbose"])
def test_a_verbose_run_shows_each_check(drive: Drive, option: str) -> None:
    answers = {"audit": (SESSION, CHECKED[:2]), "publish": SNAPSHOT, "last_failures": ()}
    drive(trigger=a_report(report.TriggerResult.STAGED), **answers)
    shown = call("run", "flights", option)
    assert shown.stdout.splitlines()[:2] == [f"✓ check {n}: {ODD} is good" for n in range(2)]


def test_an_assertion_is_shown_as_it_was_written(drive: Drive) -> None:
    """Rich would end the run between the gate and the switch."""
    sql = "sql: SELECT COUNT(*) FROM t WHERE REGEXP_LIKE(code, '[/a-z]')"
    warned = Finding(sql, False, 1, 0, "none", severity=Severity.WARN)
    answers = {"audit": (SESSION, (*CHECKED[:2], warned)), "publish": SNAPSHOT}
    drive(trigger=a_report(report.TriggerResult.STAGED), **answers, last_failures=())
    shown = call("run", "flights")
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[:2] == [f"! {sql}: none", "2 of 3 checks passed"]


def test_a_plain_run_that_left_files_out_exits_2_and_names_each_once(drive: Drive) -> None:
    failures = (Failure(ODD, 0, 0, "UNREADABLE", "torn"), Failure("file:///b", 1, 0, "UNREADABLE", "cut"))
    finding = Finding("files_built", False, 3, 1, "1 of 3 files are built", severity=Severity.WARN)
    answers = {"audit": (SESSION, (finding,)), "publish": SNAPSHOT, "last_failures": failures}
    drive(trigger=a_report(report.TriggerResult.STAGED, *failures), **answers)
    shown = call("run", "flights")
    assert shown.exit_code == 2
    assert "2 files failed; the others are published" in shown.stderr
    for text in (f"✗ {ODD}: UNREADABLE: torn", "✗ file:///b: UNREADABLE: cut"):
        assert shown.output.count(text) == shown.output.count(text.rpartition(": ")[2]) == 1
    assert shown.stderr.splitlines()[-1] == "  pinot-assets run flights"


def test_run_whose_files_failed_exits_2_and_says_it_once(drive: Drive) -> None:
    failure = Failure(ODD, 0, 0, "UNREADABLE", "torn")
    finding = Finding("files_built", False, 2, 1, f"1 of 2 files are built: {ODD}: torn")
    drive(
        trigger=a_report(report.TriggerResult.FAILED, failure),
        audit=(SESSION, (finding,)),
        publish=SnapshotIncomplete("files of flights could not be built", why=f"{ODD}: torn", hint="mend"),
    )
    shown = call("run", "flights")
    assert shown.exit_code == 2
    assert shown.output.count("torn") == 1
    assert shown.stderr.splitlines() == [
        f"✗ {ODD}: UNREADABLE: torn",
        "not switched, queries still see the former state: files of flights could not be built",
        "  → mend",
        "  pinot-assets run flights",
    ]
    assert "pinot-assets query" not in shown.output, "there is nothing new to look at"


@pytest.mark.parametrize(
    ("findings", "why"),
    [((Finding("row_change", False, 2, 1, "half is gone"),), ""), (CHECKED[:1], ": half is gone")],
)
def test_a_gate_that_is_shut_says_why_once(drive: Drive, findings: tuple[Finding, ...], why: str) -> None:
    """By the check that failed; by the refusal where no check did."""
    drive(
        trigger=a_report(report.TriggerResult.STAGED),
        audit=(SESSION, findings),
        publish=SnapshotIncomplete("the gate of flights is shut", why="half is gone"),
    )
    shown = call("run", "flights")
    assert (shown.exit_code, shown.output.count("half is gone")) == (2, 1)
    assert f"the former state: the gate of flights is shut{why}\n" in shown.stderr


def test_many_failed_files_are_cut(drive: Drive) -> None:
    failures = tuple(Failure(f"file:///{n}", n, 0, "UNREADABLE", "torn") for n in range(1234))
    drive(
        trigger=a_report(report.TriggerResult.FAILED, *failures),
        audit=(SESSION, (Finding("files_built", False, 2, 1, "1 of 2 files are built"),)),
        publish=SnapshotIncomplete("files of flights could not be built"),
    )
    shown = call("run", "flights")
    assert shown.stderr.count("torn") == 10
    assert "and 1,224 more" in shown.stderr


def test_ctrl_c_says_what_holds(drive: Drive) -> None:
    drive(trigger=KeyboardInterrupt())
    shown = call("run", "flights")
    assert shown.exit_code == 130
    assert "what was done so far is stored; run it again to continue" in shown.stderr


# --- clear -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("session", "says"), [(SESSION, "cp2-bbbbbb cleared"), (None, "flights has no open session")]
)
def test_session_clear(drive: Drive, session: Session | None, says: str) -> None:
    driver = drive(clear=session)
    shown = call("session", "clear", "flights")
    assert shown.stdout.strip() == says
    assert driver.asked[0] == "pinot-assets session clear"


# --- status ----------------------------------------------------------------------------------------


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`seen(session=…)`: what `status` finds in ZooKeeper."""

    def use(**fields: Any) -> None:
        nothing = {
            "pointer": Pointer(),
            "session": None,
            "failures": (),
            "failed_versions": {},
            "holder": None,
            "snapshot": None,
            "hold": NO_HOLD,
        }

        @contextmanager
        def store(*_: object) -> Iterator[SimpleNamespace]:
            yield SimpleNamespace(newest_session=lambda: None)

        monkeypatch.setattr(status_command, "open_session_store", store)
        monkeypatch.setattr(status_command, "load_settings", lambda: SETTINGS)
        monkeypatch.setattr(table_status, "observe", lambda *_: Observation(**{**nothing, **fields}))

    return use


def test_status_of_a_new_table(seen: Any) -> None:
    seen()
    shown = call("status", "flights")
    assert shown.exit_code == 0
    lines = {line[:9].strip(): line[11:] for line in shown.stdout.splitlines()}
    assert lines == {
        "table": "flights_OFFLINE (sync): not published",
        "published": "nothing yet",
        "source": "0 files listed: 0 new, 0 rewritten, 0 deleted",
        "session": "none open",
        "next": "turn on the sensor `flights_files`, or run the table once",
        "": "pinot-assets run flights",
    }


def test_status_of_a_table_without_a_record_in_zookeeper(seen: Any) -> None:
    seen(unrecorded=2)
    lines = call("status", "flights").stdout.splitlines()
    at = lines.index("published  nothing yet")
    assert lines[at + 1].strip() == (
        "2 segments of pinot-assets are in Pinot: the next run makes the ledger from them"
    )
    assert json.loads(call("status", "flights", "--json").stdout)["unrecordedSegments"] == 2


def test_status_says_all_there_is(seen: Any) -> None:
    failures = tuple(Failure(f"{ODD}{n}", n, 0, "UNREADABLE", "[torn]") for n in range(12))
    seen(
        session=SESSION,
        failures=failures,
        snapshot=SNAPSHOT,
        holder=Owner("run-me", "host", 7, 1_700_000_000_000),
        hold=Hold({"F3": "t"}, ("F4",)),
        pointer=Pointer(hold=ObjectRef("h", "0")),
    )
    shown = call("status", "flights")
    assert shown.exit_code == 0
    for text in (
        "0 files, 0 segments, 0 rows by cp1-aaaaaa at 2023-11-14 22:13:20 UTC",
        "cp2-bbbbbb IN_PROGRESS, retry 1 of",
        ": 5 files, 3 done, 2 failed\n",
        f"{ODD}9: UNREADABLE: [torn]",
        "and 2 more",
        "1 file version, 1 removal after a rollback",
        "held by run-me on host (pid 7) since 2023-11-14 22:13:20 UTC",
        """query      pinot-assets query 'SELECT * FROM "flights" LIMIT 10'\n""",
        f"console    {CONSOLE}\n",
    ):
        assert text in shown.stdout

    values = json.loads(call("status", "flights", "--json").stdout)
    assert values["session"]["failed"][11] == f"{ODD}11: UNREADABLE: [torn]"
    assert values["session"]["files"] == {"files": 5, "done": 3, "failed": 2, "gone": 0}
    assert values["published"]["at"] == "2023-11-14T22:13:20Z"
    assert values["heldBack"] == {"files": 1, "removals": 1, "rebuilds": False, "merges": False}
    assert values["leaseHolder"].startswith("run-me on host")
    assert (values["state"], values["source"]["behindSince"]) == ("failed", None)
    assert (values["query"], values["console"]) == ('SELECT * FROM "flights" LIMIT 10', CONSOLE)


# --- progress --------------------------------------------------------------------------------------


def test_progress_in_a_log_file_is_whole_lines() -> None:
    file = io.StringIO()
    with ConsoleProgress(Console(file=file, width=40)) as progress:
        progress.note(f"swept {ODD} " + "x" * 100)
        progress.building({0: 1, 1: 1})
        progress.built(Failure(ODD, 0, 0, "UNREADABLE", "line 3: [/b]"))
        progress.built(Receipt(ODD, 1, 0, Fingerprint(1, 1), "", 1, 0, (), 0.1, "h/1"))
    lines = [line.rstrip() for line in file.getvalue().splitlines()]
    assert f"swept {ODD} {'x' * 100}" in lines
    assert "built 1 of 2 files, 1 failed, 1 row" in lines
    assert "UNREADABLE" not in file.getvalue(), "the end of the command names it, once"


@pytest.mark.parametrize(("text", "stands_out"), [(f"{report.WARNING} v: null", True), ("swept", False)])
def test_a_warning_among_the_notes_stands_out(text: str, stands_out: bool) -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, color_system="standard", width=80)
    with ConsoleProgress(console) as progress:
        progress.note(text)
    assert ("\x1b[33m" in file.getvalue()) == stands_out
