"""What holds for every command of the program."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer
from fakes.project import ROOT
from fakes.tables import write_table
from py4j.java_gateway import GatewayClient
from typer.core import TyperGroup
from typer.main import get_command, get_group
from typer.testing import CliRunner

from pinot_assets.cli import driver, main, program
from pinot_assets.cli.main import PANELS
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.errors import PinotAssetsError, PreflightRefused
from tools.docs.cli_page import MEANINGS, WITHOUT_JSON, commands, page

COMMANDS = {" ".join(path): command for path, command in commands(get_command(main.app))}
WORDS = {
    "TABLE": "flights",
    "SEGMENT": "flights__cp1-aaaaaa_1_0_0",
    "FILE": "a.csv",
    "OLDER": "1",
}  # fmt: skip
"""What is typed for an argument that must be there."""


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table `flights` in the working directory, and nothing else anywhere."""
    write_table(tmp_path, "flights")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PINOT_ASSETS_HOME", str(tmp_path / "home"))
    for name in ("PINOT_CONTROLLER_URL", "PINOT_ZOOKEEPER", "PINOT_ASSETS_TABLES", "DAGSTER_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


FOR_FEW = frozenset(
    {
        *("dagster", "pyspark", "py4j", "pandas.core", "sqlglot", "openlineage.client", "prometheus_client"),
        *("boto3", "obstore", "httpx", "grpc", "kafka"),
    }
)
"""What only some commands need, or only with something to do."""
FOR_COMMANDS = FOR_FEW | {"numpy", "pyarrow", "pydantic", "kazoo", "yaml", "pinot_assets.cli.commands.run"}


def imported_by(*words: str) -> set[str]:
    """The modules that the program has imported when a command ends, however it ends."""
    command = [sys.executable, "-X", "importtime", "-m", "pinot_assets", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    names = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "import time:" in line}
    assert "pinot_assets.core.interrupts" in names, done.stderr
    return names


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        (["--version"], FOR_COMMANDS | {"typer", "rich", "pinot_assets.cli.main"}),
        (["--help"], FOR_COMMANDS),
        (["status", "flights"], FOR_FEW),
        (["run", "flights"], (FOR_FEW - {"httpx"}) | {"pygments", "rich.progress"}),
    ],
    ids=["version", "help", "status", "run"],
)
def test_a_command_starts_without_what_others_need(words: list[str], heavy: frozenset[str]) -> None:
    assert not heavy & imported_by(*words)


GROUPS = sorted({name.partition(" ")[0] for name in COMMANDS if " " in name})


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_has_all_its_commands_in_a_process_of_its_own(group: str) -> None:
    """Some are in modules of their own, which other commands may have imported in this process."""
    command = [sys.executable, "-m", "pinot_assets", group, "--help"]
    wide = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=wide)
    shown = {words[1] for line in done.stdout.splitlines() if len(words := line.split()) > 2}
    assert shown >= {name.split()[1] for name in COMMANDS if name.startswith(f"{group} ")}


def test_python_looks_for_garbage_once_the_command_is_imported() -> None:
    code = """
import atexit, gc, sys
from pinot_assets.__main__ import main
atexit.register(lambda: print(gc.isenabled(), gc.get_freeze_count() > 10_000))
sys.argv = ["pinot-assets", "status", "flights"]
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "True True", done.stderr


@pytest.mark.parametrize(("panel", "name"), [(panel, name) for panel in PANELS for name in PANELS[panel]])
def test_the_list_says_of_a_command_what_its_own_help_says_first(panel: str, name: str) -> None:
    program = get_command(main.app)
    command = program.get_command(typer.Context(program), name)  # type: ignore[attr-defined]
    assert command.help.split("\n\n")[0] == PANELS[panel][name].summary
    assert command.rich_help_panel == panel


def type_in(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, str, str]:
    """The program as it is installed: exit code, standard output and error."""
    monkeypatch.setattr("sys.argv", ["pinot-assets", *words])
    with pytest.raises(SystemExit) as ended:
        main.main()
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def needed(command: Any) -> list[str]:
    """Words for all that a command must be given."""
    words = []
    for parameter in command.params:
        if parameter.required:
            option = [] if parameter.param_type_name == "argument" else [parameter.opts[0]]
            words += [*option, WORDS.get(parameter.metavar or parameter.name.upper(), "flights")]
    return words


def test_help_groups_every_command_and_no_other() -> None:
    shown = CliRunner().invoke(main.app, ["--help"]).output
    assert all(f"─ {panel} ─" in shown for panel in PANELS)
    listed = [line[2:].split(maxsplit=1)[0] for line in shown.splitlines() if re.match("│ [a-z]", line)]
    assert listed == [name for names in PANELS.values() for name in names]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_value_has_a_name_in_capitals(name: str) -> None:
    """Typer would show the type, `<int range>`, and the variable's name, `{files}`."""
    for parameter in COMMANDS[name].params:
        if parameter.param_type_name == "argument" or not parameter.is_flag:
            assert re.fullmatch(r"[A-Z]+([=:][A-Z]+)?", parameter.metavar or ""), parameter.name


@pytest.mark.parametrize("name", COMMANDS)
def test_help_flows(name: str) -> None:
    """A line break of the docstring's editor leaves a stub behind at eighty columns."""
    assert "\n" not in COMMANDS[name].help.replace("\n\n", "")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_table_is_completed_wherever_one_is_named(name: str) -> None:
    for parameter in COMMANDS[name].params:
        if parameter.param_type_name == "argument" and "TABLE" in (parameter.metavar or ""):
            new = name in ("tables init",)
            assert new or parameter._custom_shell_complete is not None


def test_its_version_is_that_of_the_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said, complaint = type_in(monkeypatch, capsys, "--version")
    assert (code, said, complaint) == (0, f"pinot-assets {version('pinot-assets')}\n", "")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_speaks_json(name: str) -> None:
    has = any("--json" in parameter.opts for parameter in COMMANDS[name].params)
    assert has is (name not in WITHOUT_JSON)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_tells_its_exit_codes(name: str) -> None:
    assert re.search(r"\b[Ee]xits (0|1|2|as)\b", COMMANDS[name].help)


def test_the_page_of_all_commands_is_up_to_date() -> None:
    """`python -m tools.docs.cli_page > docs/cli.md` writes it."""
    written = (ROOT / "docs" / "cli.md").read_text()
    assert written == page(main.app)
    assert all(f"| {code} | {told} |" in written for code, told in MEANINGS.items())


OFFLINE = (
    "run",
    "status",
    "snapshots",
    "rollback --yes",
    "resume",
    "why",
    "where",
    "history",
    "diff",
    "session list",
)


@pytest.mark.parametrize("name", OFFLINE)
def test_without_a_zookeeper_every_command_says_so_in_json(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = name.split()
    command = COMMANDS[" ".join(word for word in words if not word.startswith("-"))]
    code, out, err = type_in(monkeypatch, capsys, *words, *needed(command), "--json")
    told = json.loads(out)
    assert set(told) == {"error", "why", "hint", "exit"}
    assert told["exit"] == code == ExitCode.ERROR
    assert "Traceback" not in err


@pytest.mark.parametrize("hosts", ["zk:21a81", "127.0.0.1:99999", "127.0.0.1:1/ch/../x", ":"])
def test_a_zookeeper_that_has_no_address(
    hosts: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PINOT_CONTROLLER_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("PINOT_ZOOKEEPER", hosts)
    code, out, _ = type_in(monkeypatch, capsys, "status", "flights", "--json")
    assert (code, json.loads(out)["error"]) == (ExitCode.ERROR, f"{hosts} is not an address of ZooKeeper")


def test_what_standard_output_does_not_take_is_told_on_the_other() -> None:
    argv = "import sys; sys.argv = 'x status nowhere --json'.split()"
    code = f"{argv}; from pinot_assets.cli import main as c; c.main()"
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert done.stderr.startswith("error: ")


@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["rnu"],
        ["run", "flights", "--fast"],
        ["history", "flights", "--newest", "x"],
        ["snapshots", "flights", "--newest", "-1"],
        ["simulate", "--outage", "nonsense"],
        ["watch", "--once"],
        ["watch", "flights", "--all", "--once"],
        ["init", ".", "--prop", "region"],
    ],
)
def test_a_command_typed_wrong_is_json_too(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = type_in(monkeypatch, capsys, *words, "--json")
    assert code == ExitCode.REFUSED
    assert json.loads(out)["exit"] == 2


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("stauts", "'status'"),
        ("RUN", "'run'"),
        ("apply", "'tables apply'"),
        ("list", "'tables list' or 'session list'"),
        ("help", "'--help'"),
    ],
)
def test_a_command_that_is_none_names_the_one_that_was_meant(
    typed: str, meant: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = type_in(monkeypatch, capsys, typed, "flights", "--json")
    assert (code, json.loads(out)["error"]) == (2, f"No such command {typed!r}. Did you mean {meant}?")
    code, out, _ = type_in(monkeypatch, capsys, "xyzzy", "--json")
    assert (code, json.loads(out)["error"]) == (2, "No such command 'xyzzy'.")


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["--log-format", "xml", "status"], "log-format"),
        (["tables", "init", "t", "--table-type", "x"], "table-type"),
    ],
)
def test_a_word_that_an_option_does_not_know_is_named_without_a_word_of_pydantic(
    words: list[str], option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = type_in(monkeypatch, capsys, *words, "--json")
    assert code == ExitCode.REFUSED
    assert re.match(rf"Invalid value for '--{option}': '\w+' is not one of", json.loads(out)["error"])


def test_a_number_that_is_none_is_refused_without_a_word_of_pydantic(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = type_in(monkeypatch, capsys, "history", "flights", "--newest", "x", "--json")
    assert code == ExitCode.REFUSED
    assert json.loads(out)["error"] == "Invalid value for '--newest': should be a valid integer"


@pytest.mark.parametrize("words", [["tables", "apply"], ["rollback", "flights"]])
def test_with_json_nobody_is_asked(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = type_in(monkeypatch, capsys, *words, "--json")
    assert code == ExitCode.ERROR
    assert "--yes" in json.loads(out)["hint"]


ACTS = ("dev", "down", "doctor", "init", "local ", "metrics", "scaffold", "simulate", "tables ", "watch")
"""Commands that look at this machine first, or only; their own tests type wrong things at them."""


@pytest.mark.parametrize("name", [name for name in COMMANDS if not name.startswith(ACTS)])
def test_wrong_addresses_are_a_sentence_of_every_command(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PINOT_CONTROLLER_URL", "ftp://nowhere")
    monkeypatch.setenv("PINOT_ZOOKEEPER", "::::")
    words = [*name.split(), *needed(COMMANDS[name]), *(["--yes"] if name == "rollback" else [])]
    code, out, err = type_in(monkeypatch, capsys, *words, "--json")
    assert code == ExitCode.ERROR
    assert "Traceback" not in out + err
    assert json.loads(out)


BROKEN = {
    "binary": b"\xff\xfe\x00\x01",
    "a tab": b"a:\n\t- b",
    "a list": b"- 1\n",
    "nothing": b"",
    "itself": b"schema: &a [*a]",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_spec_that_is_none_is_a_sentence(
    kind: str, alone: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (alone / "tables" / "x.yaml").write_bytes(BROKEN[kind])
    code, out, err = type_in(monkeypatch, capsys, "run", "x", "--json")
    assert (code, "Traceback" in out + err) == (1, False)
    assert "x.yaml" in json.loads(out)["error"]
    code, out, err = type_in(monkeypatch, capsys, "run", "flights", "--json")
    assert (code, json.loads(out)["error"]) == (1, "there is no Pinot to connect to"), (
        "another table's file stops nothing"
    )
    assert "warning: left out: " in err
    assert "x.yaml:" in err
    code, out, _ = type_in(monkeypatch, capsys, "tables", "validate", "--json")
    assert code == 1
    assert json.loads(out)["problems"][0]["file"].endswith("x.yaml")


def raising(error: BaseException) -> Any:
    def doctor(as_json: bool = False) -> None:
        raise error

    return doctor


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (PinotAssetsError("a", why="b", hint="c"), 1, "error: a: b\n  → c\n"),
        (PreflightRefused("no"), 2, "error: no\n"),
        (
            PermissionError(13, "Permission denied", "/x[1]"),
            1,
            "error: the operating system refuses /x[1]: Permission denied",
        ),
        (
            OSError(28, "No space left on device"),
            1,
            "error: the operating system refuses: No space left on device",
        ),
    ],
)
def test_errors_are_sentences(
    error: Exception,
    code: int,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    app = typer.Typer()
    app.command()(raising(error))
    monkeypatch.setattr("sys.argv", ["x"])
    with pytest.raises(SystemExit) as ended:
        program.run_program(app)
    assert ended.value.code == code
    assert capsys.readouterr().err.startswith(says)


def test_tables_and_snapshots_are_completed(alone: Path) -> None:
    def completed(words: str) -> list[str]:
        shown = CliRunner().invoke(
            main.app,
            [],
            prog_name="pinot-assets",
            env={
                "_PINOT_ASSETS_COMPLETE": "complete_bash",
                "COMP_WORDS": words,
                "COMP_CWORD": str(len(words.split(" ")) - 1),
            },
        )
        return shown.stdout.split()

    assert completed("pinot-assets run f") == ["flights"]
    assert completed("pinot-assets run x") == []
    for command in ("gc", "metrics", "tables apply", "realtime status"):
        assert completed(f"pinot-assets {command} f") == ["flights"]
    folder = alone / "staging" / "flights_OFFLINE" / "snapshots"
    folder.mkdir(parents=True)
    for seq in (9, 12):
        (folder / f"{seq:010}-{'a' * 64}.json").write_text("{}")
    assert completed("pinot-assets diff flights 1") == ["12"]
    assert completed("pinot-assets diff nowhere 1") == []


def test_ctrl_c_is_json_where_a_command_tells_people_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setenv("PINOT_CONTROLLER_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("PINOT_ZOOKEEPER", "127.0.0.1:1")
    monkeypatch.setattr(driver, "open_clients", interrupted)
    code, out, err = type_in(monkeypatch, capsys, "run", "flights", "--json")
    told = json.loads(out)
    assert (told["error"], told["why"], told["exit"]) == ("interrupted", None, 130)
    assert code == ExitCode.INTERRUPTED
    assert "what was done so far is stored" in err


@pytest.mark.parametrize("command", [["validate"], ["apply", "--dry-run"]], ids=["validate", "apply"])
def test_a_folder_without_specs_is_an_error(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["tables", *command, "--tables", str(tmp_path)]
    code, _, err = type_in(monkeypatch, capsys, *words)
    assert (code, "there is no *.yaml" in err) == (1, True)
    code, out, _ = type_in(monkeypatch, capsys, *words, "--json")
    assert (code, json.loads(out)["exit"]) == (1, 1)


def everything(group: TyperGroup, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every group and command."""
    yield path
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, TyperGroup):
            yield from everything(command, (*path, name))
        else:
            yield (*path, name)


@pytest.mark.parametrize("words", [*everything(get_group(main.app))], ids=" ".join)
def test_each_help_is_short_to_ask_for_and_shows_no_type(words: tuple[str, ...]) -> None:
    """Lists of commands have one sentence each, and exit codes are in the command's own help."""
    short = CliRunner().invoke(main.app, [*words, "-h"])
    assert short.exit_code == 0
    assert short.stdout == CliRunner().invoke(main.app, [*words, "--help"]).stdout
    assert not re.search(r"<(bool|str|int|float|list)", short.stdout)
    if "COMMAND [ARGS]" in short.stdout:
        assert "Exits" not in short.stdout


def test_a_call_to_a_jvm_that_is_gone_prints_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """Py4J logs it in the root logger, before the error that the program prints as a sentence."""
    root = logging.getLogger()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            with suppress(OSError):
                while True:
                    server.accept()[0].close()

        threading.Thread(target=hang_up, daemon=True).start()
        client = GatewayClient(port=server.getsockname()[1])
        client.send_command("x\n")
        assert [record.getMessage() for record in caplog.records] == ["Exception while sending command."]
        caplog.clear()
        root.addFilter(program.is_not_of_py4j)
        try:
            client.send_command("x\n")
            root.warning("of somebody else")
        finally:
            root.removeFilter(program.is_not_of_py4j)
        client.close()
        server.shutdown(socket.SHUT_RDWR)
    assert [record.getMessage() for record in caplog.records] == ["of somebody else"]
