"""A long listing tells how far it is."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.stores.memory import new_memory
from fakes.tables import write_table

from pinot_assets.session.detect import listing
from pinot_assets.session.values.hold import NO_HOLD
from pinot_assets.session.values.progress import Quiet
from pinot_assets.session.values.state import Mode


@pytest.mark.parametrize(("often", "told"), [(2, ["listed 3 objects so far"]), (4, [])])
def test_signs_of_a_long_listing(
    often: int, told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pages, as the store tells them: no sign for each object, and none of a short one."""
    monkeypatch.setattr(listing, "OFTEN", often)
    source = new_memory()
    for name in "abc":
        source.write(f"{name}.csv", b"1")
    clients, progress = SimpleNamespace(source=source, staging=None), Quiet()
    run: Any = SimpleNamespace(
        spec=write_table(tmp_path, "t"),
        clients=clients,
        progress=progress,
        mode=Mode.SYNC,
        hold=lambda: NO_HOLD,
    )
    assert len(listing.list_ready(run, None, None).listed.files) == 3
    assert progress.notes == told
