"""When a look at a table is taken once more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from pinot_assets.core.check_result import unknown
from pinot_assets.health import all_checks


@pytest.mark.parametrize(
    ("seconds", "moved", "looks"), [(1, True, 2), (1, False, 1), (21, True, 1), (21, False, 1)]
)
def test_only_a_short_look_at_a_table_that_moved_is_repeated(
    monkeypatch: pytest.MonkeyPatch, seconds: float, moved: bool, looks: int
) -> None:
    now, taken = [0.0], []

    @contextmanager
    def open_look(*_: Any) -> Iterator[Any]:
        taken.append(now[0])
        yield SimpleNamespace(ask_if_moved=lambda: moved)

    def examine(_: Any) -> Any:
        now[0] += seconds
        return (unknown("orphans", "two states were seen", ""),)

    monkeypatch.setattr(all_checks, "open_table_probe", open_look)
    monkeypatch.setattr(all_checks, "examine", examine)
    monkeypatch.setattr(all_checks, "time", SimpleNamespace(monotonic=lambda: now[0]))
    spec: Any = None
    all_checks.examine_table(spec, lambda: spec)
    assert len(taken) == looks
