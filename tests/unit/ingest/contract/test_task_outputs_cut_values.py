from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pinot_assets.errors import NeedsNewerRelease
from pinot_assets.ingest.contract.task_outputs import CutValues
from pinot_assets.segment.values.normalize import Cut

CUT = CutValues({"name": Cut(1, 2)})


@pytest.mark.parametrize("number", [1, 2])
def test_it_survives_in_each_format(number: int) -> None:
    written = replace(CUT, format=number)
    assert CutValues.from_bytes(written.to_bytes()) == written
    assert ("format" in json.loads(written.to_bytes())) is (number > 1)


def test_one_of_a_newer_format_is_refused() -> None:
    value = {"format": 9, "needs": "9.0.0", "counts": {}}
    with pytest.raises(NeedsNewerRelease, match="format 9"):
        CutValues.from_bytes(json.dumps(value).encode())


@pytest.mark.parametrize("text", ["[]", "{}", '{"columns": {"a": {}}}', '{"format": "x", "columns": {}}'])
def test_what_is_none_is_one_kind_of_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"count|format|object"):
        CutValues.from_bytes(text.encode())


def test_replaced_times_are_a_key_only_if_there_are_some() -> None:
    """An older release reads the other two keys; what it wrote stays as it is."""
    written = CutValues({"ts": Cut(0, 0, 7), "name": Cut(1, 2)})
    counts = json.loads(written.to_bytes())["columns"]
    assert counts == {"name": {"maxLength": 2, "nul": 1}, "ts": {"maxLength": 0, "nul": 0, "time": 7}}
    assert CutValues.from_bytes(written.to_bytes()) == written
