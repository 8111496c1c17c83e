from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def fakes() -> ModuleType:
    """`tests/fakes/builder.py`."""
    path = Path(__file__).parents[2] / "fakes" / "builder.py"
    spec = importlib.util.spec_from_file_location("fake_builder", path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules["fake_builder"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
