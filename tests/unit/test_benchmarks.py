"""The programs of `benchmarks/` fit the package that they measure; what they find is no test's matter."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from fakes.project import ROOT


def test_all_of_them_can_be_imported() -> None:
    folder = ROOT / "benchmarks"
    names = [".".join(path.relative_to(folder).with_suffix("").parts) for path in folder.rglob("*.py")]
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("benchmarks", "tests"))
    subprocess.run(
        [sys.executable, "-W", "error", "-c", f"import {', '.join(sorted(names))}"],
        env=os.environ | {"PYTHONPATH": paths},
        check=True,
    )


def test_the_page_for_contributors_names_every_one_of_them() -> None:
    targets = re.findall(r"^(bench-\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    page = (ROOT / "CONTRIBUTING.md").read_text()
    assert targets
    assert [
        target for target in targets if f"`{target}`" not in page and f"`make {target}`" not in page
    ] == []
