"""`local up --pinot` as a user sees it: a distribution is fetched from a site, and its Pinot really runs.

The distribution is packed here from the jars of Maven's 0.11.0, under the names that Apache gives them. The
site is on loopback. It ends its first answer in the middle.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fakes.apache_site import ApacheSite, apache_site

from pinot_assets.local import jars
from pinot_assets.local.stack import Stack, StartProgress

pytestmark = pytest.mark.integration

RELEASE = jars.MAVENS_PINOT
PLUGINS = re.compile(
    r"pinot-(avro|avro-base|csv|json|s3|kafka-2\.0|kafka-base|yammer|segment-uploader-default)-"
)


def pack(target: Path) -> None:
    """Write Apache's `apache-pinot-…-bin.tar.gz`: what Maven's jars have of it, hardly compressed."""
    with tarfile.open(target, "w:gz", compresslevel=1) as tar:
        for jar in jars.class_path("pinot"):
            name = jar.name[4:]  # without the number of the cache
            if name == f"pinot-tools-{RELEASE}.jar":
                name = f"pinot-all-{RELEASE}-jar-with-dependencies.jar"
            kind = PLUGINS.match(name)
            folder = f"plugins/pinot-{kind[1]}" if kind else "lib"
            tar.add(jar, f"apache-pinot-{RELEASE}-bin/{folder}/{name}")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApacheSite]:
    monkeypatch.delenv("PINOT_HOME", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    archive = tmp_path / "packed.tar.gz"
    pack(archive)
    with apache_site() as site:
        site.publish(RELEASE, archive, below="/dist/pinot")
        yield site


def test_a_fetched_pinot_starts_and_answers(site: ApacheSite, tmp_path: Path) -> None:
    site.breaks = [10_000_000]
    shown: list[str] = []
    own = Stack(
        tmp_path / "home",
        cache=tmp_path / "cache",
        progress=StartProgress(done=shown.append),
        sites=site.sites,
    )
    try:
        state = own.up(pinot=RELEASE)
        assert state.pinot_version == RELEASE
        assert shown[0].startswith(f"fetching Pinot {RELEASE} from Apache's sites")
        assert site.archives == ["", "bytes=10000000-"]
        versions = httpx.get(f"{state.controller_url}/version", trust_env=False).json()
        assert versions["pinot-tools"].startswith(f"{RELEASE}-"), "the commit follows"
        ready = {part.name for part in own.status() if part.state == "ready"}
        assert ready == {"zookeeper", "controller", "broker-1", "broker-2", "server-1", "server-2"}
        folder = tmp_path / "cache" / "pinot" / f"apache-pinot-{RELEASE}-bin"
        assert str(folder) in (own.home / "conf" / "pinot.class-path").read_text()
        assert jars.is_at_hand("pinot", RELEASE, cache=tmp_path / "cache")
    finally:
        own.purge()
