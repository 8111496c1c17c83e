"""Spark's Python daemon: what its workers get from it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from pinot_assets.build.worker_daemon import installed_first

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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["/s/pyspark/python/lib/x.zip", "/a", "/s"], ["/a", "/s", "/s/pyspark/python/lib/x.zip"]),
        (["/opt/spark/python/lib/x.zip", "/s"], ["/opt/spark/python/lib/x.zip", "/s"]),
        (["/t/pyspark/python/lib/x.zip", "/s"], ["/t/pyspark/python/lib/x.zip", "/s"]),
        (["", "/s/pyspark/python/lib", "/s/a.zip", "/s"], ["", "/s/pyspark/python/lib", "/s/a.zip", "/s"]),
    ],
    ids=["of the installed one", "of the cluster", "of another installation", "no archive of Spark"],
)
def test_only_archives_of_the_installed_pyspark_go_behind_it(before: list[str], after: list[str]) -> None:
    assert installed_first(before) == after


def test_a_link_to_the_installed_pyspark_is_the_installed_one(tmp_path: Path) -> None:
    (tmp_path / "site" / "pyspark" / "python" / "lib").mkdir(parents=True)
    (tmp_path / "spark").symlink_to(tmp_path / "site" / "pyspark")
    archive, site = str(tmp_path / "spark/python/lib/pyspark.zip"), str(tmp_path / "site")
    assert installed_first([archive, site]) == [site, archive]
