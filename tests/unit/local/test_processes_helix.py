"""What a node of Helix says of its process, whoever wrote it."""

from __future__ import annotations

import json

import pytest

from pinot_assets.local.processes import owner_of


def node(**simple: object) -> bytes:
    return json.dumps({"id": "x", "simpleFields": simple}).encode()


def test_the_process_of_a_node() -> None:
    assert owner_of(node(LIVE_INSTANCE="17@host")) == "17@host"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b"[" * 100_000,
        b'{"simpleFields": []}',
        b'{"simpleFields": {}}',
        node(LIVE_INSTANCE=None),
        node(LIVE_INSTANCE={"17": "host"}),
    ],
)
def test_whatever_is_no_such_node_is_one_error(content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # any
        owner_of(content)
