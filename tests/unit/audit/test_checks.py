from __future__ import annotations

from dataclasses import replace

from pinot_assets.audit.checks import (
    Finding,
    crc_as_built,
    crc_on_servers,
    files_built,
    one_replica_online,
    replicas_online,
    rows_as_built,
    rows_kept,
    servers_answered,
    sources_unchanged,
)
from pinot_assets.errors import PinotError, PinotUnreachable
from pinot_assets.snapshot.receipt import Failure, Fingerprint, Output, Receipt

A, B = (Output(name, crc, rows, "", 1, "", "") for name, crc, rows in (("a", 11, 3), ("b", 22, 5)))


def numbers(finding: Finding) -> tuple[bool, int, int]:
    return finding.passed, finding.expected, finding.found


def test_all_files_are_built_or_the_first_failures_are_named() -> None:
    assert numbers(files_built(5, ())) == (True, 5, 5)
    failures = [Failure(f"s3://b/day{n}.csv", n, 0, "UNREADABLE", f"line {n}") for n in range(5)]
    finding = files_built(7, failures)
    assert numbers(finding) == (False, 7, 2)
    assert "day0.csv: UNREADABLE: line 0" in finding.message
    assert "day3.csv" not in finding.message
    assert finding.message.endswith("and 2 more")


def test_numbers_have_thousands_separators() -> None:
    assert files_built(8_668, []).message == "8,668 of 8,668 files are built"


def test_every_replica_must_be_online() -> None:
    good = {"a": {"s1": "ONLINE", "s2": "ONLINE"}, "b": {"s1": "ONLINE", "s2": "ONLINE"}}
    assert numbers(replicas_online([A, B], good)) == (True, 4, 4)
    for state in ("OFFLINE", "ERROR", "CONSUMING"):
        finding = replicas_online([A, B], {**good, "b": {"s1": "ONLINE", "s2": state}})
        assert numbers(finding) == (False, 4, 3)
        assert f"b is {state} on s2" in finding.message


def test_a_segment_that_pinot_does_not_know_is_missing() -> None:
    for replicas in ({"a": {"s1": "ONLINE"}}, {"a": {"s1": "ONLINE"}, "b": {}}):
        finding = replicas_online([A, B], replicas)
        assert numbers(finding) == (False, 2, 1)
        assert "b is MISSING" in finding.message


def test_every_crc_must_be_the_built_one() -> None:
    assert numbers(crc_as_built([A, B], {"a": 11, "b": 22, "other": 3})) == (True, 2, 2)
    assert "b has CRC 23 instead of 22" in crc_as_built([A, B], {"a": 11, "b": 23}).message
    finding = crc_as_built([A, B], {"a": 11})
    assert numbers(finding) == (False, 2, 1)
    assert "b has CRC None" in finding.message


def test_every_server_must_have_every_row() -> None:
    good = {"a": {"s1": 3, "s2": 3}, "b": {"s1": 5, "s2": 5}}
    assert numbers(rows_as_built([A, B], good)) == (True, 16, 16)
    finding = rows_as_built([A, B], {**good, "b": {"s1": 5, "s2": 4}})
    assert numbers(finding) == (False, 16, 15)
    assert "b has 4 rows on s2 instead of 5" in finding.message


def test_rows_that_cancel_out_do_not_pass() -> None:
    finding = rows_as_built([A, B], {"a": {"s1": 4}, "b": {"s1": 4}})
    assert numbers(finding) == (False, 8, 8)


def test_rows_on_no_server_do_not_pass() -> None:
    for rows in ({"a": {"s1": 3}}, {"a": {"s1": 3}, "b": {}}):
        finding = rows_as_built([A, B], rows)
        assert not finding.passed
        assert "b is loaded on no server" in finding.message


def test_sources_must_be_in_place() -> None:
    assert numbers(sources_unchanged(["x", "y"], frozenset({"x", "y", "z"}))) == (True, 2, 2)
    finding = sources_unchanged(["x", "y"], frozenset({"x"}))
    assert numbers(finding) == (False, 2, 1)
    assert "y is missing or hidden" in finding.message


def test_nothing_to_look_at_passes() -> None:
    for finding in (
        replicas_online([], {}),
        crc_as_built([], {}),
        rows_as_built([], {}),
        sources_unchanged([], frozenset()),
    ):
        assert numbers(finding) == (True, 0, 0)


def test_rows_put_aside_are_told_and_keep_nothing_back() -> None:
    version = Fingerprint(1, 2)
    whole = Receipt("s3://b/a.csv", 0, 0, version, "", 10, 0, (), 0.0, "")
    assert numbers(rows_kept([whole])) == (True, 10, 10)
    finding = rows_kept([whole, replace(whole, uri="s3://b/b.csv", bad_rows=2, bad_rows_uri="s3://s/bad")])
    assert numbers(finding) == (False, 22, 20)
    assert finding.message == "20 of 22 rows of the files are in the segments: b.csv: 2 in s3://s/bad"
    assert not finding.blocks


ONE_DOWN = {"a": {"s1": "ONLINE", "s2": "OFFLINE"}, "b": {"s1": "ONLINE", "s2": "OFFLINE"}}


def test_one_replica_that_answers_may_be_enough() -> None:
    assert numbers(one_replica_online([A, B], ONE_DOWN, ["s2"])) == (True, 2, 2)
    finding = one_replica_online([A, B], ONE_DOWN, ["s1"])
    assert (numbers(finding), finding.at_fault) == ((False, 2, 0), ())
    assert "a is ONLINE on no server that answers" in finding.message
    assert numbers(one_replica_online([A, B], {"a": {"s1": "ONLINE"}}, [])) == (False, 2, 1)


def test_one_replica_in_error_is_one_too_many() -> None:
    """It is no server that is down: the segment may be at fault."""
    finding = one_replica_online([A, B], {**ONE_DOWN, "b": {"s1": "ONLINE", "s2": "ERROR"}}, [])
    assert (numbers(finding), finding.at_fault) == ((False, 2, 1), ("b",))
    assert "b is ERROR on s2" in finding.message


def test_a_server_that_does_not_answer_is_named() -> None:
    assert numbers(servers_answered(["s1", "s2"], {})) == (True, 2, 2)
    finding = servers_answered(["s1", "s2"], {"s2": PinotUnreachable("no connection", why="refused")})
    assert (numbers(finding), finding.at_fault) == ((False, 2, 1), ())
    assert "s2 did not answer: no connection" in finding.message
    finding = servers_answered(["s1"], {"s1": PinotError("refused with 403", hint="give it admin")})
    assert "refused with 403 → give it admin" in finding.message


def test_every_server_must_have_loaded_what_was_built() -> None:
    online = {"a": {"s1": "ONLINE", "s2": "ONLINE"}, "b": {"s1": "ONLINE", "s2": "OFFLINE"}}
    good = {"s1": {"a": 11, "b": 22}, "s2": {"a": 11}}
    assert numbers(crc_on_servers([A, B], online, good)) == (True, 3, 3)
    assert numbers(crc_on_servers([A, B], online, {"s1": good["s1"]})) == (True, 2, 2)  # s2 does not answer
    finding = crc_on_servers([A, B], online, {**good, "s2": {"a": 12}})
    assert (numbers(finding), finding.at_fault) == ((False, 3, 2), ("a",))
    assert "a has CRC 12 on s2 instead of 11" in finding.message
    finding = crc_on_servers([A, B], online, {**good, "s1": {"a": 11}})
    assert (numbers(finding), finding.at_fault) == ((False, 3, 2), ())  # it may have been started anew
    assert "b is not loaded on s1" in finding.message
