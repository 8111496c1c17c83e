"""Names of a package that are loaded when they are first used."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

from pinot_assets import pinot, segment
from pinot_assets.core.late_names import late_names

PACKAGES = [pinot, segment]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_of_a_package_is_there(package: ModuleType) -> None:
    assert sorted(package._HOMES) == package.__all__
    for name in package.__all__:
        assert getattr(package, name) is not None


@pytest.mark.parametrize(
    ("package", "heavy"),
    [("pinot", {"httpx", "tenacity", "isal"}), ("segment", {"numpy", "pyarrow", "isal"})],
)
def test_a_package_alone_loads_none_of_them(package: str, heavy: set[str]) -> None:
    code = f"import sys, pinot_assets.{package}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not heavy & set(done.stdout.split())


def test_another_name_is_none() -> None:
    load = late_names("a.package", {"there": "os"})
    with pytest.raises(AttributeError, match=r"module 'a\.package' has no attribute 'elsewhere'"):
        load("elsewhere")
