from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

import pinot_assets
from pinot_assets.core.files import temporary_folder
from pinot_assets.ingest.spark import jvm as spark_home

HOLD = """
import sys
from pinot_assets.core.files import temporary_folder
with temporary_folder("test") as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _own_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def holder() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_a_folder_is_this_users_alone_and_gone_afterwards(tmp_path: Path) -> None:
    with temporary_folder("test") as folder:
        assert folder.parent == tmp_path
        assert folder.name.startswith("pinot-assets-test-")
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "inner").mkdir()
    assert [*tmp_path.iterdir()] == []


def test_what_a_killed_process_left_goes_with_the_next_folder_of_any_kind(tmp_path: Path) -> None:
    with holder() as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        with temporary_folder("another"):
            assert left.is_dir()
        process.kill()
        process.wait()
        assert left.is_dir()
        with temporary_folder("another"):
            assert not left.exists()


def test_nothing_is_removed_through_a_link_or_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "lock").touch()
    (tmp_path / "pinot-assets-link").symlink_to(elsewhere)
    linked_lock = tmp_path / "pinot-assets-linked-lock"
    linked_lock.mkdir()
    (linked_lock / "lock").symlink_to(elsewhere / "lock")
    theirs = tmp_path / "pinot-assets-theirs"
    theirs.mkdir()
    (theirs / "lock").touch()
    with monkeypatch.context() as patch:
        uid = os.getuid()
        patch.setattr(os, "getuid", lambda: uid + 1)
        with temporary_folder("test"):
            pass
    assert (theirs / "lock").exists()
    with temporary_folder("test"):
        pass
    assert not theirs.exists(), "ours again, and held by nobody"
    assert (elsewhere / "lock").exists()
    assert linked_lock.exists()


def test_a_folder_whose_maker_died_before_it_took_the_lock_goes_after_a_day(tmp_path: Path) -> None:
    young, old, other = (tmp_path / f"pinot-assets-{name}" for name in ("young", "old", "other"))
    for folder in (young, old, other):
        folder.mkdir()
    (other / "data").touch()
    for folder in (old, other):
        os.utime(folder, (1, 1))
    with temporary_folder("test"):
        pass
    assert (young.exists(), old.exists(), other.exists()) == (True, False, True)


SPARK = """
import subprocess, sys
from pinot_assets.ingest.spark.jvm import remember_jvm, spark_home
home = spark_home()
# In the place of the JVM: it ends with its input, unless it hangs.
script = "cat > /dev/null; while [ $2 = hangs ]; do sleep 0.1; done"
jvm = subprocess.Popen(["/bin/sh", "-c", script, "jvm", str(home), sys.argv[1]], stdin=subprocess.PIPE)
remember_jvm(home, jvm.pid)
print(home, jvm.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(("jvm", "number"), [("ends", 9), ("hangs", 9), ("ends", 0)])
def test_the_folder_of_spark_and_its_jvm_go_with_the_process(tmp_path: Path, jvm: str, number: int) -> None:
    script = spark_home._AFTERWARDS.replace("-lt 200", "-lt 5")
    code = SPARK.replace(
        "home = spark_home()",
        f"import pinot_assets.ingest.spark.jvm as m\nm._AFTERWARDS = {script!r}\nhome = spark_home()",
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, jvm], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        folder, pid = process.stdout.readline().split()
        (afterwards,) = [
            c for c in psutil.Process(process.pid).children() if "afterwards" in " ".join(c.cmdline())
        ]
        assert Path(folder).is_dir()
        if number:
            process.send_signal(number)
        else:
            process.stdin.close()
        process.wait()
        until = time.monotonic() + 20
        while (afterwards.is_running() or psutil.pid_exists(int(pid))) and time.monotonic() < until:
            time.sleep(0.02)
    assert not afterwards.is_running()
    assert not psutil.pid_exists(int(pid))
    assert [*tmp_path.iterdir()] == []


def test_children_end_on_sigterm_although_this_process_ignores_it() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with spark_home.usual_signals(), subprocess.Popen(["/bin/sleep", "60"]) as child:
            child.terminate()
            assert child.wait(5) == -signal.SIGTERM
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_what_ctrl_c_does_stays_as_it_was() -> None:
    """A Spark context puts a handler of its own in its place."""
    before = signal.getsignal(signal.SIGINT)
    with spark_home.usual_signals():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    assert signal.getsignal(signal.SIGINT) is before


def test_no_other_module_makes_folders_of_its_own_among_the_temporary_files() -> None:
    """They would have no lock, so that whatever a killed process leaves stays for good."""
    package = Path(pinot_assets.__file__).parent
    makers = ("TemporaryDirectory", "mkdtemp", "NamedTemporaryFile", "mkstemp")
    found = [
        f"{path.relative_to(package)}:{node.lineno}"
        for path in package.rglob("*.py")
        if path.name != "temporary_folders.py"
        and any(maker in (text := path.read_text()) for maker in makers)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] in makers
        and "dir" not in {keyword.arg for keyword in node.keywords}
    ]
    assert found == []
