"""A release of Pinot from Apache's sites: fetched once, whole and checked, or refused with the reason."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.apache_site import ApacheSite, apache_site, files_of, packed
from fakes.waiting import until

from pinot_assets.errors import LocalStackError
from pinot_assets.local import apache, cache
from pinot_assets.local.pinot_build import jars_of, read_build

RELEASE = "1.5.1"
BIG = os.urandom(3_000_000)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[ApacheSite]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with apache_site() as site:
        yield site


def release(**more: bytes) -> bytes:
    return packed(RELEASE, files_of(RELEASE) | {"plugins/big.jar": BIG} | more)


def distribution(site: ApacheSite, tmp_path: Path, shown: list[str] | None = None) -> Path:
    show = (lambda _: None) if shown is None else shown.append
    return apache.distribution(RELEASE, cache=tmp_path, progress=show, sites=site.sites)


def in_cache(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "pinot").iterdir() if not path.name.endswith(".lock")}


def test_a_release_is_fetched_once_and_only_its_jars_are_unpacked(site: ApacheSite, tmp_path: Path) -> None:
    site.publish(RELEASE, release())
    shown: list[str] = []
    assert not apache.is_fetched(RELEASE, cache=tmp_path)
    folder = distribution(site, tmp_path, shown)
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == {
        "lib/pinot-all-1.5.1-jar-with-dependencies.jar",
        "plugins/pinot-file-system/pinot-s3/pinot-s3-1.5.1-shaded.jar",
        "plugins/big.jar",
    }
    assert (folder / "plugins/big.jar").read_bytes() == BIG
    assert read_build(jars_of(folder)).version == RELEASE
    assert "Pinot 1.5.1: 3 of 3 MB are here" in shown
    assert shown[-1] == "Pinot 1.5.1: unpacking"
    assert in_cache(tmp_path) == {folder.name}
    site.asked.clear()
    assert apache.is_fetched(RELEASE, cache=tmp_path)
    assert distribution(site, tmp_path) == folder
    assert site.asked == []


def test_older_releases_are_in_the_archive(site: ApacheSite, tmp_path: Path) -> None:
    path = site.publish(RELEASE, release(), below="/dist/pinot")
    distribution(site, tmp_path)
    assert [asked for asked, _ in site.asked] == [
        f"{path.removeprefix('/dist')}.sha512",
        f"{path}.sha512",
        path,
    ]


def test_a_release_that_no_site_has(site: ApacheSite, tmp_path: Path) -> None:
    with pytest.raises(LocalStackError, match=r"there is no Pinot 1\.5\.1") as raised:
        distribution(site, tmp_path)
    assert "https://archive.apache.org/dist/pinot/ lists all" in str(raised.value.hint)


def test_a_site_that_fails_is_passed_over(site: ApacheSite, tmp_path: Path) -> None:
    path = site.publish(RELEASE, release(), below="/dist/pinot")
    site.statuses[f"{path.removeprefix('/dist')}.sha512"] = 503
    distribution(site, tmp_path)


def test_sites_that_do_not_answer_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(LocalStackError, match="could not be fetched") as raised:
        apache.distribution(RELEASE, cache=tmp_path, progress=print, sites=["http://127.0.0.1:9/pinot"])
    assert "127.0.0.1:9" in str(raised.value.why)
    assert "ConnectError" in str(raised.value.why)
    assert "HTTPS_PROXY" in str(raised.value.hint)
    assert "PINOT_HOME" in str(raised.value.hint)


@pytest.mark.parametrize(
    "form", ["{0}", "{0}\n", "{0}  target/{1}\n", "{0} *{1}\n", "SHA512 ({1}) = {0}\n", ""]
)
def test_the_hash_is_read_in_each_form_that_is_in_use(site: ApacheSite, tmp_path: Path, form: str) -> None:
    content = release()
    path = site.publish(RELEASE, content)
    digest, name = hashlib.sha512(content).hexdigest(), path.rpartition("/")[2]
    in_groups = " ".join(digest.upper()[i : i + 8] for i in range(0, 128, 8)).replace(" ", "\n ", 3)
    text = form.format(digest, name) if form else f"{name}: {in_groups}\n"  # as `gpg --print-md` does
    site.files[f"{path}.sha512"] = text.encode()
    distribution(site, tmp_path)


@pytest.mark.parametrize("text", ["", "<html>", "0123", "g" * 128, "a" * 129])
def test_a_hash_that_is_none_is_refused(site: ApacheSite, tmp_path: Path, text: str) -> None:
    path = site.publish(RELEASE, release())
    site.files[f"{path}.sha512"] = text.encode()
    with pytest.raises(LocalStackError, match="has no SHA-512"):
        distribution(site, tmp_path)
    assert site.archives == []


@pytest.mark.parametrize("wrong", ["hash", "size"])
def test_another_file_than_the_hash_is_of_is_deleted(site: ApacheSite, tmp_path: Path, wrong: str) -> None:
    """A damaged file, and one of which the site says, and sends, less than it has."""
    path = site.publish(RELEASE, release())
    good = site.files[path]
    if wrong == "hash":
        site.files[path] = packed(RELEASE, files_of(RELEASE))
    else:
        site.more = -1_000
    with pytest.raises(LocalStackError, match="is not the file that its SHA-512 is of") as raised:
        distribution(site, tmp_path)
    assert "is deleted" in str(raised.value.hint)
    assert in_cache(tmp_path) == set()
    site.files[path], site.more = good, 0
    distribution(site, tmp_path)


def test_a_download_that_dies_continues_the_next_time(site: ApacheSite, tmp_path: Path) -> None:
    site.publish(RELEASE, release())
    site.breaks = [2_000_000, 0, 0, 0, 0]
    with pytest.raises(LocalStackError, match="broke 5 times") as raised:
        distribution(site, tmp_path)
    assert "continues after the 2 MB" in str(raised.value.hint)
    site.asked.clear()
    distribution(site, tmp_path)
    assert site.archives == ["bytes=2000000-"]


def test_after_ctrl_c_it_continues_and_says_so(site: ApacheSite, tmp_path: Path) -> None:
    site.publish(RELEASE, release())

    def interrupt(line: str) -> None:
        if line.startswith("Pinot 1.5.1: 2 of"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"what was fetched of Pinot .* stays: the same command"):
        apache.distribution(RELEASE, cache=tmp_path, progress=interrupt, sites=site.sites)
    site.asked.clear()
    distribution(site, tmp_path)
    assert [wanted.startswith("bytes=2") for wanted in site.archives] == [True]


FETCH = """
import sys
from pathlib import Path
from pinot_assets.local import apache
print(apache.distribution("1.5.1", cache=Path(sys.argv[1]), progress=lambda line: None, sites=sys.argv[2:]))
"""


def fetching(site: ApacheSite, tmp_path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", FETCH, tmp_path, *site.sites]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_after_kill_it_continues(site: ApacheSite, tmp_path: Path) -> None:
    path = site.publish(RELEASE, release())
    site.holds_after = 2_000_000
    part = tmp_path / "pinot" / f"{path.rpartition('/')[2]}.part"
    with fetching(site, tmp_path) as process:
        until(lambda: part.exists() and part.stat().st_size > 0)
        process.send_signal(signal.SIGKILL)
    have = part.stat().st_size
    site.holds_after = None
    site.goes_on.set()
    site.asked.clear()
    distribution(site, tmp_path)
    assert site.archives == [f"bytes={have}-"]


def test_two_processes_at_once_fetch_once(site: ApacheSite, tmp_path: Path) -> None:
    site.publish(RELEASE, release())
    site.holds_after = 1_000_000
    with fetching(site, tmp_path) as first, fetching(site, tmp_path) as second:
        until(lambda: len(site.archives) == 1)
        time.sleep(0.5)  # the second one has time to do wrong
        site.goes_on.set()
        answers = {process.communicate()[0].strip() for process in (first, second)}
    assert answers == {str(tmp_path / "pinot" / "apache-pinot-1.5.1-bin")}
    assert site.archives == [""]


def test_who_waits_for_another_process_is_shown_why(tmp_path: Path) -> None:
    import fcntl

    shown: list[str] = []
    folder = tmp_path / "filled"
    with folder.with_name("filled.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        def waits() -> None:
            shown.append("waits")
            fcntl.flock(lock, fcntl.LOCK_UN)

        cache.fill_once(folder, folder.mkdir, waits)
    assert shown == ["waits"]
    assert folder.is_dir()


def test_a_disk_without_room_is_refused_before_anything_is_fetched(
    site: ApacheSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.publish(RELEASE, release())
    usage = cache.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda _: usage._replace(free=6_000_000))
    with pytest.raises(LocalStackError, match="too little disk space") as raised:
        distribution(site, tmp_path)
    assert "PINOT_ASSETS_CACHE" in str(raised.value.hint)
    assert in_cache(tmp_path) == set()


def test_what_is_here_already_needs_no_room(
    site: ApacheSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3 MB are fetched and unpacked: 3 and 3.75; with 2 MB here, 4.75 are enough."""
    site.publish(RELEASE, release())
    site.breaks = [2_000_000, 0, 0, 0, 0]
    with pytest.raises(LocalStackError):
        distribution(site, tmp_path)
    usage = cache.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda _: usage._replace(free=5_500_000))
    distribution(site, tmp_path)


def test_an_archive_of_unusual_size_is_not_fetched(
    site: ApacheSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.publish(RELEASE, release())
    site.more = apache.MOST_BYTES
    with pytest.raises(LocalStackError, match=r"bin\.tar\.gz is too large") as raised:
        distribution(site, tmp_path)
    assert "4,003 MB" in str(raised.value.why)
    assert in_cache(tmp_path) == set()


def with_entry(name: str, kind: bytes, target: str) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for path, content in files_of(RELEASE).items():
            entry = tarfile.TarInfo(f"apache-pinot-1.5.1-bin/{path}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = kind, target
        tar.addfile(entry)
    return archive.getvalue()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (with_entry("x/lib/a.jar", tarfile.SYMTYPE, "/etc/passwd"), "neither a file nor a folder"),
        (with_entry("x/lib/a.jar", tarfile.LNKTYPE, "x/lib/b.jar"), "neither a file nor a folder"),
        (with_entry("x/lib/a.jar", tarfile.FIFOTYPE, ""), "neither a file nor a folder"),
        (with_entry("x/lib/../../a", tarfile.REGTYPE, ""), "leads out of it"),
        (with_entry("/lib/a.jar", tarfile.REGTYPE, ""), "leads out of it"),
        (packed(RELEASE, {"lib/other-1.0.jar": b"PK"}), "none of 1 jars has Pinot's main class"),
        (packed(RELEASE, {"readme": b""}), "none of 0 jars has Pinot's main class"),
        (release()[:-2_000], ""),
        (b"<html>", ""),
    ],
)
def test_an_archive_with_anything_else_is_refused_and_leaves_nothing(
    site: ApacheSite, tmp_path: Path, content: bytes, why: str
) -> None:
    site.publish(RELEASE, content)
    with pytest.raises(LocalStackError, match="is not a distribution of Pinot") as raised:
        distribution(site, tmp_path)
    assert why in str(raised.value.why)
    assert in_cache(tmp_path) == set()
    assert {path.name for path in tmp_path.iterdir()} == {"pinot"}


@pytest.mark.parametrize(("limit", "most"), [("MOST_BYTES", 4_000_000), ("_MOST_ENTRIES", 3)])
def test_an_archive_that_unpacks_to_too_much_is_refused(
    site: ApacheSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    """Also what is not needed of it counts: it has to be unpacked to be passed over."""
    site.publish(RELEASE, packed(RELEASE, files_of(RELEASE) | {"examples/zeros": bytes(5_000_000)}))
    monkeypatch.setattr(apache, limit, most)
    with pytest.raises(LocalStackError, match="is not a distribution of Pinot") as raised:
        distribution(site, tmp_path)
    assert "more than is unpacked" in str(raised.value.why)


def test_a_cache_that_cannot_be_written(site: ApacheSite, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LocalStackError, match="could not be written") as raised:
        distribution(site, tmp_path / "file")
    assert "PINOT_ASSETS_CACHE" in str(raised.value.hint)


@pytest.mark.parametrize(
    "word", ["", "latest", "1.5", "v1.5.1", "1.6.0-SNAPSHOT", "1.5.1/../..", "1.5.1\n", "١.٥.١", "1.5.1.2"]
)
def test_a_word_that_is_no_release_is_refused_with_what_is_possible(word: str) -> None:
    with pytest.raises(LocalStackError, match="is not a release of Apache Pinot") as raised:
        apache.require_release(word)
    assert "1.5.1" in str(raised.value.hint)
    assert "https://archive.apache.org/dist/pinot/ lists all" in str(raised.value.hint)
    assert "PINOT_HOME" in str(raised.value.hint)


def test_a_release_before_all_that_is_supported_is_refused() -> None:
    apache.require_release("0.11.0")
    with pytest.raises(LocalStackError, match=r"Pinot 0\.10\.0 is too old"):
        apache.require_release("0.10.0")


def test_the_only_addresses_are_apaches_over_tls() -> None:
    assert apache.SITES == ("https://downloads.apache.org/pinot", "https://archive.apache.org/dist/pinot")
