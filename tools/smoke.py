"""`make smoke` and `make smoke-lowest`: install the wheel into new environments, and try it there.

There is one environment for each Python of this machine that `requires-python` allows. `newest` installs the
newest versions of the dependencies that the wheel allows, `lowest` the oldest of those that pyproject.toml
names. Needs uv. `tools/smoke_steps.py` is what is tried.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.specifiers import SpecifierSet

ROOT: Final = Path(__file__).parents[1]
STEPS: Final = ROOT / "tools" / "smoke_steps.py"
RESOLUTIONS: Final = {"newest": "highest", "lowest": "lowest-direct"}
"""What `make` says, and what uv calls it."""

BUILT_HERE: Final = ("pyspark",)
"""Dependencies that are published as sources alone; all others come as wheels, or count as not there."""

_OWN: Final = re.compile(r"PINOT|DAGSTER|SPARK|PYTHON|VIRTUAL_ENV|AWS_(?!CA_BUNDLE)")
"""Variables that would make a new environment one with a past."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python of this machine.

    :ivar version: such as `3.12`.
    """

    version: str
    path: Path


def interpreters(folders: Sequence[Path], allowed: SpecifierSet) -> list[Interpreter]:
    """Return one working interpreter of each allowed minor version, oldest first.

    :param folders: where to look, in this order; the first one that works counts.
    :param allowed: `requires-python`.
    """
    found: dict[int, Interpreter] = {}
    for folder in folders:
        for path in sorted(folder.glob("python3.*")):
            named = re.fullmatch(r"python3\.(\d+)", path.name)
            if named is None or (minor := int(named[1])) in found:
                continue
            if (full := _version_of(path)) and full in allowed:
                found[minor] = Interpreter(f"3.{minor}", path)
    return [found[key] for key in sorted(found)]


def places() -> Iterator[Path]:
    """Yield the folders that may have interpreters: those on PATH, those of pyenv, those of uv."""
    yield from (Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob("versions/*/bin"))
    yield from sorted(Path.home().glob(".local/share/uv/python/*/bin"))


def _version_of(path: Path) -> str:
    """Return the whole version of an interpreter, empty if it does not work (a shim of pyenv may not)."""
    code = "import platform; print(platform.python_version())"
    try:
        done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def install(uv: str, interpreter: Interpreter, wheel: Path, resolution: str, venv: Path) -> None:
    """Make an environment that holds the wheel and its dependencies.

    :param resolution: one of uv's.
    :raises subprocess.CalledProcessError: uv refuses.
    """
    to = ["--quiet", "--python", str(venv / "bin" / "python")]
    sources = [word for name in BUILT_HERE for word in ("--no-binary", name)]
    for words in (
        ["venv", "--quiet", "--no-python-downloads", "--python", str(interpreter.path), str(venv)],
        ["pip", "install", *to, "--resolution", resolution, "--only-binary", ":all:", *sources, str(wheel)],
        ["pip", "check", *to],
    ):
        subprocess.run([uv, *words], check=True)


def try_steps(venv: Path, folder: Path) -> bool:
    """Run the steps in an empty folder; return whether all of them passed. They print what they do."""
    folder.mkdir()
    environment = {name: value for name, value in os.environ.items() if not _OWN.match(name)}
    environment |= {"PATH": f"{venv / 'bin'}{os.pathsep}{environment['PATH']}", "HOME": str(folder.parent)}
    command = [str(venv / "bin" / "python"), "-P", str(STEPS)]
    return subprocess.run(command, cwd=folder, env=environment, check=False).returncode == 0


def main() -> int:
    """Try each interpreter; return the exit code: 0 if all of them passed, and there was one."""
    uv, which, given = sys.argv[1:]
    allowed = SpecifierSet(
        tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    )
    found = interpreters([*places()], allowed)
    passed: list[str] = []
    for interpreter in found:
        with tempfile.TemporaryDirectory(prefix="smoke-") as top:
            sys.stdout.write(f"Python {interpreter.version}, {which} dependencies ({interpreter.path})\n")
            sys.stdout.flush()
            venv = Path(top, "venv")
            try:
                install(uv, interpreter, Path(given), RESOLUTIONS[which], venv)
            except subprocess.CalledProcessError as error:
                sys.stdout.write(f"  failed: uv {error.cmd[1]} ended with {error.returncode}\n")
                continue
            if try_steps(venv, Path(top, "project")):
                passed.append(interpreter.version)
    failed = [one.version for one in found if one.version not in passed]
    sys.stdout.write(
        f"{which}: passed {', '.join(passed) or 'none'}; failed {', '.join(failed) or 'none'}; "
        f"allowed are {allowed}\n"
    )
    return 0 if found and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
