"""The size of the node that lists a table's segments; `tests/integration/session` holds it to a real one."""

from __future__ import annotations

import json

from pinot_assets.session.checks.capacity import PACKED_ABOVE, ideal_state

SERVERS = ("Server_a_8098", "Server_b_8098", "Server_c_8098")


def names(count: int) -> list[str]:
    return [f"t__cp{n}-0a1b2c_0_0_0" for n in range(count)]


def test_each_replica_of_each_segment_takes_a_line() -> None:
    none, one, two = (ideal_state("t", names(n), SERVERS, 2).text_bytes for n in (0, 1, 2))
    entry = json.dumps({"a": dict.fromkeys(SERVERS[:2], "ONLINE")}, indent=2)
    assert abs((two - one) - len(entry) - len(names(1)[0])) < 20
    assert none < one < ideal_state("t", names(1), SERVERS, 3).text_bytes


def test_small_ones_are_stored_as_they_are_and_large_ones_packed() -> None:
    small, large = (ideal_state("t", names(n), SERVERS, 2) for n in (PACKED_ABOVE, PACKED_ABOVE + 1))
    assert not small.packed
    assert small.stored_bytes == small.text_bytes
    assert large.packed
    assert large.stored_bytes < large.text_bytes / 5
