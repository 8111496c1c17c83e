"""Which tests must run one after the other in one worker of pytest-xdist: those that share servers.

A lane is such a set. Its worker starts the servers once, and no two tests of a lane run at the same time.
Everything else is spread by module, so that fixtures of a module are made once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

TESTS = Path(__file__).parent

# Folder → lane, the first that fits. Those that take longest come first, so that the end of a run is short
# tests in all workers. What needs Kafka is one lane: a stack takes 2 GB.
LANES = {
    "contract/realtime/": "realtime",
    "integration/realtime/": "realtime",
    "pauseless/": "realtime",
    "slow/": "realtime",
    "integration/dagster/": "sessions",
    "integration/docs/": "realtime",
    "contract/": "contract",
    "crash/": "crash",
    "oracle/": "oracle",
}
# The same for what needs servers as its text shows; the other modules of these folders do not.
LANES_WITH_SERVERS = {"integration/session/": "sessions", "integration/": "clusters"}
_ORDER = ["realtime", "clusters", "sessions", "contract", "crash", "oracle"]

# Fixtures of the local stack, and what is built on it. A module that is missed here starts a stack of its
# own, one too many waits for no good reason: nothing else depends on this.
_SERVERS = re.compile(r"\b(stack|make_real_world|real_world|kafka_home|clicks)\b")


def lane_of(test: str) -> str:
    """The lane of a test, or where none is needed, what it is spread by.

    :param test: its node id, relative to the project.
    """
    module, *_ = test.split("::")
    path = module.removeprefix("tests/")
    if path.startswith("model/"):
        return test  # one of them is minutes of random lives
    lane = _lane_in(LANES, path)
    if lane is None and path.startswith("integration/") and _needs_servers(path):
        lane = _lane_in(LANES_WITH_SERVERS, path)
    return lane or module


def is_lane(name: str) -> bool:
    """Whether it is one, and not a module or a test."""
    return name in _ORDER


def _lane_in(lanes: Mapping[str, str], path: str) -> str | None:
    return next((lane for folder, lane in lanes.items() if path.startswith(folder)), None)


@cache
def _needs_servers(path: str) -> bool:
    return _SERVERS.search((TESTS / path).read_text()) is not None


def precedence(test: str) -> int:
    """Sorts tests so that lanes come first, the longest first."""
    lane = lane_of(test)
    return _ORDER.index(lane) if is_lane(lane) else len(_ORDER)


class Lanes(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Sends what shares a lane to one worker."""

    def _split_scope(self, nodeid: str) -> str:
        return lane_of(nodeid)
