"""A copy of the project at a commit, with an interpreter of its own, to damage and to measure in."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def commit_of(revision: str) -> str:
    """The full name of a commit."""
    return _git(PROJECT, "rev-parse", f"{revision}^{{commit}}")


def make_scratch(folder: Path, commit: str) -> Path:
    """A clone at that commit; made anew unless it is there.

    Its virtual environment holds nothing but the clone itself, as an editable install, and takes everything
    else from the environment that runs this. So child processes import the clone, too.
    """
    python = folder / ".venv" / "bin" / "python"
    if (folder / ".venv" / "ready").exists():
        _git(folder, "checkout", "--quiet", "--force", commit)
        _compile(folder, python)
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    _git(PROJECT, "clone", "--quiet", str(PROJECT), str(folder))
    _git(folder, "checkout", "--quiet", commit)
    venv.create(folder / ".venv", with_pip=False)
    # An environment may itself take packages from another one.
    here, there = [Path(p) for p in sys.path if Path(p).name == "site-packages"], _own_packages(folder)
    (there / "outer.pth").write_text("".join(f"{packages}\n" for packages in here))
    for hook in (hook for packages in here for hook in packages.glob("*coverage*.pth")):
        (there / hook.name).write_text(hook.read_text())  # starts the measuring in child processes
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--editable", "."]
    subprocess.run([python, *install], cwd=folder, check=True)
    _copy_commands(Path(sys.executable).parent, python.parent)
    _compile(folder, python)
    (folder / ".venv" / "ready").touch()
    return folder


def _compile(folder: Path, python: Path) -> None:
    """Store bytecode, which the hundreds of processes of the tests would make anew: they are to write none.

    Python knows a planted source by its hash, not by the clock.
    """
    everything = [
        name for name in ("pinot_assets", "resources", "sensors", "tests") if (folder / name).is_dir()
    ]
    compiling = ["-m", "compileall", "-q", "--invalidation-mode", "checked-hash", *everything]
    subprocess.run([python, *compiling], cwd=folder, check=True)


def _own_packages(folder: Path) -> Path:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    python = folder / ".venv" / "bin" / "python"
    done = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    return Path(done.stdout.strip())


def _copy_commands(source: Path, target: Path) -> None:
    """Console scripts name their interpreter in the first line."""
    for command in source.iterdir():
        if not command.is_file() or (target / command.name).exists():
            continue
        first, newline, rest = command.read_bytes().partition(b"\n")
        if first.startswith(b"#!") and str(source).encode() in first:
            copied = target / command.name
            copied.write_bytes(b"#!" + str(target / "python").encode() + newline + rest)
            copied.chmod(0o755)


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()
