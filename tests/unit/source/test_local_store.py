from __future__ import annotations

import hashlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.errors import ListingFailed, SourceChanged, SourceError
from pinot_assets.source import local_store
from pinot_assets.source.factory import open_store
from pinot_assets.source.object_store import ObjectStore


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    (tmp_path / "root").mkdir()
    return open_store(f"file://{tmp_path}/root", {}, UNLIMITED)


def keys(store: ObjectStore) -> set[str]:
    return {info.key for info in store.list()}


def test_a_writer_killed_in_the_middle_leaves_no_object(store: ObjectStore, tmp_path: Path) -> None:
    """The writer copies from a pipe that never ends, so the kill lands in the middle of the write."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, pathlib; from pinot_assets.source import open_store;"
            "from pinot_assets.core.installation_policy import UNLIMITED;"
            "store = open_store(sys.argv[1], {}, UNLIMITED);"
            "store.put_file_if_absent('seg/a.tar.gz', pathlib.Path(sys.argv[2]))",
            store.uri,
            str(pipe),
        ]
    )
    temporary = tmp_path / "root" / local_store.TEMPORARY
    with pipe.open("wb") as source:
        while not (temporary.exists() and sum(f.stat().st_size for f in temporary.iterdir())):
            source.write(b"x" * 65536)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    assert store.stat("seg/a.tar.gz") is None
    assert keys(store) == set()
    assert list(temporary.iterdir()), "the test did not interrupt a write"

    store.put_if_absent("seg/a.tar.gz", b"whole")
    store.probe()
    assert store.read("seg/a.tar.gz") == b"whole"
    assert list(temporary.iterdir()) == [], "probe deletes what the dead left"


def test_probe_deletes_neither_live_writers_nor_others_of_today(store: ObjectStore, tmp_path: Path) -> None:
    temporary = tmp_path / "root" / local_store.TEMPORARY
    temporary.mkdir()
    live = temporary / f"{socket.gethostname()}-{os.getpid()}-aa"
    foreign = temporary / "other-host-1-bb"
    mine = temporary / "notes.txt"
    for path, hours in ((live, 99), (foreign, 23), (mine, 99)):
        path.touch()
        os.utime(path, times=(time.time() - hours * 3600,) * 2)
    store.probe()
    assert set(temporary.iterdir()) == {live, foreign, mine}


def test_probe_deletes_what_another_host_left_a_day_ago(store: ObjectStore, tmp_path: Path) -> None:
    """A container has a new name each time: what it left would stay for ever."""
    temporary = tmp_path / "root" / local_store.TEMPORARY
    temporary.mkdir()
    foreign = temporary / "run-7f-abc-1-bb"
    foreign.touch()
    os.utime(foreign, times=(time.time() - 25 * 3600,) * 2)
    store.probe()
    assert list(temporary.iterdir()) == []


def test_what_nobody_lets_go_keeps_no_probe_from_its_work(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user's, in a folder where only the owner may delete."""
    temporary = tmp_path / "root" / local_store.TEMPORARY
    temporary.mkdir()
    foreign = temporary / "run-7f-abc-1-bb"
    foreign.touch()
    os.utime(foreign, times=(time.time() - 25 * 3600,) * 2)

    def refuse(path: str) -> None:
        if path == str(foreign):
            raise PermissionError(1, "Operation not permitted", path)
        os.remove(path)

    monkeypatch.setattr(local_store.os, "unlink", refuse)
    store.probe()
    assert list(temporary.iterdir()) == [foreign]


RACER = """
import sys
from pinot_assets.errors import StoreConflict
from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.source import open_store
store = open_store(sys.argv[1], {}, UNLIMITED)
print("ready", flush=True)
sys.stdin.readline()
for n in range(100):
    try:
        store.put_if_absent(f"k/{n}", (sys.argv[2] * 3000).encode())
        print(n, flush=True)
    except StoreConflict:
        pass
"""


def race(store: ObjectStore, *contents: str) -> list[set[int]]:
    """Writers of the given contents go for the same 100 keys at once; tells who succeeded at which."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, store.uri, content],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for content in contents
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    results = [writer.communicate()[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * len(writers)
    return [{int(line) for line in result.split()} for result in results]


def test_of_two_racing_writers_one_wins_each_name(store: ObjectStore) -> None:
    a, b = race(store, "a", "b")
    assert a | b == set(range(100))
    assert not a & b
    for n in range(100):
        assert store.read(f"k/{n}") == (b"a" if n in a else b"b") * 3000


def test_racing_writers_of_the_same_content_all_succeed(store: ObjectStore) -> None:
    assert race(store, "a", "a") == [set(range(100))] * 2


def test_symbolic_links_are_neither_followed_nor_told(store: ObjectStore, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "d").mkdir()
    (root / "d" / "a.csv").write_text("x")
    (root / "d" / "loop").symlink_to(root)
    (root / "link.csv").symlink_to(root / "d" / "a.csv")
    (root / "dangling").symlink_to(root / "nothing")
    os.mkfifo(root / "pipe")
    assert keys(store) == {"d/a.csv"}
    assert store.stat("link.csv") is None


def test_the_root_itself_may_be_a_link(store: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "root" / "a").write_text("x")
    (tmp_path / "alias").symlink_to(tmp_path / "root")
    alias = open_store(str(tmp_path / "alias"), {}, UNLIMITED)
    assert [info.uri for info in alias.list()] == [f"file://{tmp_path}/alias/a"]


def test_names_that_are_no_utf8_can_be_listed_and_read(store: ObjectStore, tmp_path: Path) -> None:
    name = os.fsencode(tmp_path / "root") + b"/caf\xe9.csv"
    with open(name, "wb") as file:
        file.write(b"x")
    (info,) = store.list()
    assert info.uri.endswith("/caf%E9.csv")
    assert store.read(store.key_of(info.uri)) == b"x"


def test_a_missing_root_is_an_error_and_no_empty_listing(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "gone"), {}, UNLIMITED)
    assert store.exists_root() is False
    with pytest.raises(ListingFailed, match="does not exist"):
        list(store.list())


def test_a_root_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SourceError, match="must name a folder"):
        open_store(str(tmp_path / "file"), {}, UNLIMITED).exists_root()


def test_a_folder_that_goes_away_while_listing_fails_the_listing(store: ObjectStore, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "root" / name).mkdir()
        (tmp_path / "root" / name / "f").touch()
    listing = store.list()
    first = next(listing).key
    other = "b" if first == "a/f" else "a"
    (tmp_path / "root" / other / "f").unlink()
    (tmp_path / "root" / other).rmdir()
    with pytest.raises(ListingFailed, match="did not complete"):
        list(listing)


def test_a_disk_error_fails_the_listing(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put_if_absent("a/b/c", b"x")
    scan = os.scandir

    def broken(path: str) -> object:
        if path.endswith("/b"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(local_store.os, "scandir", broken)
    with pytest.raises(ListingFailed, match=r"a/b: Permission denied[\s\S]*access to the folder"):
        list(store.list())


def test_r13_a_disk_without_hard_links_is_refused_by_probe(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: str, target: str) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(local_store.os, "link", refuse)
    with pytest.raises(SourceError, match="Operation not supported"):
        store.probe()
    assert keys(store) == set()


def test_a_failed_download_leaves_no_file(store: ObjectStore, tmp_path: Path) -> None:
    store.put_if_absent("a", b"x")
    (tmp_path / "target").mkdir()
    with pytest.raises(SourceError, match="Cannot copy"):
        store.download("a", tmp_path / "missing" / "a", 1)
    with pytest.raises(SourceError, match="was removed"):
        store.download("b", tmp_path / "target" / "b", 1)
    assert list((tmp_path / "target").iterdir()) == []


def test_r13_data_reaches_the_disk_before_the_name(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a power cut would show: content synced, then linked, then the folder synced."""
    calls: list[str] = []
    fsync, link = os.fsync, os.link

    def recording_fsync(handle: int) -> None:
        calls.append("folder" if os.path.isdir(f"/proc/self/fd/{handle}") else "content")
        fsync(handle)

    def recording_link(source: str, target: str) -> None:
        calls.append("link")
        link(source, target)

    store.put_if_absent("k/first", b"x")
    monkeypatch.setattr(local_store.os, "fsync", recording_fsync)
    monkeypatch.setattr(local_store.os, "link", recording_link)
    store.put_if_absent("k/a", b"x")
    assert calls == ["content", "link", "folder"]


def test_others_may_read_what_is_written(store: ObjectStore, tmp_path: Path) -> None:
    """Pinot's servers run as another user than the builder."""
    store.put_if_absent("a", b"x")
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "root" / "a").stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_large_file_is_copied_whole(store: ObjectStore, tmp_path: Path) -> None:
    data = os.urandom(local_store.CHUNK_BYTES * 2 + 17)
    (tmp_path / "big").write_bytes(data)
    store.put_file_if_absent("big", tmp_path / "big")
    assert store.download("big", tmp_path / "copy", len(data)) == hashlib.sha256(data).hexdigest()
    assert (tmp_path / "copy").read_bytes() == data


def test_the_store_travels_to_executors(store: ObjectStore) -> None:
    store.put_if_absent("a", b"x")
    assert pickle.loads(pickle.dumps(store)).read("a") == b"x"


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_listed_file_that_became_a_symbolic_link_is_not_read(
    store: ObjectStore, tmp_path: Path, what: str
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "a.csv").write_bytes(b"secret")
    store.put_if_absent("in/a.csv", b"rows")
    (info,) = store.list()
    if what == "file":
        (tmp_path / "root" / "in" / "a.csv").unlink()
        (tmp_path / "root" / "in" / "a.csv").symlink_to(secret / "a.csv")
    else:
        (tmp_path / "root" / "in").rename(tmp_path / "before")
        (tmp_path / "root" / "in").symlink_to(secret)
    for read in (store.read, store.sha256, lambda key: store.download(key, tmp_path / "copy", 4)):
        with pytest.raises(SourceChanged, match=r"in/a\.csv is not read"):
            read(info.key)
    assert not (tmp_path / "copy").exists()


def test_a_listed_file_that_became_a_pipe_is_not_waited_for(store: ObjectStore, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "root" / "a.csv")
    with pytest.raises(SourceChanged, match=r"a\.csv is not read"):
        store.read("a.csv")


def test_the_root_itself_may_be_a_symbolic_link(store: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "root")
    store.put_if_absent("in/a.csv", b"rows")
    assert open_store(f"file://{tmp_path}/link", {}, UNLIMITED).read("in/a.csv") == b"rows"
