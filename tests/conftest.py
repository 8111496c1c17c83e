"""Fixtures that all tests share."""

from __future__ import annotations

import logging
import os
import random
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import fakes.builder as fake_builder
import kazoo.protocol.connection
import kazoo.retry
import pytest
from fakes.realtime.kafka_table import Clicks, clicks_table
from lanes import Lanes, is_lane, lane_of, precedence
from sample import beyond_sample

from pinot_assets.local import processes
from pinot_assets.local.stack import Stack
from pinot_assets.settings.local_stack import StackState, default_cache, load_state


def pytest_configure() -> None:
    # A run that is told to end stops its servers, as it does after Ctrl-C: they would outlive it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Kazoo's threads draw their delays from the global generator; hypothesis, which sees it change while
    # a test's data are drawn, would take that for the test's own doing. So kazoo has one of its own.
    for module in (kazoo.protocol.connection, kazoo.retry):
        module.random = random.Random()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--whole", action="store_true", help="all tests of those marked one_in(n), not every nth"
    )


@pytest.hookimpl(trylast=True)  # after -k has chosen
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--whole"):
        left_out = beyond_sample(items)
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=[*left_out])
    if hasattr(config, "workerinput"):  # a worker of pytest-xdist
        items.sort(key=lambda item: precedence(item.nodeid))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> object:
    """A worker ends a lane's servers with the lane's last test: kept to the end, they fill the memory."""
    if nextitem is None or not hasattr(item.config, "workerinput"):
        return None
    lane = lane_of(item.nodeid)
    if not is_lane(lane) or lane == lane_of(nextitem.nodeid):
        return None
    return item.ihook.pytest_runtest_protocol(item=item, nextitem=None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Lanes:
    return Lanes(config, log)


_ROOT_FILTERS = [*logging.getLogger().filters]
_LEVELS = {name: logging.getLogger(name).level for name in ("kazoo", "py4j")}


@pytest.fixture(autouse=True)
def logging_as_it_was() -> None:
    """The program sets loggers for the rest of its process, here the tests'; so do fixtures of modules."""
    logging.getLogger().filters[:] = _ROOT_FILTERS
    for name, level in _LEVELS.items():
        logging.getLogger(name).setLevel(level)


@pytest.fixture(autouse=True, scope="session")
def cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The tests use the user's jars, but start no process that makes an archive of Spark's classes."""
    users, own = default_cache(), tmp_path_factory.mktemp("cache")
    for name in ("jars", "pinot"):
        (users / name).mkdir(parents=True, exist_ok=True)
        (own / name).symlink_to(users / name)
    (own / "spark-classes").touch()  # where the folder of the archives would be
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PINOT_ASSETS_CACHE", str(own))
        yield


class _OwnPorts:
    """Draws each port once: a worker's stacks must not take the ports of parts that another test has down."""

    def __init__(self, worker: int) -> None:
        self._worker, self._left = worker, list[int]()

    def choice(self, ports: Sequence[int]) -> int:
        if not self._left:  # every sixteenth of all is the worker's own
            self._left = random.SystemRandom().sample(mine := ports[self._worker % 16 :: 16], len(mine))
        return self._left.pop()


@pytest.fixture(autouse=True, scope="session")
def own_ports() -> Iterator[None]:
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "_RANDOM", _OwnPorts(worker))
        yield


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """The workers have ended: so does the stack that they shared."""
    if not hasattr(session.config, "workerinput") and (home := _home_of_the_stack(session.config)).exists():
        Stack(home).purge()


def _home_of_the_stack(config: pytest.Config) -> Path:
    base: Path = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    return (base.parent if hasattr(config, "workerinput") else base) / "stack"


@pytest.fixture(scope="session")
def stack(pytestconfig: pytest.Config) -> StackState:
    """A running local stack for all workers; do not break it, start another for that.

    `PINOT_ASSETS_TEST_HOME` names the home of one that runs already; that one is left running.
    """
    if running := os.environ.get("PINOT_ASSETS_TEST_HOME"):
        state = load_state(Path(running))
        assert state is not None, f"no stack runs in {running}: pinot-assets local up --home {running}"
        return state
    # The first worker starts it, the others wait for that.
    return Stack(_home_of_the_stack(pytestconfig)).up()


@pytest.fixture(scope="session")
def kafka_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Home of a stack with Kafka, whose servers may be killed and brought up again.

    `PINOT_ASSETS_TEST_KAFKA_HOME` names the home of one that runs already; that one is left running.
    """
    if running := os.environ.get("PINOT_ASSETS_TEST_KAFKA_HOME"):
        yield Path(running)
        return
    own = Stack(tmp_path_factory.mktemp("kafka-stack"))
    try:
        own.up(kafka=True, segment_store=True)
        yield own.home
    finally:
        own.purge()


@pytest.fixture
def kafka_stack(kafka_home: Path) -> StackState:
    """All of it runs."""
    return Stack(kafka_home).up(kafka=True)


@pytest.fixture
def clicks(kafka_stack: StackState) -> Iterator[Clicks]:
    """A table with two replicas and a peer scheme; 500 rows make a segment."""
    with clicks_table(kafka_stack) as clicks:
        yield clicks


@pytest.fixture
def executable(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes a shell script, to stand in for a program: `executable("bin/mvn", "exit 1")`."""

    def write(name: str, script: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return write


@pytest.fixture(scope="session")
def fakes() -> ModuleType:
    """`tests/fakes/builder.py`."""
    return fake_builder
