"""How numpy sorts on processors of AMD."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pinot_assets.core import this_machine
from pinot_assets.core.this_machine import numpy_settings

SWITCH = "NPY_DISABLE_CPU_FEATURES"
ZEN_4 = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nflags\t\t: avx2 avx512f avx512dq\nbugs\t\t:\n"


def processor(folder: Path, text: str) -> Path:
    path = folder / "cpuinfo"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("numpy", "name"), [("2.4.6", "X86_V4"), ("3.0.0rc1", "X86_V4"), ("2.3.5", "AVX512_SKX")]
)
def test_zen_4_sorts_without_avx512(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numpy: str, name: str
) -> None:
    monkeypatch.setattr(this_machine, "version", lambda _: numpy)
    assert numpy_settings({}, processor(tmp_path, ZEN_4)) == {SWITCH: name}


@pytest.mark.parametrize("more", range(0, 4000, 250))
def test_only_the_first_processor_counts_however_many_fit(tmp_path: Path, more: int) -> None:
    one = ZEN_4.replace("avx512dq", "avx512dq " + "f" * more)
    assert numpy_settings({}, processor(tmp_path, f"{one}\n" * 64)).keys() == {SWITCH}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("AuthenticAMD", "GenuineIntel"),
        (": 25", ": 26"),
        ("avx512f ", ""),
        ("vendor_id", "CPU implementer"),
        ("flags", "Features"),
    ],
)
def test_other_processors_sort_as_numpy_decides(tmp_path: Path, before: str, after: str) -> None:
    assert numpy_settings({}, processor(tmp_path, ZEN_4.replace(before, after))) == {}


def test_what_the_environment_says_stays_and_a_missing_file_says_nothing(tmp_path: Path) -> None:
    cpu = processor(tmp_path, ZEN_4)
    assert numpy_settings({SWITCH: ""}, cpu) == {}
    cpu.unlink()
    assert numpy_settings({}, cpu) == {}


def test_the_numpy_of_here_knows_that_name(tmp_path: Path) -> None:
    """It warns of a name that it does not know, and of features that it cannot switch off."""
    program = "import warnings; warnings.simplefilter('error'); import numpy; print(numpy.sort([2, 1]))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | numpy_settings({}, processor(tmp_path, ZEN_4)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[1 2]\n"
