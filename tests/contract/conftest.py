"""The laboratory of the contract suite: one fresh table in the fake or in a real cluster."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import fakes.pinot as fake_pinot
import httpx
import pyarrow as pa
import pytest

from pinot_assets.pinot import Pinot, PinotCluster, PinotConnection, wait_online
from pinot_assets.pinot.versions import takes_empty_outputs
from pinot_assets.segment import SegmentSpec, build_segment, metadata_tar, write_tar
from pinot_assets.session.receipt import Output

TABLES = (f"contract{n}" for n in itertools.count())
# Method of the port → end of the path that it is on the wire.
WIRE = {
    "start_replace_segments": "/startReplaceSegments",
    "end_replace_segments": "/endReplaceSegments",
    "revert_replace_segments": "/revertReplaceSegments",
    "delete_segments": "/delete",
}


class LossyTransport(httpx.BaseTransport):
    """Real HTTP that can lose one call or one reply."""

    def __init__(self) -> None:
        self._inner = httpx.HTTPTransport()
        self._lost_calls: list[str] = []
        self._lost_replies: list[str] = []

    def lose_call(self, method: str) -> None:
        self._lost_calls.append(WIRE[method])

    def lose_reply(self, method: str) -> None:
        self._lost_replies.append(WIRE[method])

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        for path in self._lost_calls:
            if request.url.path.endswith(path):
                self._lost_calls.remove(path)
                raise httpx.ReadTimeout("the call was lost", request=request)
        response = self._inner.handle_request(request)
        for path in self._lost_replies:
            if request.url.path.endswith(path):
                self._lost_replies.remove(path)
                response.read()
                response.close()
                raise httpx.ReadTimeout("the reply was lost", request=request)
        return response

    def close(self) -> None:
        self._inner.close()


@dataclass
class Lab:
    """One table, the means to make segments for it, and to lose calls.

    :ivar trouble: has `lose_call` and `lose_reply`.
    :ivar empty_outputs: whether this Pinot takes a replacement without outputs (1.0 and later).
    """

    pinot: Pinot
    trouble: Any
    empty_outputs: bool
    folder: Path
    table: str = field(default_factory=lambda: next(TABLES))

    @property
    def schema(self) -> dict[str, Any]:
        return {
            "schemaName": self.table,
            "dimensionFieldSpecs": [{"name": "carrier", "dataType": "STRING"}],
            "metricFieldSpecs": [{"name": "delay", "dataType": "LONG"}],
        }

    @property
    def config(self) -> dict[str, Any]:
        return {
            "tableName": self.table,
            "tableType": "OFFLINE",
            "segmentsConfig": {"schemaName": self.table, "replication": "2"},
            "tenants": {},
            "tableIndexConfig": {"loadMode": "MMAP"},
            "ingestionConfig": {
                "batchIngestionConfig": {
                    "segmentIngestionType": "REFRESH",
                    "segmentIngestionFrequency": "DAILY",
                }
            },
            "metadata": {},
        }

    def create(self) -> None:
        self.pinot.put_schema(self.schema)
        self.pinot.create_table(self.config)
        eventually(lambda: len(self.pinot.brokers(self.table)) == 2)

    def drop(self) -> None:
        if self.pinot.get_table_config(self.table) is not None:
            self.pinot.delete_table(self.table)
        self.pinot.delete_schema(self.table)

    def stage(self, name: str, rows: int = 3) -> Output:
        """Build one segment of that name and put its two tars on disk."""
        spec = SegmentSpec.from_pinot(self.schema, self.config, min_server="0.11")
        data = pa.table({"carrier": ["UA"] * rows, "delay": list(range(rows))})
        segment = build_segment(
            data,
            spec,
            name=name,
            table_name=self.table,
            creation_time_ms=1_700_000_000_000,
            now_ms=1_700_000_000_000,
            custom={"pinotAssets.session": "cp7-ab", "pinotAssets.uri": "s3://lake/a b=1/été.csv"},
        )
        tar, metadata = self.folder / f"{name}.tar.gz", self.folder / f"{name}.metadata.tar.gz"
        info = write_tar(segment, tar)
        metadata.write_bytes(metadata_tar(segment))
        return Output(
            segment=name,
            crc=segment.crc,
            rows=rows,
            tar_uri=tar.as_uri(),
            tar_bytes=info.bytes,
            tar_sha256=info.sha256,
            metadata_uri=metadata.as_uri(),
        )

    def push(self, *names: str) -> None:
        """Stage and push segments of these names and wait until they are ONLINE."""
        self.pinot.push(self.table, [self.stage(name) for name in names], read=read)
        self.wait_online(*names)

    def start(self, segments_from: set[str], segments_to: set[str]) -> str:
        return self.pinot.start_replace_segments(self.table, segments_from, segments_to)

    def replace(self, segments_from: set[str], segments_to: set[str]) -> str:
        """A whole replacement; returns the id of its entry."""
        entry = self.start(segments_from, segments_to)
        self.push(*segments_to)
        self.pinot.end_replace_segments(self.table, entry)
        return entry

    def wait_online(self, *names: str) -> None:
        wait_online(self.pinot, self.table, names, seconds=30)

    @staticmethod
    def eventually(holds: Callable[[], bool]) -> None:
        eventually(holds)

    @property
    def visible(self) -> set[str]:
        return set(self.pinot.visible_segments(self.table))

    @property
    def all(self) -> set[str]:
        return set(self.pinot.all_segments(self.table))

    def brokers_show(self, names: set[str]) -> bool:
        return all(
            self.pinot.broker_visible_segments(broker, self.table) == names
            for broker in self.pinot.brokers(self.table)
        )


def read(uri: str) -> bytes:
    return Path(unquote(urlsplit(uri).path)).read_bytes()


def eventually(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until it holds; a real cluster needs a moment."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it did not come true in time"
        time.sleep(0.05)


@pytest.fixture
def real_lab(stack: Any, tmp_path: Path) -> Iterator[Lab]:
    transport = LossyTransport()
    with PinotCluster(PinotConnection(stack.controller_url), transport=transport) as cluster:
        lab = Lab(cluster, transport, int(cluster.version().split(".")[0]) >= 1, tmp_path)
        lab.table += f"_{time.time_ns()}"
        lab.create()
        yield lab
        lab.drop()


@pytest.fixture(
    params=["fake", "fake of 0.11", pytest.param("real", marks=pytest.mark.integration)],
)
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    if request.param == "real":
        yield request.getfixturevalue("real_lab")
        return
    yield fake_lab(tmp_path, version="0.11.0" if request.param == "fake of 0.11" else "1.5.1")


def fake_lab(folder: Path, *, version: str = "1.5.1") -> Lab:
    fake = fake_pinot.FakePinot(version=version)
    lab = Lab(fake, fake, takes_empty_outputs(version), folder)
    lab.create()
    return lab


@pytest.fixture
def make_fake_lab() -> Callable[[Path], Lab]:
    return fake_lab
