"""Which tests must run one after the other in one worker of pytest-xdist: those that share servers.

A lane is such a set. Its worker starts the servers once, and no two tests of a lane run at the same time.
Everything else is spread by module, so that fixtures of a module are made once.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

TESTS = Path(__file__).parent

# Folder → lane, the first that fits. Those that take longest come first, so that the end of a run is short
# tests in all workers. What needs Kafka is one lane: a worker keeps its servers until the run ends, and a
# stack takes 2 GB.
LANES = {
    "contract/realtime/": "realtime",
    "integration/dagster/": "clusters",
    "integration/docs/": "clusters",
    "contract/": "contract",
    "crash/": "crash",
    "integration/realtime/": "realtime",
    "pauseless/": "realtime",
    "oracle/": "oracle",
}
_ORDER = list(dict.fromkeys(LANES.values()))

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
    lane = next((lane for folder, lane in LANES.items() if path.startswith(folder)), None)
    if lane is None and path.startswith("integration/") and _needs_servers(path):
        return "clusters"
    return lane or module


@cache
def _needs_servers(path: str) -> bool:
    return _SERVERS.search((TESTS / path).read_text()) is not None


def precedence(test: str) -> int:
    """Sorts tests so that lanes come first, in the order of `LANES`."""
    lane = lane_of(test)
    return _ORDER.index(lane) if lane in _ORDER else len(_ORDER)


class Lanes(LoadScopeScheduling):
    """Sends what shares a lane to one worker."""

    def _split_scope(self, nodeid: str) -> str:
        return lane_of(nodeid)
