"""What pages say about a wheel is true of the version that pyproject.toml names."""

from __future__ import annotations

import re
import tomllib

from fakes.pages import PAGES, shell_blocks
from fakes.project import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_wheel_that_pages_name_is_the_one_that_is_built() -> None:
    named = {name for page in PAGES for name in re.findall(r"[\w.-]+\.whl", page.read_text(encoding="utf-8"))}
    assert named == {f"pinot_assets-{PROJECT['version']}-py3-none-any.whl"}


def test_no_command_installs_the_package_by_its_name() -> None:
    """No package index has it. In the text, the name with an extra adds packages to what is installed."""
    lines = [line for page in PAGES for block in shell_blocks(page) for line in block.commands()]
    installs = [line for line in lines if "pip install" in line]
    assert len(installs) > 1
    assert [line for line in installs if re.search(r"pip install .*\bpinot-assets\b", line)] == []
