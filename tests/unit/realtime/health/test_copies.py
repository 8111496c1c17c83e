"""Where the copies are: deep store, servers, only one of them."""

from __future__ import annotations

from fakes.realtime.memory import MINUTE_MS, S1, S2, FakeRealtime

from pinot_assets.core.check_result import Severity
from pinot_assets.realtime.health.copies import download_urls, on_few_servers, only_copies, replicas


def test_urls_are_told_three_ways() -> None:
    pinot = FakeRealtime()
    pinot.segment(0, 0)
    pinot.segment(0, 1, url="", age_ms=MINUTE_MS)
    pinot.segment(0, 2, "COMMITTING")
    pinot.segment(0, 3, "IN_PROGRESS")
    answer = download_urls(pinot.look())
    assert answer.passed
    assert answer.numbers == {"deep_store": 1, "peers_only": 1, "never_set": 1}
    assert "1 were committed past it just now" in answer.message


def test_a_segment_that_stays_on_servers_only_is_told_with_its_size() -> None:
    pinot = FakeRealtime()
    name = pinot.segment(0, 0, url="")
    pinot.nodes[name].fields["segment.size.in.bytes"] = str(3 * 1024**2)
    answer = download_urls(pinot.look())
    assert (answer.passed, answer.severity) == (False, Severity.WARN)
    assert "1 committed segments are only on servers, 3.0 MB" in answer.message
    assert answer.next_step == "pinot-assets realtime repair clicks --plan"


def test_every_segment_that_stays_on_servers_only_is_counted() -> None:
    pinot = FakeRealtime()
    names = [pinot.segment(0, sequence, url="") for sequence in range(3)]
    message = download_urls(pinot.look()).message
    assert "3 committed segments are only on servers" in message
    assert all(name in message for name in names)


def test_a_committed_segment_without_any_url() -> None:
    pinot = FakeRealtime()
    pinot.segment(0, 0, url=None)
    assert download_urls(pinot.look()).severity is Severity.ERROR


def test_the_map_of_only_copies() -> None:
    pinot = FakeRealtime()
    pinot.segment(0, 0, states={S1: "ONLINE"})
    single = pinot.segment(0, 1, url="", states={S1: "ONLINE", S2: "ERROR"})
    pinot.segment(0, 2, url="")
    gone = pinot.segment(0, 3, url="", states={S1: "ERROR", S2: "OFFLINE"})
    pinot.segment(0, 4, "IN_PROGRESS", states={S1: "CONSUMING"})
    state = pinot.look()
    assert on_few_servers(state) == {single: (S1,), gone: ()}
    answer = only_copies(state)
    assert (answer.found, answer.severity) == (2, Severity.ERROR)
    assert answer.numbers["without_a_copy"] == 1


def test_a_single_copy_weighs_more_when_the_stream_has_dropped_it() -> None:
    pinot = FakeRealtime()
    pinot.segment(0, 0, url="")
    assert only_copies(pinot.look()).passed
    pinot.kill(S2)
    assert only_copies(pinot.look()).severity is Severity.WARN
    pinot.stream = {0: (1, 500)}
    answer = only_copies(pinot.look())
    assert answer.severity is Severity.ERROR
    assert f"keep {S1} running" in answer.next_step


def test_a_commit_that_runs_has_no_copy_yet() -> None:
    pinot = FakeRealtime()
    pinot.segment(0, 0, "COMMITTING", states={S1: "CONSUMING", S2: "CONSUMING"}, age_ms=MINUTE_MS)
    assert only_copies(pinot.look()).passed


def test_a_long_build_is_no_copy_that_went() -> None:
    pinot = FakeRealtime()
    pinot.segment(0, 0, "COMMITTING", states={S1: "CONSUMING", S2: "ERROR"}, age_ms=6 * MINUTE_MS)
    assert only_copies(pinot.look()).passed
    pinot.servers[S1].live_since = None
    assert not only_copies(pinot.look()).passed


def test_replicas() -> None:
    pinot = FakeRealtime()
    pinot.segment(0, 0)
    pinot.segment(0, 1, "IN_PROGRESS")
    assert (replicas(pinot.look()).expected, replicas(pinot.look()).found) == (4, 4)
    pinot.external[pinot.segment(0, 2, states={S1: "ONLINE", S2: "ERROR"})][S2] = "ERROR"
    answer = replicas(pinot.look())
    assert (answer.severity, answer.numbers["replicas_down"]) == (Severity.WARN, 1)
    pinot.kill(S1)
    answer = replicas(pinot.look())
    assert (answer.severity, answer.numbers["unserved"]) == (Severity.ERROR, 1)


def test_a_dead_server_that_the_external_view_still_shows_serves_nothing() -> None:
    pinot = FakeRealtime()
    pinot.segment(0, 0)
    pinot.servers[S1].live_since = None
    assert replicas(pinot.look()).found == 1
