"""What the wait for half-there uploads looks at. Its other cases are in `test_upload_loop`."""

from __future__ import annotations

from typing import cast

import pytest

from pinot_assets.pinot.push import upload_loop
from pinot_assets.pinot.push.upload import Uploads
from pinot_assets.pinot.push.upload_loop import await_no_partial_uploads
from pinot_assets.snapshot.receipt import Output


class AtWork:
    """A controller that still works on a lost call: one name after the other is half there, then whole."""

    def __init__(self, looks: list[tuple[set[str], set[str]]]) -> None:
        self._looks = looks
        self.left = len(looks)

    def registered_segments(self, table: str) -> frozenset[str]:
        registered, self._whole = self._looks[len(self._looks) - self.left]
        self.left = max(1, self.left - 1)
        return frozenset(registered)

    def all_segments(self, table: str) -> frozenset[str]:
        return frozenset(self._whole)

    def takes_over_half_uploads(self) -> bool:
        return True


def output(name: str) -> Output:
    return Output(name, 7, 1, f"s/{name}.tar.gz", 1, "", f"s/{name}.metadata.tar.gz")


def test_a_name_that_becomes_half_there_meanwhile_is_waited_for_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_loop, "POLL_SECONDS", 0.0)
    half_a, a_whole, both = ({"a"}, set[str]()), ({"a", "b"}, {"a"}), ({"a", "b"}, {"a", "b"})
    pinot = AtWork([half_a, half_a, a_whole, a_whole, both])
    await_no_partial_uploads(cast(Uploads, pinot), "t", [output("a"), output("b")], lambda: None)
    assert pinot.left == 1
