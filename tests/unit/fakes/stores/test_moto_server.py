"""The S3 server with versions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import boto3
import pytest
from fakes.stores import moto_server as moto
from fakes.stores.moto_server import moto_server

from pinot_assets.errors import LocalStackError
from pinot_assets.local import processes


def test_it_keeps_versions_and_is_gone_afterwards(tmp_path: Path) -> None:
    with moto_server(tmp_path / "moto.log") as url:
        client = boto3.client(
            "s3",
            endpoint_url=url,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            region_name="us-east-1",
        )
        client.create_bucket(Bucket="bucket")
        client.put_bucket_versioning(Bucket="bucket", VersioningConfiguration={"Status": "Enabled"})
        versions = {
            client.put_object(Bucket="bucket", Key="a", Body=body)["VersionId"] for body in (b"1", b"2")
        }
        assert len(versions) == 2
        client.close()
    port = urlsplit(url).port
    assert port is not None
    assert processes.is_free_port(port)


def test_a_server_that_does_not_start_shows_its_log(
    tmp_path: Path, executable: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    python = executable("bin/python", "echo No module named moto; exit 1")
    monkeypatch.setattr(moto.sys, "executable", str(python))
    with (
        pytest.raises(LocalStackError, match="did not start") as raised,
        moto_server(tmp_path / "moto.log"),
    ):
        pass
    assert "No module named moto" in str(raised.value)
    assert "dev" in str(raised.value.hint)
