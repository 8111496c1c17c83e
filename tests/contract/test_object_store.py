"""What every object store promises, held against a disk, two S3 servers, GCS' stand-in and the fake.

moto takes any key. s3proxy, the local stack's, checks signatures: an odd name is signed right or refused.
`make clouds-test` holds ADLS to it, on Azurite.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from fakes.stores.gcs import gcs_server, key_file
from fakes.stores.memory import new_memory, open_memory
from moto.server import ThreadedMotoServer

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.core.this_machine import find_java
from pinot_assets.core.untrusted import MIB, OBJECT, RECEIPT
from pinot_assets.errors import SourceChanged, SourceError, StoreConflict, TooLarge
from pinot_assets.local import jars, parts, processes
from pinot_assets.local.parts import Site
from pinot_assets.settings.local_stack import Record
from pinot_assets.snapshot.receipt import SourceFile
from pinot_assets.source import bucket_store, file_table
from pinot_assets.source.factory import open_store
from pinot_assets.source.file_table import files_of
from pinot_assets.source.object_store import CHUNK_BYTES, ObjectStore

ODD_NAMES = [
    "a b.csv",
    "a+b.csv",
    "x#1",
    "100%.csv",
    "%41.csv",
    "a,b;c=d.csv",
    "q?x=1&y",
    "dt=2024-01-01/part-0.csv",
    "ü/日本.csv",
    "e\u0301.csv",
    "[x]{y}*.csv",
    "quote'\"`.csv",
    "back\\slash.csv",
    "...",
    ".hidden",
    " lead and trail ",
    "~$a^|b<c>.csv",
    "😀.csv",
]


@dataclass
class Server:
    """An S3 server and a key that it takes."""

    endpoint: str
    access_key: str
    secret_key: str


@pytest.fixture(scope="module")
def moto() -> Iterator[Server]:
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    yield Server(f"http://{host}:{port}", "contract", "s3cret")
    server.stop()


@pytest.fixture(scope="module")
def gcs() -> Iterator[str]:
    with gcs_server() as url:
        yield url


@pytest.fixture(scope="module")
def s3proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The S3 part of the local stack, without the rest of it."""
    home = tmp_path_factory.mktemp("s3proxy")
    record = Record(ports={parts.S3.name: {"http": processes.free_port(())}})
    site = Site(home, record)
    class_path = ":".join(map(str, jars.class_path(parts.S3.jars)))
    command = [str(find_java().executable), "-cp", class_path, *parts.S3.arguments(site)]
    process = processes.find(processes.spawn(command, home / "log"))
    assert process is not None
    try:
        end = time.monotonic() + 60
        while parts.S3.missing(site) is not None:
            assert time.monotonic() < end, processes.tail(home / "log")
            time.sleep(0.05)
        endpoint = f"http://127.0.0.1:{site.port(parts.S3.name, 'http')}"
        yield Server(endpoint, record.s3_access_key, record.s3_secret_key)
    finally:
        processes.stop_processes([process], grace=5)


@pytest.fixture(
    params=[
        ("memory", "in/folder 1"),
        ("local", ""),
        ("moto", "/in/folder 1"),
        ("moto", ""),
        ("gcs", "/in/folder 1"),
        pytest.param(("s3proxy", "/in/folder 1"), marks=pytest.mark.integration),
    ],
    ids=["memory", "local", "moto", "moto bucket root", "gcs", "s3proxy"],
)
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    kind, prefix = request.param
    if kind == "memory":
        return new_memory(prefix)
    if kind == "local":
        (tmp_path / "root").mkdir()
        return open_store(f"file://{tmp_path}/root", {}, UNLIMITED)
    if kind == "gcs":
        return gcs_store(request.getfixturevalue("gcs"), prefix, tmp_path)
    import boto3

    server: Server = request.getfixturevalue(kind)
    monkeypatch.setenv("CONTRACT_SECRET", server.secret_key)
    bucket = f"contract-{time.time_ns()}"
    boto3.client(
        "s3",
        endpoint_url=server.endpoint,
        region_name="us-east-1",
        aws_access_key_id=server.access_key,
        aws_secret_access_key=server.secret_key,
    ).create_bucket(Bucket=bucket)
    props = {
        "accessKey": server.access_key,
        "secretKey": "${CONTRACT_SECRET}",
        "region": "us-east-1",
        "endpoint": server.endpoint,
    }
    return open_store(f"s3://{bucket}{prefix}", props, UNLIMITED)


def gcs_store(url: str, prefix: str, folder: Path) -> ObjectStore:
    bucket = f"contract{time.time_ns()}"  # moto knows no bucket whose dash is percent-encoded
    httpx.put(f"{url}/{bucket}").raise_for_status()
    return open_store(f"gs://{bucket}{prefix}", {"gcpKey": str(key_file(folder)), "endpoint": url}, UNLIMITED)


def keys(store: ObjectStore, prefix: str = "") -> list[str]:
    return sorted(info.key for info in store.list(prefix))


def test_what_is_put_is_read(store: ObjectStore, tmp_path: Path) -> None:
    data = os.urandom(100_000)
    store.put_if_absent("d/a.bin", data)
    assert store.read("d/a.bin") == data
    assert store.sha256("d/a.bin") == hashlib.sha256(data).hexdigest()
    assert store.download("d/a.bin", tmp_path / "copy", len(data)) == hashlib.sha256(data).hexdigest()
    assert (tmp_path / "copy").read_bytes() == data


def test_no_more_is_read_than_is_asked_for(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RECEIPT.variable, "1")
    store.put_if_absent("whole", b"x" * MIB)
    store.put_if_absent("larger", b"x" * (MIB + 1))
    assert len(store.read("whole", RECEIPT)) == MIB
    with pytest.raises(TooLarge, match=r"larger is not read: it is larger than 1 MiB") as caught:
        store.read("larger", RECEIPT)
    assert RECEIPT.variable in str(caught.value.hint)
    assert len(store.read("larger")) == MIB + 1


def test_a_part_of_an_object_is_read(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    data = os.urandom(100_000)
    store.put_if_absent("d/a.bin", data)
    assert store.read_range("d/a.bin", 0, 100_000) == data
    assert store.read_range("d/a.bin", 99_990, 10) == data[-10:]
    assert store.read_range("d/a.bin", 40_000, 1) == data[40_000:40_001]
    assert store.read_range("d/a.bin", 99_990, 20) == data[-10:], "fewer, if it ends before"
    for start in (100_000, 200_000):
        with pytest.raises(SourceError, match=r"d/a\.bin"):
            store.read_range("d/a.bin", start, 10)
    monkeypatch.setenv(OBJECT.variable, "1")
    for start, length in ((0, MIB + 1), (0, 0), (-1, 10)):
        with pytest.raises(TooLarge):
            store.read_range("d/a.bin", start, length)


def test_a_download_replaces_what_is_there(store: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "copy").write_bytes(b"longer than the object")
    store.put_if_absent("a", b"x")
    store.download("a", tmp_path / "copy", 1)
    assert (tmp_path / "copy").read_bytes() == b"x"


@pytest.mark.parametrize(
    ("size", "said"), [(CHUNK_BYTES - 1, "more"), (CHUNK_BYTES + 1, "less"), (0, "more")]
)
def test_an_object_of_another_size_is_not_copied(
    store: ObjectStore, tmp_path: Path, size: int, said: str
) -> None:
    store.put_if_absent("a", b"x" * CHUNK_BYTES)
    with pytest.raises(SourceChanged, match="not the file that was listed") as caught:
        store.download("a", tmp_path / "copy", size)
    assert f"it has {said} than" in caught.value.why
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_kept(store: ObjectStore, name: str) -> None:
    store.put_if_absent(f"d/{name}", b"x")
    (info,) = store.list()
    assert info.key == f"d/{name}"
    assert info.uri == store.uri_of(info.key)
    assert store.key_of(info.uri) == info.key
    assert store.read(info.key) == b"x"
    assert store.stat(info.key) == info.fingerprint
    store.delete(info.key)
    assert keys(store) == []


def test_listing_and_looking_tell_the_same_version(store: ObjectStore) -> None:
    for size in (0, 1, 1000):
        store.put_if_absent(f"{size}", b"x" * size)
    listed = {info.key: info.fingerprint for info in store.list()}
    assert {key: version.size for key, version in listed.items()} == {"0": 0, "1": 1, "1000": 1000}
    assert {key: store.stat(key) for key in listed} == listed


@pytest.mark.parametrize("names", [("a", "d/b=1.csv"), ("a", "e m", "ü%2F", "d/x~")])
def test_pages_tell_what_the_listing_tells(store: ObjectStore, names: tuple[str, ...]) -> None:
    for size, name in enumerate((*names, "d/c")):
        store.put_if_absent(name, b"x" * size)
        store.put_if_absent(f"full/{name}", b"x")
    listed = {SourceFile(info.uri, info.fingerprint) for info in store.list()}
    assert {file for page in store.pages() for file in files_of(page.columns)} == listed
    assert len(listed) == 2 * len(names) + 2


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_store, "_PAGE", 2)
    monkeypatch.setattr(file_table, "_PAGE", 2)


def test_a_listing_is_cut_behind_any_page_and_told_whole(store: ObjectStore, small_pages: None) -> None:
    names = [name for name in ODD_NAMES if name != "back\\slash.csv" or not store.uri.startswith("abfss")]
    for name in (*names, "a", "b/c", "b/d/e", "b-c", "b0", "empty"):
        store.put_if_absent(f"d/{name}" if name == "..." else name, b"" if name == "empty" else b"x")
    everything = set(keys(store))
    listed, after, cuts = set[str](), "", 0
    while page := next(store.pages(after), None):
        listed |= {store.key_of(file.uri) for file in files_of(page.columns)}
        if not page.last:
            listed |= {store.key_of(f.uri) for rest in store.pages(after) for f in files_of(rest.columns)}
            break
        after, cuts = page.last, cuts + 1
    assert listed == everything
    assert cuts >= len(everything) // 2 or store.uri.startswith("abfss")


def test_what_comes_and_goes_beside_a_cut_hides_nothing_else(store: ObjectStore, small_pages: None) -> None:
    for name in ("a/1", "a/2", "b/1", "b/2", "c"):
        store.put_if_absent(name, b"x")
    first = next(store.pages())
    if store.uri.startswith("abfss"):
        assert first.last == "", "ADLS lists from the beginning whatever one asks for"
        return
    store.delete(first.last)
    store.put_if_absent("a/0", b"x")
    store.put_if_absent("a/3", b"x")
    rest = [store.key_of(f.uri) for page in store.pages(first.last) for f in files_of(page.columns)]
    assert set(rest) - {"a/3"} >= {"b/1", "b/2", "c"}
    assert "a/3" in rest or first.last > "a/3"


def test_a_prefix_is_a_folder(store: ObjectStore) -> None:
    for key in ("a/1", "a/b/2", "ab/3", "a.csv", "c"):
        store.put_if_absent(key, b"x")
    assert keys(store) == ["a.csv", "a/1", "a/b/2", "ab/3", "c"]
    assert keys(store, "a") == ["a/1", "a/b/2"]
    assert keys(store, "a/b") == ["a/b/2"]
    assert keys(store, "nothing") == []


def test_a_folder_is_what_something_lies_below(store: ObjectStore) -> None:
    for key in ("a.csv/part-0", "b.csv", "b.csv2/x"):
        store.put_if_absent(key, b"x")
    assert store.ask_if_folder("a.csv")
    assert store.stat("a.csv") is None
    assert not store.ask_if_folder("b.csv")
    assert not store.ask_if_folder("nothing")
    assert not store.ask_if_folder("b.csv/x")


def test_an_empty_store_lists_nothing_and_is_there(store: ObjectStore) -> None:
    assert keys(store) == []
    assert store.exists_root() is True


def test_r13_put_again_with_the_same_content_is_success(store: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"same")
    store.put_if_absent("a", b"same")
    store.put_if_absent("a", b"same")
    store.put_file_if_absent("a", tmp_path / "file")
    assert store.read("a") == b"same"


@pytest.mark.parametrize("other", [b"else", b"longer", b""])
def test_r13_put_with_other_content_is_a_conflict_and_changes_nothing(
    store: ObjectStore, tmp_path: Path, other: bytes
) -> None:
    store.put_if_absent("a", b"same")
    before = store.stat("a")
    (tmp_path / "file").write_bytes(other)
    with pytest.raises(StoreConflict, match="already exists with other content"):
        store.put_if_absent("a", other)
    with pytest.raises(StoreConflict, match="already exists with other content"):
        store.put_file_if_absent("a", tmp_path / "file")
    assert store.read("a") == b"same"
    assert store.stat("a") == before


def test_a_deleted_name_is_free_again(store: ObjectStore) -> None:
    store.put_if_absent("a", b"one")
    store.delete("a")
    assert store.stat("a") is None
    store.delete("a")
    store.put_if_absent("a", b"two")
    assert store.read("a") == b"two"


def test_what_is_missing_is_told(store: ObjectStore, tmp_path: Path) -> None:
    assert store.stat("a/b") is None
    for act in (
        store.read,
        store.sha256,
        lambda key: store.read_range(key, 0, 1),
        lambda key: store.download(key, tmp_path / "copy", 1),
    ):
        with pytest.raises(SourceError, match="a/b"):
            act("a/b")
    assert not (tmp_path / "copy").exists()


def test_a_folder_is_no_object(store: ObjectStore) -> None:
    store.put_if_absent("a/b", b"x")
    assert store.stat("a") is None


@pytest.mark.parametrize("key", ["", "/a", "a//b", "../a", "a/../../b", "a/"])
def test_no_key_leaves_the_root(store: ObjectStore, key: str) -> None:
    with pytest.raises(SourceError, match="cannot be a key"):
        store.put_if_absent(key, b"x")
    with pytest.raises(SourceError, match="cannot be a key"):
        store.read(key)


def test_probe_passes_and_leaves_nothing(store: ObjectStore) -> None:
    store.probe()
    store.probe()
    assert keys(store) == []


def test_executors_may_probe_at_once(store: ObjectStore) -> None:
    with ThreadPoolExecutor(4) as pool:
        for probed in [pool.submit(store.probe) for _ in range(12)]:
            probed.result()
    assert keys(store) == []


def test_a_store_can_be_pickled(store: ObjectStore) -> None:
    store.put_if_absent("a", b"x")
    again = pickle.loads(pickle.dumps(store))
    assert again.uri == store.uri
    assert again.read("a") == b"x"


def test_a_store_below_another_sees_its_part(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put_if_absent("a b/c/1", b"x")
    props = store.__reduce__()[1][1] if not store.uri.startswith(("mem", "file")) else {}  # type: ignore[misc]
    uri = store.uri_of("a b")
    below = open_memory(uri) if uri.startswith("mem") else open_store(uri, props, UNLIMITED)
    assert keys(below) == ["c/1"]
    assert below.uri_of("c/1") == store.uri_of("a b/c/1")
