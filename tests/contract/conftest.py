"""The laboratory of the contract suite: one fresh table in a fake or in a real cluster.

`SUBJECTS` is what the suite is held against. What a subject cannot show is left out there, with the reason.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import fakes.pinot.memory as fake_pinot
import httpx
import pyarrow as pa
import pytest
from _pytest.mark import ParameterSet
from fakes.changed import changed
from fakes.pinot.controller import ControllerCluster
from fakes.pinot.direct import Inside
from fakes.pinot.releases import PINOT_0_11, PINOT_1_5, PINOT_1_6, Dialect, dialect_of, release_of_stack
from fakes.pinot.staged import STAGED

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotError
from pinot_assets.local.stack import Stack
from pinot_assets.pinot import (
    HttpPinotClient,
    LineageEntry,
    LineageState,
    PinotClient,
    PinotConnection,
    Timeouts,
    wait_online,
)
from pinot_assets.segment import SegmentSpec, build_segment, metadata_tar, write_tar
from pinot_assets.settings.local_stack import StackState
from pinot_assets.snapshot.receipt import Output

TABLES = (f"contract{n}" for n in itertools.count())
# Method of the port → end of the path that it is on the wire.
WIRE = {
    "start_replace_segments": "/startReplaceSegments",
    "force_start_replace_segments": "/startReplaceSegments",
    "end_replace_segments": "/endReplaceSegments",
    "revert_replace_segments": "/revertReplaceSegments",
    "delete_segments": "/delete",
}


class LossyTransport(httpx.BaseTransport):
    """Real HTTP that can lose one call or one reply.

    :ivar upload: end of the path of an upload.
    """

    def __init__(self) -> None:
        self.upload = ""
        self._inner = httpx.HTTPTransport()
        self._lost_calls: list[str] = []
        self._lost_replies: list[str] = []

    def lose_call(self, method: str) -> None:
        self._lost_calls.append(self._path(method))

    def lose_reply(self, method: str) -> None:
        self._lost_replies.append(self._path(method))

    def _path(self, method: str) -> str:
        return {**WIRE, "push": self.upload}[method]

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


class Trouble(Protocol):
    """What a subject can be made to suffer from."""

    def lose_call(self, method: str) -> None: ...

    def lose_reply(self, method: str) -> None: ...


class Insight(Protocol):
    """What is done to a subject past the port, as others do it."""

    def put_entry(self, table: str, entry: LineageEntry) -> None: ...

    def fix_time_boundary(self, table: str, boundary_ms: int) -> None: ...

    def run_retention(self, table: str) -> None: ...

    def listed_segments(self, table: str) -> set[str]: ...

    def narrow_and_end(self, table: str, entry_id: str, segments_to: Collection[str]) -> None: ...

    def before_lineage_write(self, table: str, action: Callable[[], None]) -> None: ...

    def leave_metadata(self, table: str, output: Output) -> None: ...


class Cluster(Protocol):
    """A cluster that runs."""

    @property
    def controller_url(self) -> str: ...

    @property
    def zookeeper(self) -> str: ...

    @property
    def cluster(self) -> str: ...


@dataclass
class ContractLab:
    """One table, the means to make segments for it, and what may happen to it.

    :ivar inside: past the port.
    :ivar hurried: a Pinot with callers whose deadlines are over after a second.
    """

    pinot: PinotClient
    trouble: Trouble
    inside: Insight
    hurried: Callable[[], AbstractContextManager[PinotClient]]
    dialect: Dialect
    folder: Path
    table: str = field(default_factory=lambda: next(TABLES))
    ingestion: str = "REFRESH"

    @property
    def servers(self) -> Sequence[str]:
        """Those that segments of the table may be assigned to."""
        return self.pinot.table_servers(self.table)

    @property
    def schema(self) -> JsonObject:
        return {
            "schemaName": self.table,
            "dimensionFieldSpecs": [{"name": "carrier", "dataType": "STRING"}],
            "metricFieldSpecs": [{"name": "delay", "dataType": "LONG"}],
        }

    @property
    def config(self) -> JsonObject:
        return {
            "tableName": self.table,
            "tableType": "OFFLINE",
            "segmentsConfig": {"schemaName": self.table, "replication": "2"},
            "tenants": {},
            "tableIndexConfig": {"loadMode": "MMAP"},
            "ingestionConfig": {
                "batchIngestionConfig": {
                    "segmentIngestionType": self.ingestion,
                    "segmentIngestionFrequency": "DAILY",
                }
            },
            "metadata": {},
        }

    def create(self) -> None:
        self.pinot.put_schema(self.schema)
        self.pinot.create_table(self.config)
        eventually(lambda: len(self.pinot.brokers(self.table)) == 2)

    def create_again(self) -> None:
        """Create the table that was just deleted: refused while a server has not let go of its segments."""

        def done() -> bool:
            with suppress(PinotError):
                self.create()
                return True
            return False

        eventually(done)

    def drop(self) -> None:
        if self.pinot.get_table_config(self.table) is not None:
            self.pinot.delete_table(self.table)
        self.pinot.delete_schema(self.table)

    def stage(self, name: str, rows: int = 3) -> Output:
        """Build one segment of that name and put its two tars on disk."""
        spec = SegmentSpec.from_pinot(self.schema, self.config, write_for="0.11")
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
        self.pinot.push(self.table, [self.stage(name) for name in names], staged=STAGED)
        self.wait_online(*names)

    def start(self, segments_from: set[str], segments_to: set[str]) -> str:
        return self.pinot.start_replace_segments(self.table, segments_from, segments_to)

    def replace(self, segments_from: set[str], segments_to: set[str]) -> str:
        """A whole replacement; returns the id of its entry."""
        entry = self.start(segments_from, segments_to)
        self.push(*segments_to)
        self.pinot.end_replace_segments(self.table, entry)
        return entry

    def force(self, segments_from: set[str], segments_to: set[str]) -> str:
        return self.pinot.force_start_replace_segments(self.table, segments_from, segments_to)

    def end(self, entry_id: str) -> None:
        self.pinot.end_replace_segments(self.table, entry_id)

    def revert(self, entry_id: str) -> None:
        self.pinot.revert_replace_segments(self.table, entry_id)

    def force_revert(self, entry_id: str) -> None:
        self.pinot.force_revert_replace_segments(self.table, entry_id)

    def entry(self, entry_id: str) -> LineageEntry | None:
        return self.pinot.lineage(self.table).get(entry_id)

    def is_reverted(self, entry_id: str) -> bool:
        """REVERTED, or forgotten already: a real cluster runs its retention when it likes, and that takes a
        reverted entry away once its segments have gone."""
        entry = self.entry(entry_id)
        return entry is None or entry.state is LineageState.REVERTED

    def appends(self) -> None:
        """From now on the table is one of ingestion type APPEND."""
        self.ingestion = "APPEND"
        self.pinot.update_table(self.config)

    def rewriting(self, entry_id: str, **changes: object) -> Callable[[], None]:
        """A change of an entry as another controller makes it: read now, written when called."""
        entry = self.entry(entry_id)
        assert entry is not None
        rewritten = changed(entry, changes)
        return lambda: self.inside.put_entry(self.table, rewritten)

    def age(self, entry_id: str, hours: float) -> None:
        """Make the last write of the entry's state so much longer ago."""
        entry = self.entry(entry_id)
        assert entry is not None
        self.rewriting(entry_id, timestamp_ms=entry.timestamp_ms - int(hours * 3_600_000))()

    def in_between(self, action: Callable[[], None]) -> None:
        """Do this when the next start has checked everything and is about to write. Not through this Pinot:
        its controller waits with that write, and all behind it."""
        self.inside.before_lineage_write(self.table, action)

    def retention(self) -> None:
        """One pass of Pinot's retention over this table."""
        self.inside.run_retention(self.table)

    def at_last(self, *names: str) -> None:
        """Wait until the table holds just these, the hidden ones included, and Pinot has forgotten any other:
        up to 0.11 its retention sees deleted names for some seconds more, and keeps their entries."""
        self.eventually(lambda: self.all == self.inside.listed_segments(self.table) == set(names))

    def wait_online(self, *names: str) -> None:
        wait_online(self.pinot, self.table, names, seconds=120)  # four workers share two cores

    @staticmethod
    def refusal(pattern: str | None) -> AbstractContextManager[object]:
        """Expects an error that says so, or none where there is no pattern."""
        return nullcontext() if pattern is None else pytest.raises(PinotError, match=pattern)

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
        """Whether each broker routes to just these. One that still routes to what servers dropped a moment
        ago answers in part, with an error (Pinot's 235): that is no.
        """
        try:
            return all(
                self.pinot.broker_visible_segments(broker, self.table) == names
                for broker in self.pinot.brokers(self.table)
            )
        except PinotError:
            return False


def eventually(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until it holds; a real cluster needs a moment."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it did not come true in time"
        time.sleep(0.05)


# --- what is under test ------------------------------------------------------------------------------


@contextmanager
def fake_lab(folder: Path, version: str) -> Iterator[ContractLab]:
    """A table in the in-memory Pinot of that release."""
    fake = fake_pinot.FakePinot(version=version)

    @contextmanager
    def hurried() -> Iterator[PinotClient]:
        fake.hurried = True
        yield fake
        fake.hurried = False

    lab = ContractLab(fake, fake, fake, hurried, dialect_of(version), folder)
    lab.create()
    yield lab


@contextmanager
def real_lab_of(cluster: Cluster, folder: Path) -> Iterator[ContractLab]:
    """A table in a running cluster, dropped in the end.

    :param cluster: has a `door` as well if its writes can be held up.
    """

    def hurried() -> HttpPinotClient:
        return HttpPinotClient(PinotConnection(cluster.controller_url, timeouts=Timeouts(call=1.0, end=1.0)))

    with ExitStack() as opened:
        transport = LossyTransport()
        pinot = opened.enter_context(
            HttpPinotClient(PinotConnection(cluster.controller_url), transport=transport)
        )
        door = getattr(cluster, "door", None)
        inside = Inside(cluster.zookeeper, cluster.cluster, cluster.controller_url, door)
        opened.enter_context(inside)
        lab = ContractLab(pinot, transport, inside, hurried, dialect_of(pinot.version()), folder)
        transport.upload = lab.dialect.upload
        lab.table += f"_{time.time_ns()}"
        lab.create()
        yield lab
        lab.drop()


@pytest.fixture(scope="session")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerCluster]:
    """A real controller of 1.5.1 with stand-ins for servers and brokers."""
    with ControllerCluster(tmp_path_factory.mktemp("controller")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def mavens_stack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StackState]:
    """The local stack of Maven's Pinot, also where PINOT_HOME names another."""
    home = os.environ.pop("PINOT_HOME", None)
    if home is None:
        yield request.getfixturevalue("stack")
        return
    own = Stack(tmp_path_factory.mktemp("mavens-stack"))
    try:
        try:
            state = own.up()
        finally:
            os.environ["PINOT_HOME"] = home
        yield state
    finally:
        own.purge()


@dataclass(frozen=True)
class Subject:
    """Something that is held to the contract.

    :ivar fixture: of the cluster that it runs in, None for a fake.
    :ivar cannot: what it cannot show → why.
    """

    name: str
    dialect: Dialect
    fixture: str | None = None
    cannot: dict[str, str] = field(default_factory=dict)

    def open(self, request: pytest.FixtureRequest, folder: Path) -> AbstractContextManager[ContractLab]:
        """Its laboratory, with a fresh table."""
        if self.fixture is None:
            return fake_lab(folder, self.dialect.version)
        return real_lab_of(request.getfixturevalue(self.fixture), folder)


WHOLE = {"races": "nothing can hold up its controller's writes: it finds ZooKeeper by itself"}
NO_BODY = {"narrowing": "up to 0.11 an end heeds no body: it asks for every output of its entry"}
LOCKED = {"locked deletes": "after 1.5.1 no call deletes what a live lineage entry names"}


def pinot_home() -> tuple[Subject, ...]:
    """The Pinot that PINOT_HOME names, held to the ways of its own release; none where it names none."""
    if "PINOT_HOME" not in os.environ:
        return ()
    dialect = dialect_of(release_of_stack())
    cannot = (
        WHOLE | (NO_BODY if dialect.empty_outputs_refused else {}) | (LOCKED if dialect.locks_deletes else {})
    )
    return (Subject("PINOT_HOME", dialect, "stack", cannot),)


SUBJECTS = (
    Subject("fake", PINOT_1_5),
    Subject("fake of 1.6", PINOT_1_6, cannot={"races": "seen on a real 1.5.1 only", **LOCKED}),
    Subject("fake of 0.11", PINOT_0_11, cannot={"races": "seen on a real 1.5.1 only", **NO_BODY}),
    Subject("0.11.0", PINOT_0_11, "mavens_stack", WHOLE | NO_BODY),
    Subject(
        "controller of 1.5.1",
        PINOT_1_5,
        "controller",
        {
            "brokers": "its brokers are stand-ins that route nothing",
            "queries": "its servers are stand-ins that answer no query",
        },
    ),
    *pinot_home(),
)


def those_that_show(*things: str) -> Sequence[ParameterSet]:
    """The subjects that can show all of that, as parameters."""
    return _parameters(_showing(*things))


def those_that_lock_deletes() -> Sequence[ParameterSet]:
    """The subjects that keep what a live lineage entry names."""
    return _parameters(subject for subject in SUBJECTS if subject.dialect.locks_deletes)


def real_ones_that_show(*things: str) -> Sequence[ParameterSet]:
    """The same without the fakes."""
    return _parameters(subject for subject in _showing(*things) if subject.fixture)


def _showing(*things: str) -> Iterator[Subject]:
    return (subject for subject in SUBJECTS if not set(things) & set(subject.cannot))


def _parameters(subjects: Iterable[Subject]) -> Sequence[ParameterSet]:
    return [pytest.param(subject, id=subject.name, marks=[*_marks(subject)]) for subject in subjects]


def _marks(subject: Subject) -> Iterator[pytest.MarkDecorator]:
    if subject.fixture:
        yield pytest.mark.integration
    if subject.fixture == "controller":  # each test of it takes seconds
        yield pytest.mark.one_in(4)


@pytest.fixture(params=those_that_show())
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContractLab]:
    """Every subject."""
    with request.param.open(request, tmp_path) as opened:
        yield opened


@pytest.fixture(params=those_that_show("brokers"))
def routed_lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContractLab]:
    """The subjects whose brokers tell what they route to."""
    with request.param.open(request, tmp_path) as opened:
        yield opened


@pytest.fixture(params=those_that_show("queries"))
def answering_lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContractLab]:
    """The subjects whose servers answer queries."""
    with request.param.open(request, tmp_path) as opened:
        yield opened


@pytest.fixture(params=those_that_show("races"))
def racing_lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContractLab]:
    """The subjects where somebody can write between the check and the write of a start."""
    with request.param.open(request, tmp_path) as opened:
        yield opened


@pytest.fixture(params=those_that_show("narrowing"))
def narrowing_lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContractLab]:
    """The subjects whose end can drop outputs from its entry."""
    with request.param.open(request, tmp_path) as opened:
        yield opened


@pytest.fixture(params=those_that_show("locked deletes"))
def unlocked_lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContractLab]:
    """The subjects that delete what a live lineage entry names."""
    with request.param.open(request, tmp_path) as opened:
        yield opened


@pytest.fixture(params=those_that_lock_deletes())
def locking_lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContractLab]:
    """The subjects that refuse to."""
    with request.param.open(request, tmp_path) as opened:
        yield opened


@pytest.fixture(params=real_ones_that_show("queries"))
def real_lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContractLab]:
    """The clusters that are real through and through."""
    with request.param.open(request, tmp_path) as opened:
        yield opened


@pytest.fixture(params=real_ones_that_show())
def wired_lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContractLab]:
    """The subjects behind HTTP."""
    with request.param.open(request, tmp_path) as opened:
        yield opened


@pytest.fixture
def controller_lab(controller: ControllerCluster, tmp_path: Path) -> Iterator[ContractLab]:
    """The controller of 1.5.1 alone, where a test has a hand on its servers and brokers."""
    with real_lab_of(controller, tmp_path) as opened:
        yield opened


@pytest.fixture
def make_fake_lab() -> Callable[[Path], AbstractContextManager[ContractLab]]:
    return lambda folder: fake_lab(folder, PINOT_1_5.version)
