"""One table with everything around it: a bucket, a spec, proxies before all servers, a driver to kill."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import boto3
import yaml
from crash import names
from crash.driver import Answer, Order
from crash.gate import Fate, Gate, Point
from crash.http_proxy import http_proxy
from crash.processes import Running
from crash.reads import Reads
from crash.watch import Rows, Watch
from crash.zookeeper_proxy import ZooKeeperProxy, zookeeper_proxy
from fakes.stores.bucket import Bucket
from fakes.tables import document, on_s3
from fakes.waiting import until

from pinot_assets.core.connections import Waits
from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.untrusted import typed
from pinot_assets.pinot import HttpPinotClient, PinotConnection
from pinot_assets.pinot.lineage import LineageState
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.settings.environment import Settings
from pinot_assets.settings.local_stack import StackState
from pinot_assets.source import ObjectStore, open_store
from pinot_assets.zookeeper import close_client, connect

WAITS = Waits(lease=12.0, pinot_write=8.0, second_look=1.0)
"""Short, so that a crash costs seconds; long enough for a machine that has much else to do."""

MODES: Mapping[str, JsonMapping] = {
    "append": {"consistentPushEnabled": True},
    "sync": {"consistentPushEnabled": True, "ingestionMode": "sync"},
    "swap": {"consistentPushSwapEnabled": True},
}
PACKED = "-packed"
"""End of the names of the same modes for tables whose files share segments."""
_numbers = itertools.count()


@dataclass
class CrashTable:
    """See the module; made by `open_table`.

    :ivar files: base name → rows of what the source holds.
    :ivar options: keys of the ingestion block, changed at will.
    """

    name: str
    mode: str
    stack: StackState
    specs: Path
    settings: Settings
    gate: Gate
    reads: Reads
    watch: Watch
    zookeeper: ZooKeeperProxy
    pinot: HttpPinotClient
    store: SessionStore
    s3: Bucket
    environ: Mapping[str, str]
    endpoint: str
    options: JsonObject = field(default_factory=dict)
    files: dict[str, Rows] = field(default_factory=dict)

    # --- source and spec -------------------------------------------------------------------------

    @property
    def bucket(self) -> str:
        return self.name.replace("_", "-")

    def put(self, name: str, *values: str) -> None:
        """A csv file with these rows."""
        text = "\n".join(["v", *values, ""])
        self.s3.put_object(Bucket=self.bucket, Key=f"in/{name}", Body=text.encode())
        self.files[name] = values

    def remove(self, name: str) -> None:
        self.s3.delete_object(Bucket=self.bucket, Key=f"in/{name}")
        del self.files[name]

    @property
    def kind(self) -> str:
        """append, sync or swap."""
        return self.mode.removesuffix(PACKED)

    def write_spec(self) -> JsonObject:
        """The YAML as `options` want it now; returns schema and table config."""
        ingestion = {
            "inputFormat": "csv",
            **on_s3(self.endpoint, f"s3://{self.bucket}/in", f"s3://{self.bucket}-staging/pinot"),
            "push.mode": "TAR",  # the stack's deep store is a disk, which cannot copy from S3
            "maxNumRecordsPerSegment": 2,
            "consistentPushMaxRetries": 3,
            **MODES[self.kind],
            **self.options,
        }
        spec = document(self.name, {"v": "STRING"}, ingestion)
        if self.mode.endswith(PACKED):
            spec["layout"] = {"pack": True}
        new = self.specs / "crash.new"
        new.write_text(yaml.safe_dump(spec))
        new.replace(self.specs / "crash.yaml")  # a driver may be reading the one before
        return spec

    # --- driver processes ------------------------------------------------------------------------

    def run(self, step: str = "run", point: Point | None = None, failing: tuple[str, ...] = ()) -> Answer:
        """One driver process from its start to its end; a killed one's ZooKeeper session ends with it."""
        answer = self.start(step, point, failing).wait()
        if answer.said == "KILLED":
            self.zookeeper.expire_sessions()
        return answer

    def start(
        self,
        step: str = "run",
        point: Point | None = None,
        failing: tuple[str, ...] = (),
        outage: Callable[[], None] | None = None,
    ) -> Running:
        """Start a driver process.

        :param outage: what happens at a point whose fate is OUTAGE.
        """
        self.write_spec()
        running = Running(self.order(step, failing))
        frozen = point is not None and point.fate is Fate.FROZEN
        self.gate.begin(point, outage or (running.freeze if frozen else running.kill))
        running.start()
        return running

    def order(self, step: str, failing: tuple[str, ...] = ()) -> Order:
        return Order(
            specs=self.specs,
            table=self.name,
            settings=self.settings,
            step=step,
            run_id=f"run-{next(_numbers)}",
            failing=frozenset(failing),
            environ=self.environ,
        )

    def until_quiet(self, most: int = 8) -> list[Answer]:
        """Triggers, one after the other, until there is nothing left to do."""
        answers: list[Answer] = []
        while len(answers) < most:
            answers.append(self.run())
            if answers[-1].quiet:
                break
            if answers[-1].said == "SessionHeld":
                until(lambda: self.store.holder() is None, self.settings.waits.lease + 30)
        return answers

    # --- what is there ---------------------------------------------------------------------------

    def shown_by(self, broker: str) -> Rows:
        sql = f'SELECT v, COUNT(*) FROM "{self.name}" GROUP BY v LIMIT 5000'
        rows = self.pinot.broker(broker).query(sql).rows
        return tuple(sorted(str(value) for value, count in rows for _ in range(typed(count, int))))

    def troubles(self, expected: Rows) -> Iterator[str]:
        """What is not as it must be when all is quiet."""
        pointer, holder = self.store.pointer(), self.store.holder()
        if pointer.active_session or holder is not None:
            yield f"session {pointer.active_session or '-'} is open, the lease is held by {holder}"
        if pointer.current_snapshot is None:
            yield "there is no ledger"
            return
        snapshot = Staging(self._staging).snapshot(pointer.current_snapshot)
        ledger, visible = set(snapshot.segments), self.pinot.visible_segments(self.name)
        if ledger != visible:
            yield f"ledger and visible segments differ: {sorted(ledger ^ visible)}"
        for broker in self.stack.broker_urls:
            if (rows := self.shown_by(broker)) != expected:
                yield f"{broker} shows {rows}, not {expected}"
        lineage = self.pinot.lineage(self.name)
        for entry in lineage.in_state(LineageState.IN_PROGRESS):
            yield f"orphan lineage entry {entry.id}: {sorted(entry.segments_to)}"
        replaced = {s for e in lineage.in_state(LineageState.COMPLETED) for s in e.segments_from}
        if orphans := self.pinot.all_segments(self.name) - visible - replaced:
            yield f"orphan segments {sorted(orphans)}"
        if self.reads.again:
            yield f"read again although done: {self.reads.again}"

    @property
    def _staging(self) -> ObjectStore:
        props = {
            "region": "us-east-1",
            "endpoint": self.stack.s3_endpoint or "",
            "accessKey": self.environ["TABLE_ACCESS_KEY"],
            "secretKey": self.environ["TABLE_SECRET_KEY"],
        }
        return open_store(f"s3://{self.bucket}-staging/pinot/{self.name}_OFFLINE", props, UNLIMITED)


@contextmanager
def open_table(stack: StackState, mode: str, folder: Path, waits: Waits = WAITS) -> Iterator[CrashTable]:
    """A new table on a running stack with S3, and proxies before all of it; dropped at the end."""
    assert stack.s3_endpoint
    assert stack.s3_access_key
    assert stack.s3_secret_key
    name = f"crash_{os.getpid()}_{next(_numbers)}"
    specs = folder / name
    specs.mkdir(parents=True)
    environ = {"TABLE_ACCESS_KEY": stack.s3_access_key, "TABLE_SECRET_KEY": stack.s3_secret_key}
    s3 = boto3.client(
        "s3",
        endpoint_url=stack.s3_endpoint,
        region_name="us-east-1",
        aws_access_key_id=stack.s3_access_key,
        aws_secret_access_key=stack.s3_secret_key,
    )
    bucket = name.replace("_", "-")
    for name_of_bucket in (bucket, f"{bucket}-staging"):
        s3.create_bucket(Bucket=name_of_bucket)
    # A call that was on its way lands in the middle of the next owner's wait (rule R2).
    gate, reads = Gate(waits.pinot_write / 2), Reads(bucket)
    with ExitStack() as doors:
        zookeeper = doors.enter_context(zookeeper_proxy(stack.zookeeper, gate))
        controller = doors.enter_context(http_proxy(stack.controller_url, gate, names.of_controller))
        brokers = [doors.enter_context(http_proxy(u, gate, names.of_broker)) for u in stack.broker_urls]
        store = doors.enter_context(http_proxy(stack.s3_endpoint, gate, names.of_store, reads.see))
        client = connect(stack.zookeeper)
        doors.callback(close_client, client)
        pinot = doors.enter_context(HttpPinotClient(PinotConnection(stack.controller_url)))
        connection = PinotConnection(
            controller.url, timeouts=waits.timeouts(), broker_urls=tuple(b.url for b in brokers)
        )
        table = CrashTable(
            name=name,
            mode=mode,
            stack=stack,
            specs=specs,
            settings=Settings(connection, zookeeper.address, stack.cluster, waits=waits),
            gate=gate,
            reads=reads,
            watch=Watch(stack.broker_urls, name),
            zookeeper=zookeeper,
            pinot=pinot,
            store=SessionStore(client, stack.cluster, f"{name}_OFFLINE"),
            s3=s3,
            environ=environ,
            endpoint=store.url,
        )
        spec = table.write_spec()
        pinot.put_schema(spec["schema"])
        pinot.create_table(spec["table"])
        try:
            until(lambda: len(pinot.brokers(name)) == 2)
            with table.watch:
                yield table
        finally:
            pinot.delete_table(name)
            pinot.delete_schema(name)
