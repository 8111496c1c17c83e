from __future__ import annotations

from pinot_assets.snapshot.receipt import Fingerprint


def test_json_and_back() -> None:
    version = Fingerprint(3, 10, "e", "v")
    again = Fingerprint.of_row(version.to_json())
    assert again == version
    assert again.version_id == "v"


def test_the_token_names_the_version_as_equality_does() -> None:
    version = Fingerprint(3, 10, "e")
    assert Fingerprint(3, 10, "e", "v").token == version.token
    assert Fingerprint(3, 10, "e", "v") == version
    others = [Fingerprint(4, 10, "e"), Fingerprint(3, 11, "e"), Fingerprint(3, 10, "f"), Fingerprint(3, 10)]
    assert len({version.token, *(other.token for other in others)}) == 5
    assert version not in others
