"""The table of a soak: its spec as a user writes it, its bucket, and what is stored of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import boto3
import httpx
import yaml
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from fakes.stores.bucket import Bucket
from fakes.tables import document, on_s3
from kazoo.client import KazooClient
from soak.answers import answer, rows
from soak.world import Answer, Content, Row, SoakWorld, Write, answer_of

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotAssetsError
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.stores.stored_snapshots import read_snapshots, snapshot_refs
from pinot_assets.settings.local_stack import StackState
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.source import open_store

TABLE: Final = "soak"
MARK: Final = "PINOT_ASSETS_SOAK"
"""Variable by which the processes of a soak are known, and all that they start."""


@dataclass
class SoakTable:
    """See the module.

    :ivar home: folder of the soak.
    :ivar endpoint: of the store with its troubles, as the product sees it.
    """

    stack: StackState
    home: Path
    endpoint: str
    format: str

    # --- as a user has it --------------------------------------------------------------------------

    def prepare(self) -> None:
        """Buckets, the spec, the folder of temporary files."""
        for bucket in ("soak", "soak-staging"):
            self.bucket.create_bucket(Bucket=bucket)
        for folder in (self.home / "tables", self.temporary):
            folder.mkdir(parents=True)
        (self.home / "tables" / f"{TABLE}.yaml").write_text(yaml.safe_dump(self._document()))

    def _document(self) -> JsonObject:
        ingestion = {
            "inputFormat": self.format,
            **on_s3(self.endpoint, "s3://soak/in", "s3://soak-staging/pinot"),
            "consistentPushEnabled": True,
            "ingestionMode": "sync",
        }
        columns = {"id": "STRING", "t": "STRING", "ver": "INT", "n": "INT"}
        return document(TABLE, columns, ingestion, v="LONG")

    @property
    def temporary(self) -> Path:
        """Where the product's processes make their temporary files."""
        return self.home / "tmp"

    @property
    def environment(self) -> dict[str, str]:
        """Of the product's commands."""
        usual = {n: v for n, v in os.environ.items() if not n.startswith(("PINOT_", "TABLE_"))}
        return usual | {
            MARK: str(self.home),
            "PINOT_CONTROLLER_URL": self.stack.controller_url,
            "PINOT_ZOOKEEPER": self.stack.zookeeper,
            "PINOT_CLUSTER": self.stack.cluster,
            "TABLE_ACCESS_KEY": self.stack.s3_access_key or "",
            "TABLE_SECRET_KEY": self.stack.s3_secret_key or "",
            "TMPDIR": str(self.temporary),
            "COLUMNS": "200",
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command of the product; what it says can be read."""
        return subprocess.Popen(
            [str(Path(sys.executable).with_name("pinot-assets")), *words],
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def call(self, *words: str) -> tuple[int, str]:
        """Run a command to its end: exit code, and what it said."""
        process = self.start(*words)
        said, _ = process.communicate(timeout=600)
        return process.returncode, said

    def write(self, write: Write) -> bool:
        """Carry out a change of a file, past all troubles but a store that is down; whether it was done."""
        key = f"in/{write.name}"
        try:
            if write.data is None:
                self.bucket.delete_object(Bucket="soak", Key=key)
            else:
                self.bucket.put_object(Bucket="soak", Key=key, Body=write.data)
        except (BotoCoreError, ClientError):
            return False
        return True

    @cached_property
    def bucket(self) -> Bucket:
        """The store itself."""
        once = Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=10)
        client: Bucket = boto3.client("s3", endpoint_url=self.stack.s3_endpoint, config=once, **self._keys)
        return client

    @property
    def _keys(self) -> dict[str, str | None]:
        return {
            "region_name": "us-east-1",
            "aws_access_key_id": self.stack.s3_access_key,
            "aws_secret_access_key": self.stack.s3_secret_key,
        }

    # --- what is there -----------------------------------------------------------------------------

    @cached_property
    def zookeeper(self) -> KazooClient:
        """A client that lives as long as the soak."""
        client = KazooClient(self.stack.zookeeper, timeout=10)
        client.start(timeout=60)
        return client

    @cached_property
    def sessions(self) -> SessionStore:
        """The table's nodes."""
        return SessionStore(self.zookeeper, self.stack.cluster, f"{TABLE}_OFFLINE")

    @cached_property
    def staging(self) -> Staging:
        """The staging area, past all troubles."""
        props = {
            "region": "us-east-1",
            "endpoint": self.stack.s3_endpoint or "",
            "accessKey": self.stack.s3_access_key or "",
            "secretKey": self.stack.s3_secret_key or "",
        }
        return Staging(open_store(f"s3://soak-staging/pinot/{TABLE}_OFFLINE", props, UNLIMITED))

    def snapshots(self) -> list[Snapshot]:
        """All that were published, oldest first."""
        snapshots = [kept.snapshot for kept in read_snapshots(self.staging, snapshot_refs(self.staging))]
        return sorted(snapshots, key=lambda snapshot: (snapshot.seq, snapshot.published_ms))

    def pointer(self) -> bytes:
        """What stands in the table's pointer; empty where ZooKeeper does not answer."""
        try:
            return self.sessions.content() or b"" if self.zookeeper.connected else b""
        except PinotAssetsError:
            return b""

    def published(self, known: dict[str, Content]) -> list[Answer]:
        """What queries had to answer of each snapshot.

        :param known: contents by the SHA-256 of their bytes.
        """
        strange = Content("bytes that nobody wrote", 0, 1)
        return [answer_of(known.get(file.sha256, strange) for file in one.files) for one in self.snapshots()]

    def differences(self, world: SoakWorld) -> list[str]:
        """Compare all rows at each broker with what the files hold."""
        expected = sorted(row for content in world.files.values() for row in content.all_rows())
        lines = []
        for broker in self.stack.broker_urls:
            shown = sorted(self._rows(broker, {content.id for content in world.known.values()}))
            if shown != expected:
                missing, more = set(expected) - set(shown), set(shown) - set(expected)
                example = f", such as {min(missing or more)}" if missing or more else ""
                lines.append(f"{broker}: {len(missing)} rows missing, {len(more)} too many{example}")
        return lines

    def _rows(self, broker: str, ids: Iterable[str]) -> list[Row]:
        known_rows: list[Row] = []
        with httpx.Client(timeout=30, trust_env=False) as client:
            for id_ in sorted(ids):
                sql = f"SELECT id, ver, n, t, v FROM {TABLE} WHERE id = '{id_}' LIMIT 100000"
                cells = rows(client, broker, sql)
                known_rows += [(str(i), int(ver), int(n), str(t), int(v)) for i, ver, n, t, v in cells]
            count = rows(client, broker, f"SELECT COUNT(*) FROM {TABLE}")[0][0]
        if count != len(known_rows):
            raise RuntimeError(f"{broker} shows {count} rows, and {len(known_rows)} of the known files")
        return known_rows

    def shows(self, expected: Answer) -> bool:
        """Whether each broker answers so now."""
        with httpx.Client(timeout=10, trust_env=False) as client:
            try:
                return all(answer(client, url, TABLE) == expected for url in self.stack.broker_urls)
            except (httpx.HTTPError, RuntimeError):
                return False
