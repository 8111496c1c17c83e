"""S3 as it is on bad days: a real S3 server in its own process, and a proxy that spoils chosen requests."""

from __future__ import annotations

import errno
import io
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from traceback import format_exception
from typing import Any

import boto3
import pytest
from fakes import spoiler as spoiling

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.errors import ListingFailed, SourceError, StoreConflict
from pinot_assets.source import bucket_settings
from pinot_assets.source.factory import open_store
from pinot_assets.source.listing import take_inventory
from pinot_assets.source.object_store import ObjectStore

pytestmark = pytest.mark.integration

SECRET = "wJalrEXAMPLEsecret"
KEYS = {"region": "us-east-1", "accessKey": "AKIAEXAMPLE", "secretKey": SECRET}
Spoiler = Any  # tests/fakes/spoiler.py


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
    log = tmp_path_factory.mktemp("moto") / "log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [str(Path(sys.executable).with_name("moto_server")), "-H", "127.0.0.1", "-p", str(number)],
            stdout=out,
            stderr=out,
        )
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", number), 1).close()
                break
            except OSError:
                assert server.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
        yield number
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture(scope="module")
def s3(port: int) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="us-east-1",
        aws_access_key_id=KEYS["accessKey"],
        aws_secret_access_key=SECRET,
    )


@pytest.fixture
def bucket(s3: Any) -> str:
    name = f"bucket-{time.time_ns()}"
    s3.create_bucket(Bucket=name)
    return name


@pytest.fixture
def open_at(port: int, bucket: str) -> Callable[..., ObjectStore]:
    def open_at(prefix: str = "/in", endpoint: str = f"http://127.0.0.1:{port}") -> ObjectStore:
        return open_store(f"s3://{bucket}{prefix}", {**KEYS, "endpoint": endpoint}, UNLIMITED)

    return open_at


@pytest.fixture
def spoiler(port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Spoiler]:
    monkeypatch.setattr(bucket_settings, "RETRY", {"max_retries": 1, "retry_timeout": timedelta(seconds=10)})
    with spoiling.spoiler(port) as server:
        yield server


def is_page(number: int) -> Callable[[str, str], bool]:
    """Tells a request for the first or a later page of a listing."""
    return lambda method, path: "list-type=2" in path and ("continuation-token" in path) == (number > 1)


MANY = 1007


@pytest.fixture(scope="module")
def many(s3: Any) -> str:
    """A bucket with more objects than a page holds."""
    s3.create_bucket(Bucket="many")
    store = open_store("s3://many/in", {**KEYS, "endpoint": s3.meta.endpoint_url}, UNLIMITED)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: store.put_if_absent(f"d{n % 7}/{n}.csv", b"x"), range(MANY)))
    return store.uri


def test_a_listing_of_many_pages_is_complete(many: str, spoiler: Spoiler) -> None:
    listed = [info.key for info in open_store(many, {**KEYS, "endpoint": spoiler.endpoint}, UNLIMITED).list()]
    assert len(listed) == MANY
    assert set(listed) == {f"d{n % 7}/{n}.csv" for n in range(MANY)}
    assert sum("continuation-token" in request for request in spoiler.requests) == 1


@pytest.mark.parametrize("fault", ["cut the body", "close at once", "say 500"])
@pytest.mark.parametrize("page", [1, 2])
def test_a_listing_that_dies_is_an_error_and_no_shorter_listing(
    many: str, spoiler: Spoiler, fault: str, page: int
) -> None:
    hit = is_page(page)
    spoiler.spoil = lambda method, path: fault if hit(method, path) else None
    store = open_store(many, {**KEYS, "endpoint": spoiler.endpoint}, UNLIMITED)
    with pytest.raises(ListingFailed, match="did not complete"):
        take_inventory(store)
    spoiler.spoil = lambda method, path: None
    assert len(take_inventory(store).files) == MANY


def test_a_passing_fault_is_ridden_out(many: str, spoiler: Spoiler) -> None:
    faults = iter(["say 500"])
    spoiler.spoil = lambda method, path: next(faults, None) if "continuation-token" in path else None
    assert (
        len(take_inventory(open_store(many, {**KEYS, "endpoint": spoiler.endpoint}, UNLIMITED)).files) == MANY
    )
    assert next(faults, None) is None, "the fault was met"


def test_versions_of_a_versioned_bucket(s3: Any, bucket: str, open_at: Callable[..., ObjectStore]) -> None:
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    first = s3.put_object(Bucket=bucket, Key="in/a.csv", Body=b"one")["VersionId"]
    store = open_at()
    before = store.stat("a.csv")
    second = s3.put_object(Bucket=bucket, Key="in/a.csv", Body=b"two")["VersionId"]
    after = store.stat("a.csv")
    assert before is not None
    assert after is not None
    assert (before.version_id, after.version_id) == (first, second)
    assert before != after, "the same size, and maybe the same second, but another etag"
    assert [info.fingerprint for info in store.list()] == [after]
    s3.delete_object(Bucket=bucket, Key="in/a.csv")
    assert list(store.list()) == []
    assert store.stat("a.csv") is None


def test_folder_markers_are_no_files(s3: Any, bucket: str, open_at: Callable[..., ObjectStore]) -> None:
    """For obstore the marker `d/` is an empty object `d`."""
    for key in ("in/", "in/d/", "in/d/e/", "in/f/", "in/f", "in/empty.csv"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"")
    s3.put_object(Bucket=bucket, Key="in/d/a.csv", Body=b"x")
    s3.put_object(Bucket=bucket, Key="in-not", Body=b"x")
    store = open_at()
    assert {info.key for info in store.list()} == {"d/a.csv", "f", "empty.csv"}
    assert {info.key for info in open_at(prefix="").list()} == {
        "in-not",
        "in/d/a.csv",
        "in/f",
        "in/empty.csv",
    }
    assert store.stat("empty.csv") in {info.fingerprint for info in store.list()}


@pytest.mark.parametrize("key", ["in/a//b.csv", "in/./b.csv", "in/../b.csv", "in/tab\t.csv"])
def test_a_key_that_cannot_be_handled_fails_the_listing(
    s3: Any, bucket: str, open_at: Callable[..., ObjectStore], key: str
) -> None:
    s3.put_object(Bucket=bucket, Key="in/a.csv", Body=b"x")
    s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    with pytest.raises(ListingFailed, match="rename the object"):
        list(open_at().list())


def test_an_empty_object_that_cannot_be_looked_at_fails_the_listing(
    s3: Any, bucket: str, open_at: Callable[..., ObjectStore], spoiler: Spoiler
) -> None:
    s3.put_object(Bucket=bucket, Key="in/empty.csv", Body=b"")
    spoiler.spoil = lambda method, path: "close at once" if method == "HEAD" else None
    with pytest.raises(ListingFailed, match="did not complete"):
        list(open_at(endpoint=spoiler.endpoint).list())


def test_multipart_etags_are_kept(s3: Any, bucket: str, open_at: Callable[..., ObjectStore]) -> None:
    upload = s3.create_multipart_upload(Bucket=bucket, Key="in/big")["UploadId"]
    part = {"Bucket": bucket, "Key": "in/big", "UploadId": upload, "PartNumber": 1}
    etag = s3.upload_part(**part, Body=b"x" * 100)["ETag"]
    s3.complete_multipart_upload(
        Bucket=bucket,
        Key="in/big",
        UploadId=upload,
        MultipartUpload={"Parts": [{"ETag": etag, "PartNumber": 1}]},
    )
    (info,) = open_at().list()
    assert re.fullmatch(r"[0-9a-f]{32}-1", info.fingerprint.etag or "")


def test_r13_a_lost_reply_to_a_write_is_looked_up(
    open_at: Callable[..., ObjectStore], spoiler: Spoiler, tmp_path: Path
) -> None:
    spoiler.spoil = lambda method, path: "lose the reply" if method == "PUT" else None
    store = open_at(endpoint=spoiler.endpoint)
    store.put_if_absent("a", b"mine")
    (tmp_path / "file").write_bytes(b"a file's")
    store.put_file_if_absent("b", tmp_path / "file")
    assert (store.read("a"), store.read("b")) == (b"mine", b"a file's")
    with pytest.raises(StoreConflict):
        store.put_if_absent("a", b"other")
    assert store.read("a") == b"mine"


def test_a_disk_that_is_full_is_not_told_as_trouble_of_the_store(
    open_at: Callable[..., ObjectStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.BytesIO):
        def write(self, _: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    store = open_at()
    store.put_if_absent("a", b"mine")
    monkeypatch.setattr(Path, "open", lambda *_: Full())
    with pytest.raises(SourceError, match="No space left") as caught:
        store.download("a", tmp_path / "a", 4)
    assert caught.value.hint is not None
    assert "disk" in caught.value.hint


def test_a_write_that_never_arrived_is_an_error(
    open_at: Callable[..., ObjectStore], spoiler: Spoiler
) -> None:
    spoiler.spoil = lambda method, path: "close at once" if method == "PUT" else None
    store = open_at(endpoint=spoiler.endpoint)
    with pytest.raises(SourceError, match="Cannot write"):
        store.put_if_absent("a", b"mine")
    assert store.stat("a") is None


def test_r13_probe_refuses_a_store_that_ignores_if_none_match(
    s3: Any, bucket: str, open_at: Callable[..., ObjectStore], spoiler: Spoiler
) -> None:
    spoiler.spoil = lambda method, path: "drop If-None-Match"
    with pytest.raises(SourceError, match=r"ignores put-if-absent[\s\S]*If-None-Match"):
        open_at(endpoint=spoiler.endpoint).probe()
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket), "the probe object is removed"


def test_probe_tells_a_store_that_takes_no_write(
    open_at: Callable[..., ObjectStore], spoiler: Spoiler
) -> None:
    """And not the delete after it, which fails as well."""
    spoiler.spoil = lambda method, path: "close at once" if method in ("PUT", "DELETE") else None
    with pytest.raises(SourceError, match="Cannot write"):
        open_at(endpoint=spoiler.endpoint).probe()


def test_a_download_that_is_cut_is_an_error_and_leaves_no_file(
    s3: Any, bucket: str, open_at: Callable[..., ObjectStore], spoiler: Spoiler, tmp_path: Path
) -> None:
    s3.put_object(Bucket=bucket, Key="in/a", Body=b"x" * 1_000_000)
    spoiler.spoil = lambda method, path: "cut the body" if method == "GET" else None
    store = open_at(endpoint=spoiler.endpoint)
    with pytest.raises(SourceError, match="Cannot copy"):
        store.download("a", tmp_path / "copy", 1_000_000)
    assert not (tmp_path / "copy").exists()
    with pytest.raises(SourceError, match="Cannot read"):
        store.sha256("a")


def test_a_bucket_that_is_not_there(port: int) -> None:
    store = open_store("s3://no-such-bucket/in", {**KEYS, "endpoint": f"http://127.0.0.1:{port}"}, UNLIMITED)
    assert store.exists_root() is False
    with pytest.raises(ListingFailed, match="NoSuchBucket"):
        list(store.list())


def test_an_unreachable_store_is_unknown_and_no_empty_one(
    bucket: str, spoiler: Spoiler, open_at: Callable[..., ObjectStore]
) -> None:
    spoiler.spoil = lambda method, path: "close at once"
    store = open_at(endpoint=spoiler.endpoint)
    with pytest.raises(SourceError, match="Cannot reach"):
        store.exists_root()
    with pytest.raises(SourceError, match="Cannot read the attributes of"):
        store.stat("a")


@pytest.mark.parametrize("fault", ["say 500", "refuse"])
def test_no_error_shows_a_key(spoiler: Spoiler, tmp_path: Path, fault: str) -> None:
    """Nor do its causes, which Dagster shows too."""
    spoiler.spoil = lambda method, path: fault
    store = open_store("s3://no-such-bucket/in", {**KEYS, "endpoint": spoiler.endpoint}, UNLIMITED)
    acts: list[Callable[[], object]] = [
        lambda: list(store.list()),
        lambda: store.stat("a"),
        lambda: store.read("a"),
        lambda: store.sha256("a"),
        lambda: store.download("a", tmp_path / "a", 1),
        lambda: store.put_if_absent("a", b"x"),
        lambda: store.delete("a"),
        store.probe,
        store.exists_root,
    ]
    for act in acts:
        with pytest.raises(SourceError) as caught:
            act()
        for text in (str(caught.value), repr(caught.value), "".join(format_exception(caught.value))):
            assert SECRET not in text
            assert KEYS["accessKey"] not in text
        assert caught.value.hint
