"""A large file over HTTP: whole, continued, or refused before it fills the disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.apache_site import ApacheSite, apache_site

from pinot_assets.errors import LocalStackError
from pinot_assets.local.download import Downloads, SiteFailed, discard, fetched_bytes

CONTENT = os.urandom(5_000_000)
PATH = "/pinot/file.tar.gz"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[ApacheSite]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with apache_site() as site:
        site.files[PATH] = CONTENT
        yield site


@pytest.fixture
def part(tmp_path: Path) -> Path:
    return tmp_path / "file.part"


def fetch(site: ApacheSite, part: Path, *, most: int = 10**9) -> list[tuple[int, int]]:
    """Fetch it; return what was shown of the progress."""
    shown: list[tuple[int, int]] = []

    def refuse(size: int, have: int) -> None:
        if size > most:
            raise LocalStackError("it is too large")

    with Downloads(site.sites) as downloads:
        downloads.fetch(site.url + PATH, part, refuse, lambda have, size: shown.append((have, size)))
    return shown


def test_a_file_is_fetched_whole_and_progress_is_shown(site: ApacheSite, part: Path) -> None:
    shown = fetch(site, part)
    assert part.read_bytes() == CONTENT
    assert shown[-1] == (len(CONTENT), len(CONTENT))
    assert [have for have, _ in shown] == sorted({have for have, _ in shown})


def test_a_transfer_that_breaks_continues_where_it_was(site: ApacheSite, part: Path) -> None:
    site.breaks = [2_000_000, 0, 1_000_000]
    fetch(site, part)
    assert part.read_bytes() == CONTENT
    assert site.archives == ["", "bytes=2000000-", "bytes=2000000-", "bytes=3000000-"]


def test_one_that_breaks_again_and_again_is_given_up_and_its_bytes_stay(site: ApacheSite, part: Path) -> None:
    site.breaks = [1_000_000] + [10] * 4
    with pytest.raises(SiteFailed, match="broke 5 times"):
        fetch(site, part)
    assert fetched_bytes(part) == 1_000_040
    site.asked.clear()
    fetch(site, part)
    assert part.read_bytes() == CONTENT
    assert site.archives == ["bytes=1000040-"]


def test_what_is_complete_is_not_asked_for_again(site: ApacheSite, part: Path) -> None:
    fetch(site, part)
    site.asked.clear()
    fetch(site, part)
    assert site.asked == []


@pytest.mark.parametrize(("before", "after"), [('"1"', '"2"'), ("", ""), ('W/"1"', 'W/"1"')])
def test_it_begins_again_unless_the_site_says_that_it_is_the_same_file(
    site: ApacheSite, part: Path, before: str, after: str
) -> None:
    """The tag changes; there is none; it is a weak one, which says little of the bytes (RFC 9110, 8.8.1)."""
    site.tag, site.dated = before, ""
    site.files[PATH] = b"an older file" * 300_000
    site.breaks = [1_000_000, 0, 0, 0, 0]
    with pytest.raises(SiteFailed):
        fetch(site, part)
    site.tag, site.files[PATH] = after, CONTENT
    site.asked.clear()
    fetch(site, part)
    assert part.read_bytes() == CONTENT
    if before == after:
        assert site.archives == [""], "the site is not asked for a rest"


def test_the_time_of_the_last_change_is_enough(site: ApacheSite, part: Path) -> None:
    site.tag, site.breaks = "", [2_000_000]
    fetch(site, part)
    assert part.read_bytes() == CONTENT
    assert site.archives == ["", "bytes=2000000-"]


def test_a_rest_that_is_none_begins_again(site: ApacheSite, part: Path) -> None:
    """The file got shorter under the same tag: the site has no such bytes (416)."""
    site.breaks = [3_000_000] + [0] * 4
    with pytest.raises(SiteFailed):
        fetch(site, part)
    site.files[PATH] = CONTENT[:2_000_000]
    fetch(site, part)
    assert part.read_bytes() == CONTENT[:2_000_000]


def test_a_rest_of_another_length_begins_again(site: ApacheSite, part: Path) -> None:
    site.breaks = [3_000_000] + [0] * 4
    with pytest.raises(SiteFailed):
        fetch(site, part)
    site.files[PATH] = CONTENT + b"more"
    fetch(site, part)
    assert part.read_bytes() == CONTENT + b"more"


def test_a_rest_that_begins_elsewhere_begins_again(site: ApacheSite, part: Path) -> None:
    site.breaks = [3_000_000] + [0] * 4
    with pytest.raises(SiteFailed):
        fetch(site, part)
    site.rest_from = 4_000_000
    fetch(site, part)
    assert part.read_bytes() == CONTENT


def test_a_file_shorter_than_said_is_never_complete(site: ApacheSite, part: Path) -> None:
    site.more = 1_000
    with pytest.raises(SiteFailed, match="broke 5 times"):
        fetch(site, part)


def test_a_rest_longer_than_said_does_not_fill_the_disk(site: ApacheSite, part: Path) -> None:
    site.breaks, site.trailing = [4_000_000], b"x" * 20_000_000
    shown = fetch(site, part)
    assert max(have for have, _ in shown) <= len(CONTENT) + (1 << 20)
    assert part.read_bytes() == CONTENT


def test_what_is_refused_is_not_fetched(site: ApacheSite, part: Path) -> None:
    with pytest.raises(LocalStackError, match="too large"):
        fetch(site, part, most=1_000_000)
    assert not part.exists()


@pytest.mark.parametrize("status", [403, 404, 500, 503])
def test_an_answer_that_is_no_file_is_named(site: ApacheSite, part: Path, status: int) -> None:
    site.statuses[PATH] = status
    with pytest.raises(SiteFailed, match=f"answers with status {status}"):
        fetch(site, part)


def test_a_redirect_stays_on_the_sites(site: ApacheSite, part: Path) -> None:
    site.files["/elsewhere/file.tar.gz"] = site.files.pop(PATH)
    site.redirects[PATH] = "/elsewhere/file.tar.gz"
    fetch(site, part)
    assert part.read_bytes() == CONTENT


@pytest.mark.parametrize("scheme", ["http", "https", "ftp"])
def test_a_redirect_to_another_site_is_refused(site: ApacheSite, part: Path, scheme: str) -> None:
    with apache_site() as other:
        other.files[PATH] = CONTENT
        site.redirects[PATH] = f"{scheme}{other.url.removeprefix('http')}{PATH}"
        with pytest.raises(SiteFailed, match="is another site"):
            fetch(site, part)
        assert other.asked == []


def test_redirects_without_end_are_given_up(site: ApacheSite, part: Path) -> None:
    site.redirects[PATH] = PATH
    with pytest.raises(SiteFailed, match="redirects again and again"):
        fetch(site, part)
    assert len(site.asked) == 5


def test_a_small_file_is_read_up_to_its_limit(site: ApacheSite) -> None:
    site.files["/pinot/small"] = b"0123456789"
    with Downloads(site.sites) as downloads:
        assert downloads.text(f"{site.url}/pinot/small", 100) == "0123456789"
        assert downloads.text(f"{site.url}/pinot/small", 4) == "0123"
        assert downloads.text(f"{site.url}/pinot/none", 4) is None


@pytest.mark.parametrize("note", ["", "5000000\n", "x\ny\n", '4\n"1"\n', "²\n\n"])
def test_a_damaged_note_counts_as_none(site: ApacheSite, part: Path, note: str) -> None:
    part.write_bytes(b"12345")
    part.with_name(f"{part.name}.note").write_text(note)
    assert fetched_bytes(part) == 0
    fetch(site, part)
    assert part.read_bytes() == CONTENT
    discard(part)
    assert [*part.parent.iterdir()] == []
