"""Spark's Python daemon: what its workers get from it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from pinot_assets.build.worker_daemon import without_archives

LIB = Path(pyspark.__file__).parent / "python" / "lib"

# The daemon ends when its standard input does.
PROGRAM = """
import atexit, gc, sys

def tell():
    says = sys.modules["pyspark"].__file__, "pandas" in sys.modules, gc.get_freeze_count() > 10_000
    print(*says, file=sys.stderr)

atexit.register(tell)
from pinot_assets.build.worker_daemon import main
main()
"""


def test_a_daemon_has_the_bytecode_of_pyspark_no_pandas_and_no_imports_among_its_garbage() -> None:
    archives = sorted(map(str, LIB.glob("*.zip")))
    assert archives
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(archives)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,  # Spark's daemon ends with code 1
    )
    assert done.stderr.decode().splitlines()[-1:] == [f"{pyspark.__file__} False True"]


def installation(folder: Path, *packages: str) -> str:
    """A folder of installed packages, and an archive in each, as PySpark has them."""
    for package in packages:
        lib = folder / package / "python" / "lib"
        lib.mkdir(parents=True)
        (folder / package / "__init__.py").touch()
        (lib / "pyspark.zip").touch()
    return str(folder)


def test_archives_of_the_installed_pyspark_are_left_out(tmp_path: Path) -> None:
    site, files = installation(tmp_path / "site", "pyspark", "py4j"), tmp_path / "files.zip"
    files.touch()
    archive = f"{site}/pyspark/python/lib/pyspark.zip"
    assert without_archives([archive, "", str(files), site]) == ["", str(files), site]
    (tmp_path / "spark").symlink_to(tmp_path / "site" / "pyspark")
    assert without_archives([str(tmp_path / "spark/python/lib/pyspark.zip"), site]) == [site]


def test_archives_of_another_pyspark_stay_first(tmp_path: Path) -> None:
    site = installation(tmp_path / "site", "pyspark", "py4j")
    cluster = installation(tmp_path / "cluster", "pyspark") + "/pyspark/python/lib/pyspark.zip"
    assert without_archives([cluster, site]) == [cluster, site]


@pytest.mark.parametrize("packages", [("pyspark",), ("py4j",)])
def test_archives_stay_if_they_alone_have_a_package(tmp_path: Path, packages: tuple[str, ...]) -> None:
    site = installation(tmp_path / "site", *packages)
    path = [f"{site}/{packages[0]}/python/lib/pyspark.zip", site]
    assert without_archives(path) == path
