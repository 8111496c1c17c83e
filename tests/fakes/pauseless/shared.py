"""Fixtures of one pauseless cluster that many tests share, each of which finds it whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.monitoring.exporter import Exporters
from fakes.pauseless.servers import PauselessCluster, pauseless_cluster

from pinot_assets.core.installation_policy import POLICY


@pytest.fixture(scope="package")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PauselessCluster]:
    """A pauseless cluster for all that leave it as it was; `whole` has it whole."""
    with pauseless_cluster(tmp_path_factory.mktemp("pauseless"), exporters=Exporters()) as cluster:
        yield cluster


@pytest.fixture
def code_allowed(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The policy that tables of these clusters need: their stream's classes are the tests' own."""
    policy = tmp_path_factory.mktemp("policy") / "policy.yaml"
    policy.write_text("allowCode: true\n")
    monkeypatch.setenv(POLICY, str(policy))
    return policy


@pytest.fixture
def whole(shared: PauselessCluster) -> PauselessCluster:
    """The same with both its servers well, whatever the test before it did to them."""
    for server in shared.servers:
        server.open_gate()
        if server.process is not None and not shared.stored:
            server.kill()
    shared.stored = True
    for server in shared.servers:
        if server.process is None:
            shared.start(server)
    shared.until_ready()
    return shared
