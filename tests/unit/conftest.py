"""Fixtures of unit tests in more than one folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from fakes.spec_folder import Folder
from fakes.toy_stack import toy as toy


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1 and its key."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=pinot"),
            *("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    return certificate, key


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """An empty folder of table specs."""
    return Folder(tmp_path)
