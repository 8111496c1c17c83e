"""The contract of object stores, held against ADLS on Azurite, Microsoft's emulator (`make clouds-test`).

Azurite has no hierarchical namespace: what a real Data Lake tells of directories is not shown here.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import pickle
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import httpx
import pytest
from contract.test_object_store import *  # noqa: F403  # the suite

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.errors import ListingFailed, SourceError
from pinot_assets.local import processes
from pinot_assets.source.factory import open_store
from pinot_assets.source.object_store import ObjectStore

ACCOUNT = "devstoreaccount1"
# Azurite's own, of its documentation: every Azurite has it.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home, port = tmp_path_factory.mktemp("azurite"), processes.free_port(())
    command = [os.environ["AZURITE"], "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    command += ["--location", str(home), "--disableTelemetry", "--silent"]
    process = processes.find(processes.spawn(command, home / "log"))
    assert process is not None
    url = f"http://127.0.0.1:{port}/{ACCOUNT}"
    try:
        end = time.monotonic() + 120
        while not answers(url):
            assert time.monotonic() < end, processes.tail(home / "log")
            time.sleep(0.2)
        yield url
    finally:
        processes.stop_processes([process], grace=5)


def answers(url: str) -> bool:
    try:
        httpx.get(url, timeout=5)
    except httpx.TransportError:
        return False
    return True


@pytest.fixture
def place(azurite: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, dict[str, str]]:
    """A new container, and how to reach it."""
    monkeypatch.setenv("CONTRACT_KEY", KEY)
    container = f"contract-{time.time_ns()}"
    make_container(azurite, container)
    props = {"accessKey": "${CONTRACT_KEY}", "endpoint": azurite}
    return f"abfss://{container}@{ACCOUNT}.dfs.core.windows.net", props


@pytest.fixture
def store(place: tuple[str, dict[str, str]]) -> ObjectStore:
    uri, props = place
    return open_store(f"{uri}/in/folder 1", props, UNLIMITED)


def make_container(url: str, name: str) -> None:
    """Obstore cannot; so by hand, signed with the account's key."""
    date, version = formatdate(usegmt=True), "2021-08-06"
    signed = f"PUT{chr(10) * 12}x-ms-date:{date}\nx-ms-version:{version}\n/{ACCOUNT}/{ACCOUNT}/{name}\n"
    signed += "restype:container"
    signature = base64.b64encode(hmac.digest(base64.b64decode(KEY), signed.encode(), hashlib.sha256)).decode()
    headers = {
        "x-ms-date": date,
        "x-ms-version": version,
        "Authorization": f"SharedKey {ACCOUNT}:{signature}",
    }
    httpx.put(f"{url}/{name}?restype=container", headers=headers).raise_for_status()


@pytest.mark.parametrize("name", [name for name in ODD_NAMES if "\\" not in name])  # noqa: F405
def test_odd_names_are_kept(store: ObjectStore, name: str) -> None:
    store.put_if_absent(f"d/{name}", b"x")
    (info,) = store.list()
    assert info.key == f"d/{name}"
    assert store.key_of(info.uri) == info.key
    assert store.read(info.key) == b"x"
    assert store.stat(info.key) == info.fingerprint


def test_a_backslash_would_become_a_slash(store: ObjectStore) -> None:
    with pytest.raises(SourceError, match="backslash"):
        store.put_if_absent("d/back\\slash.csv", b"x")


def test_a_container_that_is_not_there(place: tuple[str, dict[str, str]]) -> None:
    missing = open_store(f"abfss://missing@{ACCOUNT}.dfs.core.windows.net/in", place[1], UNLIMITED)
    assert missing.exists_root() is False
    with pytest.raises(ListingFailed, match="ContainerNotFound"):
        list(missing.list())


def test_a_wrong_key_is_told_and_not_shown(
    place: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = KEY[4:8] * 22
    monkeypatch.setenv("CONTRACT_KEY", wrong)
    store = open_store(*place, UNLIMITED)
    for act in (store.probe, store.exists_root, lambda: list(store.list()), lambda: store.stat("a")):
        with pytest.raises(SourceError, match="403") as caught:
            act()
        assert wrong not in str(caught.value)
        assert caught.value.__cause__ is None


def test_a_signature_that_is_refused_is_not_shown(
    place: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTRACT_SAS", "sv=2022-11-02&sr=c&sp=rl&se=2000-01-01&sig=s3cretSignature%3D")
    uri, props = place
    store = open_store(uri, {"sasToken": "${CONTRACT_SAS}", "endpoint": props["endpoint"]}, UNLIMITED)
    assert b"s3cret" not in pickle.dumps(store)
    for act in (store.probe, lambda: list(store.list()), lambda: store.download("a", Path("never"), 1)):
        with pytest.raises(SourceError, match="403") as caught:
            act()
        assert "s3cret" not in str(caught.value)


def test_keys_of_the_environment_do_not_go_before_those_of_the_spec(
    place: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "QUJD")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "sig=x")
    monkeypatch.setenv("AZURE_STORAGE_TOKEN", "x")
    open_store(*place, UNLIMITED).probe()


def test_the_environment_is_the_chain(
    place: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
    uri, props = place
    open_store(uri, {"endpoint": props["endpoint"]}, UNLIMITED).probe()
