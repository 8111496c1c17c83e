"""Every command of the program in its middle: what is typed, and what it then waits for.

Nothing that a command waits for here comes: an address that takes a connection and never answers, a program
that does not end, a lock that is held, a reader that does not read. So a command that is there stays there.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from fakes.tables import write_files, write_table
from typer.core import TyperArgument, TyperCommand
from typer.main import get_group

from pinot_assets.cli.main import app
from tools.docs.cli_page import commands

_PIPE = 4096
MARK = "PINOT_ASSETS_TEST_MARK"
There = Callable[[int], bool]
"""Whether the process of that number is in its middle."""


@dataclass
class Place:
    """A folder of one command: tables, files, temporary files, all it may find.

    :ivar environment: of its process, MARK included.
    :ivar port: at which nothing is ever answered.
    :ivar stdout: where its standard output goes; the file `said`, as its standard error, when None.
    """

    folder: Path
    environment: dict[str, str]
    hole: socket.socket
    during: ExitStack
    stdout: Path | None = None

    @property
    def port(self) -> int:
        port: int = self.hole.getsockname()[1]
        return port

    @property
    def tmp(self) -> Path:
        return self.folder / "tmp"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def said(self) -> Path:
        return self.folder / "said"

    def program(self, name: str, script: str) -> None:
        """Put a shell script on the path of the command, before all others of that name."""
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def marked(self) -> list[psutil.Process]:
        """The processes that carry this place's mark, which children inherit."""
        processes = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get(MARK) == self.environment[MARK]:
                    processes.append(process)
        return processes


@contextmanager
def place(folder: Path) -> Iterator[Place]:
    """A new one; `flights` is a table with one file."""
    write_table(folder, "flights")
    write_files(folder, F1="a b")
    for name in ("tmp", "home", "bin", "dagster", "user"):
        (folder / name).mkdir()
    (folder / "dagster" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    with ExitStack() as during:
        hole = during.enter_context(socket.create_server(("127.0.0.1", 0)))
        address = f"127.0.0.1:{hole.getsockname()[1]}"
        environment = {name: text for name, text in os.environ.items() if not name.startswith("PINOT_")}
        environment |= {
            MARK: str(folder),
            "PINOT_CONTROLLER_URL": f"http://{address}",
            "PINOT_ZOOKEEPER": address,
            "PINOT_ASSETS_HOME": str(folder / "home"),
            "PINOT_ASSETS_CACHE": str(folder / "cache"),
            "DAGSTER_HOME": str(folder / "dagster"),
            "HOME": str(folder / "user"),
            "TMPDIR": str(folder / "tmp"),
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONSAFEPATH": "1",
            "TABLE_KEY": "key",
        }
        environment.pop("JAVA_HOME", None)
        made = Place(folder, environment, hole, during)
        yield made
        for left in made.marked():
            with suppress(psutil.NoSuchProcess):
                left.kill()


@dataclass(frozen=True)
class Middle:
    """How one command is brought into its middle.

    :ivar words: what is typed; `{port}` is that of the place.
    :ivar wait: prepares the place; says how to see that the command is there.
    :ivar environment: variables beside those of the place; an empty one is left out.
    :ivar asks_first: whether the first signal only asks for the end, which then comes with exit code 0.
    """

    words: str
    wait: Callable[[Place], There]
    environment: Mapping[str, str] = field(default_factory=dict)
    asks_first: bool = False

    @property
    def starts_programs(self) -> bool:
        """Whether other processes run in that middle."""
        return self.wait in (a_program, maven)


def silence(place: Place) -> There:
    """It has asked the controller, ZooKeeper or S3, none of which answers."""
    asked: list[socket.socket] = []

    def there(_: int) -> bool:
        while select.select([place.hole], [], [], 0)[0]:
            asked.append(place.during.enter_context(place.hole.accept()[0]))
        return bool(select.select(asked, [], [], 0)[0]) if asked else False

    return there


def a_program(place: Place) -> There:
    """It has started Java, which starts something else and does not end."""
    place.program("java", f"touch '{place.folder}/started'; sleep 600; true")
    return lambda _: (place.folder / "started").exists()


def a_jvm(place: Place, waits_in: str = "") -> There:
    """It has started Spark's JVM, whose address it does not know yet.

    :param waits_in: what never ends, as it stands then: `launcher`, with which Spark's script makes the
        command of the JVM, or `jvm`.
    """
    place.environment["JAVA_HOME"] = str(
        place.folder
    )  # Spark takes no other for the JVM than for the launcher
    real, mark = shutil.which("java"), f"touch '{place.folder}/started'"
    waits = f"{mark}; exec sleep 600"
    place.program(
        "java",
        f"""case "$*" in
        *org.apache.spark.launcher.Main*) {waits if waits_in == "launcher" else ":"} ;;
        *org.apache.spark.deploy.SparkSubmit*) {waits if waits_in == "jvm" else mark} ;;
        esac
        exec '{real}' "$@"
""",
    )
    return lambda _: (place.folder / "started").exists()


def maven(place: Place) -> There:
    """It has started Maven, which does not end; its temporary folder is there."""
    place.program("java", "echo 'openjdk version \"17.0.1\"' >&2")
    place.program(
        "mvn",
        f"[ \"$1\" = --version ] && echo 'Apache Maven 3.9.0' && exit; touch '{place.folder}/started'; "
        "sleep 600; true",
    )
    return lambda _: (place.folder / "started").exists()


def a_bucket(place: Place) -> There:
    """It has listed a bucket, and fetches an object of it into its temporary folder; none comes."""
    listing = (
        b'<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name>'
        b"<IsTruncated>false</IsTruncated><Contents><Key>x/F1.csv</Key><Size>4</Size><ETag>&quot;e&quot;</ETag>"
        b"<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents></ListBucketResult>"
    )
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: {len(listing)}\r\n\r\n".encode()
    )
    callers: list[socket.socket] = []
    fetched: list[bytes] = []

    def there(_: int) -> bool:
        for ready in select.select([place.hole, *callers], [], [], 0)[0]:
            if ready is place.hole:
                callers.append(place.during.enter_context(place.hole.accept()[0]))
                continue
            request = ready.recv(1 << 16)
            if b"list-type=2" in request:
                ready.sendall(head + listing)
            elif request:
                fetched.append(request)
        return bool(fetched) and any(place.tmp.iterdir())

    return there


def a_lock(place: Place) -> There:
    """It waits for another `local up` or `down`."""
    lock = place.during.enter_context((place.home / "lock").open("w"))
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lambda pid: any(
        "->" in line and str(pid) in line.split() for line in Path("/proc/locks").read_text().splitlines()
    )


def a_part(place: Place) -> There:
    """It has asked a part of the local stack whether it is ready."""
    this = psutil.Process()
    record = {
        "ports": {"zookeeper": {"client": place.port}},
        "processes": {"zookeeper": {"pid": this.pid, "create_time": this.create_time()}},
    }
    (place.home / "state.json").write_text(json.dumps(record))
    return silence(place)


def a_pipe(place: Place) -> There:
    """It shows more than a reader that does not read has room for."""
    pipe = _small_pipe(place)
    left = bytearray(4)

    def there(pid: int) -> bool:
        fcntl.ioctl(pipe, termios.FIONREAD, left)
        # A line that has no room as a whole waits.
        is_full = int.from_bytes(left, sys.byteorder) > _PIPE - 512
        return is_full and psutil.Process(pid).status() == psutil.STATUS_SLEEPING

    return there


def a_full_pipe(place: Place) -> There:
    """It has written its file, and shows what it did to a reader that does not read."""
    os.write(_small_pipe(place), b"\n" * _PIPE)
    return lambda pid: (
        (place.folder / "tables" / "orders.yaml").exists()
        and (psutil.Process(pid).status() == psutil.STATUS_SLEEPING)
    )


def _small_pipe(place: Place) -> int:
    place.stdout = place.folder / "stdout"
    os.mkfifo(place.stdout)
    pipe = os.open(place.stdout, os.O_RDWR)
    place.during.callback(os.close, pipe)
    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)
    return pipe


def a_pipe_for_a_list(place: Place) -> There:
    """It lists a hundred tables to a reader that does not read."""
    flights = (place.folder / "tables" / "flights.yaml").read_text()
    for number in range(100):
        name = f"flights{number}"
        (place.folder / "tables" / f"{name}.yaml").write_text(flights.replace("flights", name))
    return a_pipe(place)


def a_pipe_for_much(place: Place) -> There:
    """It shows what is wrong with a hundred table specs to a reader that does not read."""
    for number in range(100):
        (place.folder / "tables" / f"wrong{number}.yaml").write_text("wrong: {}")
    return a_pipe(place)


def work(place: Place) -> There:
    """It reckons."""
    return lambda pid: psutil.Process(pid).cpu_times().user > 0.5


def said(place: Place) -> There:
    """It has said something, and waits for what comes next."""
    return lambda _: place.said.exists() and place.said.read_text().count("\n") > 0


_S3 = (
    "--prop endpoint=http://127.0.0.1:{port} --prop region=us-east-1 "
    "--prop accessKey=${{TABLE_KEY}} --prop secretKey=${{TABLE_KEY}}"
)

_OTHERS: Mapping[str, Middle] = {
    "dev": Middle("dev", a_program, {"PINOT_CONTROLLER_URL": ""}),
    "diff": Middle("diff flights 1", silence),
    "doctor": Middle("doctor", maven),
    "down": Middle("down", a_lock),
    "init": Middle(f"init s3://bucket/x/ {_S3}", a_bucket),
    "local down": Middle("local down", a_lock),
    "local status": Middle("local status", a_part),
    "local up": Middle("local up", maven),
    "metrics": Middle("metrics --listen 127.0.0.1:0", said),
    "realtime drill": Middle(
        "realtime drill clicks --break true --mend true --yes-this-is-a-test-table clicks", silence
    ),
    "realtime repair": Middle("realtime repair clicks --apply", silence),
    "realtime restart-from": Middle(
        "realtime restart-from clicks clicks__0__0__20260101T0000Z --confirm clicks", silence
    ),
    "simulate": Middle("simulate --for 365d", work),
    "tables import": Middle("tables import --from-controller flights", silence),
    "query": Middle("query flights", silence),
    "tables init": Middle("tables init orders", a_full_pipe),
    "tables list": Middle("tables list", a_pipe_for_a_list),
    "tables json-schema": Middle("tables json-schema", a_pipe),
    "tables validate": Middle("tables validate", a_pipe_for_much),
    "watch": Middle("watch flights", said, {"PINOT_ZOOKEEPER": "::::"}, asks_first=True),
    "watch --once": Middle("watch flights --once", silence),
    "where": Middle("where flights F1.csv", silence),
    "why": Middle("why flights__cp1-aaaaaa_1_0_0", silence),
}
"""Commands that are typed otherwise, or wait for something else; a second middle of one adds an option."""


def _usual(path: Sequence[str], command: TyperCommand) -> Middle:
    """A command that is told a table, is asked nothing, and waits for ZooKeeper or Pinot."""
    words = [*path]
    arguments = [one for one in command.params if isinstance(one, TyperArgument)]
    if any((one.metavar, one.nargs) == ("TABLE", 1) for one in arguments):
        words.append("clicks" if "realtime" in path else "flights")
    if any("--yes" in one.opts for one in command.params):
        words.append("--yes")
    return Middle(" ".join(words), silence)


MIDDLES: Mapping[str, Middle] = {
    **{" ".join(path): _usual(path, command) for path, command in commands(get_group(app))},
    **_OTHERS,
}
"""By the name of the command."""

SERVICES = ("dev", "local up", "metrics", "watch")
"""Commands that a supervisor or a container ends, with SIGTERM."""


def type_in(words: Sequence[str], environment: dict[str, str], said: Path, stdout: Path | None) -> None:
    """What a forked process does: what `pinot-assets` does, in a group of its own."""
    os.setsid()
    os.chdir(said.parent)
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    os.dup2(2 if stdout is None else os.open(stdout, os.O_WRONLY), 1)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
    sys.argv = ["pinot-assets", *words]
    from pinot_assets.__main__ import main

    main()


@contextmanager
def started(here: Place, words: str, module: str = "pinot_assets") -> Iterator[subprocess.Popen[bytes]]:
    """A process as a terminal starts it, at the head of a group."""
    # Whoever runs the tests in the background of a script has it ignored, which a child would inherit.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with here.said.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *words.split()],
            cwd=here.folder,
            env=here.environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            process_group=0,
        )
    signal.signal(signal.SIGINT, before)
    with process:
        try:
            yield process
        finally:
            process.kill()
