from __future__ import annotations

import pytest

from pinot_assets.segment.column.unsupported import is_true


@pytest.mark.parametrize(
    ("value", "counts"), [(True, True), ("true", True), ("TRUE", True), (False, False), ("yes", False)]
)
def test_a_switch_may_be_a_text(value: object, counts: bool) -> None:
    assert is_true(value) is counts


@pytest.mark.parametrize("value", [None, 1, [], {}, [True]])
def test_nothing_else_is_a_switch(value: object) -> None:
    assert not is_true(value)
