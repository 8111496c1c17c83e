"""Every replica is ONLINE with the CRC that was built."""

from __future__ import annotations

from types import SimpleNamespace

from fakes.looked import looked

from pinot_assets.core.check_result import CheckResult, Severity
from pinot_assets.health import serving
from pinot_assets.health.readings import Loaded
from pinot_assets.pinot.lineage import Replicas

ONLINE = {"s1": "ONLINE", "s2": "ONLINE"}


def loaded(*crcs: dict[str, int], silent: dict[str, str] | None = None) -> Loaded:
    return Loaded({f"s{n}": c for n, c in enumerate(crcs, 1)}, silent or {})


def replicas_and_crc(
    built: dict[str, int], replicas: Replicas, registered: dict[str, int], loaded: Loaded
) -> CheckResult:
    served = {name: SimpleNamespace(crc=crc) for name, crc in built.items()}
    return serving.replicas_and_crc(
        looked(served=served, replicas=replicas, registered_crcs=registered, loaded=loaded)
    )


def test_all_online_as_built() -> None:
    answer = replicas_and_crc({"a": 7}, {"a": ONLINE}, {"a": 7}, loaded({"a": 7}, {"a": 7}))
    assert (answer.passed, answer.expected, answer.found) == (True, 2, 2)


def test_one_replica_down_is_a_warning_while_the_other_serves() -> None:
    states = {"s1": "ONLINE", "s2": "ERROR"}
    answer = replicas_and_crc({"a": 7}, {"a": states}, {"a": 7}, loaded({"a": 7}, {}))
    assert (answer.passed, answer.severity) == (False, Severity.WARN)
    assert (answer.expected, answer.found) == (2, 1)
    assert "a is ERROR on s2" in answer.message
    assert "/reset" in answer.next_step


def test_a_segment_that_nobody_serves_is_an_error() -> None:
    states = {"s1": "OFFLINE", "s2": "ERROR"}
    answer = replicas_and_crc({"a": 7}, {"a": states}, {"a": 7}, loaded({}, {}))
    assert answer.severity is Severity.ERROR
    assert "no replica serves 1 published segment (a)" in answer.message
    assert "reset" in answer.next_step


def test_a_segment_that_pinot_does_not_have_is_an_error_that_says_how_to_bring_it_back() -> None:
    answer = replicas_and_crc({"a": 7}, {"a": {}}, {}, loaded())
    assert (answer.severity, answer.expected, answer.found) == (Severity.ERROR, 1, 0)
    assert "upload segments/a.tar.gz" in answer.next_step


def test_another_crc_on_a_server_or_in_pinot_is_an_error() -> None:
    answer = replicas_and_crc({"a": 7}, {"a": ONLINE}, {"a": 7}, loaded({"a": 7}, {"a": 8}))
    assert answer.severity is Severity.ERROR
    assert "a has CRC 8 on s2 instead of 7" in answer.message
    answer = replicas_and_crc({"a": 7}, {"a": ONLINE}, {"a": 9}, loaded({"a": 7}, {"a": 7}))
    assert answer.severity is Severity.ERROR
    assert "a has CRC 9 in Pinot instead of 7" in answer.message


def test_online_by_name_but_not_loaded_counts_as_down() -> None:
    answer = replicas_and_crc({"a": 7}, {"a": ONLINE}, {"a": 7}, loaded({"a": 7}, {}))
    assert (answer.passed, answer.found, answer.severity) == (False, 1, Severity.WARN)
    assert "a is not loaded on s2" in answer.message


def test_a_silent_server_is_told_and_does_not_hide_what_the_other_says() -> None:
    silent = {"s2": "connection refused"}
    answer = replicas_and_crc({"a": 7}, {"a": ONLINE}, {"a": 7}, loaded({"a": 8}, silent=silent))
    assert "s2 does not answer: connection refused" in answer.message
    assert "a has CRC 8 on s1" in answer.message
    assert answer.numbers["servers_silent"] == 1
