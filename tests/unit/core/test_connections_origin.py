"""What is one service: a text in which every client finds the same host."""

from __future__ import annotations

import pytest

from pinot_assets.core.connections import origin_of


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://HOST./a@b", "https://host:443"),
        ("http://[::1]:9000", "http://[::1]:9000"),
        ("https://evil\\@host", None),
        ("https://host\\.evil", None),
        ("https://user:word@host", None),
        ("https://@host", None),
        ("https://host\n.evil", None),
        ("\thttps://host", None),
        ("https://host .evil", None),
    ],
)
def test_an_origin_is_one_host_to_every_client(url: str, origin: str | None) -> None:
    assert origin_of(url) == origin
