"""Each rule of the preflight: when it passes, when it warns, when it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pinot_assets.cli.realtime.preflight import answer_values
from pinot_assets.errors import PreflightRefused
from pinot_assets.realtime.model.settings import ClusterSettings, RealtimeSettings
from pinot_assets.realtime.preflight.facts import PERSON_S, Aim, CommitStart, CommitTimes, Facts, OfflineHalf
from pinot_assets.realtime.preflight.judge import (
    RULES,
    judge_change,
    recap,
    refuse_unless_safe,
    run_rules,
)
from pinot_assets.realtime.preflight.judge import verdict as verdict_of
from pinot_assets.realtime.read.stream import StreamRetention

PASS, WARN, REFUSE = "pass", "warn", "refuse"
STORE = "s3://bucket/pinot"
DAYS = 86_400_000

TABLE = RealtimeSettings(
    replication=2,
    peer_scheme="http",
    pauseless=True,
    download_timeout_s=60,
    streams=({"streamType": "kafka", "realtime.segment.flush.threshold.time": "6h"},),
)
CLUSTER = ClusterSettings(
    version="1.5.1",
    deep_store_upload_retry=True,
    segment_level_period_s=3600,
    new_segment_expiration_s=60,
    upload_timeout_ms=60_000,
    data_dir=STORE,
    segment_store={"Server_a": STORE, "Server_b": f"{STORE}/"},
)
GOOD = Facts(
    table="events_REALTIME",
    aims=frozenset(Aim),
    target=TABLE,
    cluster=CLUSTER,
    commit_start=CommitStart(0.3, "20 ms a round trip"),
    commit_times=CommitTimes(40.0, 0, 150_000_000),
    admin_ports={"Server_a": None, "Server_b": None},
    retention=StreamRetention(7 * DAYS),
)
BYPASS = replace(GOOD, aims=frozenset({Aim.BYPASS}), target=replace(TABLE, pauseless=False))
PARTIAL = {"upsert": "PARTIAL"}


def answer(facts: Facts, name: str) -> tuple[str, str]:
    found = {one.name: one for one in run_rules(facts)}[name]
    assert (not found.next_step) == found.passed
    return verdict_of(found), found.message


def with_table(facts: Facts = GOOD, **changes: Any) -> Facts:
    return replace(facts, target=replace(facts.target, **changes))


def with_cluster(facts: Facts = GOOD, **changes: Any) -> Facts:
    return replace(facts, cluster=replace(facts.cluster, **changes))


def test_a_good_table_passes_every_rule():
    answers = run_rules(GOOD)
    assert [one.name for one in answers if not one.passed] == []
    assert len(answers) == len(RULES) == len({rule.name for rule in RULES})
    assert recap(answers) == f"{len(RULES)} rules: all pass"
    refuse_unless_safe("events", answers)


def test_bypass_alone_asks_less():
    names = {one.name for one in run_rules(BYPASS)}
    assert {"version", "one_stream", "commit_start", "build_and_upload"}.isdisjoint(names)
    assert {"peer_scheme", "segment_store", "stream_retention", "refresh_in_place"} <= names


def test_a_table_with_neither_is_only_kept_from_losing():
    plain = replace(GOOD, aims=frozenset())
    assert {one.name for one in run_rules(plain)} == {"refresh_in_place"}


@pytest.mark.parametrize(
    ("facts", "rule", "verdict", "said"),
    [
        (with_cluster(version="0.11.0"), "version", REFUSE, "came with 1.4"),
        (with_cluster(version="1.4.0"), "version", PASS, "1.4.0"),
        (with_table(peer_scheme=None), "peer_scheme", REFUSE, "pauseless consumption of more than one"),
        (with_table(BYPASS, peer_scheme=None), "peer_scheme", REFUSE, "the bypass needs"),
        (with_table(peer_scheme=None, replication=1), "peer_scheme", PASS, "no peer"),
        (with_table(replication=1), "peer_scheme", REFUSE, "there is no peer"),
        (with_table(peer_scheme="ftp"), "peer_scheme", REFUSE, "not a peer scheme"),
        (with_table(replication=1), "replication", WARN, "only copy"),
        (with_table(streams=({}, {})), "one_stream", REFUSE, "2 streams"),
        (with_table(completion_mode="DOWNLOAD"), "completion_mode", WARN, "drop their rows"),
        (with_table(dedup=True), "read_in_order", WARN, "re-ingests nothing of a dedup table"),
        (with_table(**PARTIAL), "read_in_order", WARN, "a partial upsert table"),
        (with_table(**PARTIAL, recovery_always=True), "read_in_order", WARN, "wrong rows"),
        (with_cluster(with_table(dedup=True), recovery_always=True), "read_in_order", WARN, "ALWAYS"),
        (with_table(upsert="FULL"), "read_in_order", PASS, "Pinot itself reads"),
        (with_table(**PARTIAL), "way_out", WARN, "RESTRICTED"),
        (with_table(upsert="FULL", drops_out_of_order=True), "way_out", WARN, "drained"),
        (with_cluster(with_table(**PARTIAL), consistency_mode="PROTECTED"), "way_out", PASS, "paused"),
        (replace(GOOD, offline=OfflineHalf("http", True)), "refresh_in_place", REFUSE, "the old one"),
        (replace(GOOD, offline=OfflineHalf("http", False)), "refresh_in_place", PASS, "none of them"),
        (replace(GOOD, offline=OfflineHalf(None, True)), "refresh_in_place", PASS, "no OFFLINE"),
    ],
)
def test_what_the_table_says(facts, rule, verdict, said):
    found, reason = answer(facts, rule)
    assert (found, said in reason) == (verdict, True), reason


OFF = with_table(replace(GOOD, aims=frozenset(), held=TABLE), pauseless=False)
ON = replace(GOOD, held=replace(TABLE, pauseless=False))


@pytest.mark.parametrize(
    ("facts", "rule", "verdict", "said"),
    [
        (replace(OFF, committing=2), "pauseless_is_drained", REFUSE, "(2 now)"),
        (OFF, "pauseless_is_drained", REFUSE, "stay COMMITTING"),
        (ON, "pauseless_is_drained", REFUSE, "half in one way, half in the other"),
        (replace(GOOD, held=TABLE), "pauseless_is_drained", PASS, "stays as it is"),
        (GOOD, "pauseless_is_drained", PASS, "stays as it is"),
        (
            with_table(replace(OFF, peers_only=3), peer_scheme=None),
            "scheme_is_not_needed",
            REFUSE,
            "3 segments",
        ),
        (with_table(OFF, peer_scheme=None), "scheme_is_not_needed", PASS, "in the deep store"),
        (replace(OFF, peers_only=3), "scheme_is_not_needed", PASS, "not removed"),
    ],
)
def test_what_must_not_be_changed_at_once(facts, rule, verdict, said):
    answers = {one.name: one for one in judge_change(facts)}
    assert answers.keys() >= {one.name for one in run_rules(facts)}
    assert (verdict_of(answers[rule]), said in answers[rule].message) == (verdict, True)
    assert rule not in {one.name for one in run_rules(facts)}


@pytest.mark.parametrize(
    ("facts", "rule", "verdict", "said"),
    [
        (with_cluster(segment_store={"a": None, "b": STORE}), "segment_store", REFUSE, "a have no"),
        (with_cluster(segment_store={"a": "s3://other"}), "segment_store", REFUSE, "another place"),
        (
            with_cluster(segment_store={"a": "s3://one", "b": "s3://other"}, data_dir=None),
            "segment_store",
            REFUSE,
            "upload to 2 places",
        ),
        (
            with_cluster(segment_store={"a": STORE, "b": STORE}, data_dir=None),
            "segment_store",
            WARN,
            "does not report where",
        ),
        (
            with_cluster(segment_store={"a": "file:///data"}, data_dir="/data/"),
            "segment_store",
            PASS,
            "as the controller does",
        ),
        (
            with_cluster(segment_store=dict.fromkeys("abcde"), data_dir=None),
            "segment_store",
            REFUSE,
            "a, b, c and 2 more",
        ),
        (with_table(peer_scheme=None, server_uploads=None), "server_uploads", WARN, "through the controller"),
        (with_table(peer_scheme=None, server_uploads=True), "server_uploads", PASS, "themselves"),
        (with_cluster(upload_timeout_ms=300_000), "hanging_store", WARN, "after 260 s the segment stays"),
        (with_cluster(BYPASS, upload_timeout_ms=300_000), "hanging_store", WARN, "after 126 s the election"),
        (with_cluster(BYPASS, upload_timeout_ms=300_000, version="0.11.0"), "hanging_store", PASS, "10 s"),
        (
            replace(with_cluster(upload_timeout_ms=299_000), commit_times=None),
            "hanging_store",
            PASS,
            "at most 299 s",
        ),
        (with_cluster(BYPASS, deep_store_upload_retry=False), "back_fill", WARN, "Pinot does not upload"),
        (BYPASS, "back_fill", PASS, "the controller"),
        (with_cluster(deep_store_upload_retry=False), "back_fill", PASS, "daily pass"),
        (with_cluster(segment_level_period_s=86_400), "stuck_commits", WARN, "every 24 h"),
        (with_table(download_timeout_s=600), "servers_come_back", WARN, "without serving"),
        (with_table(download_timeout_s=31), "second_look", PASS, "every 30 s"),
        (with_table(download_timeout_s=30), "second_look", WARN, "waits 30 s"),
        (with_table(download_timeout_s=0), "second_look", WARN, "without looking again"),
        (with_cluster(new_segment_expiration_s=300), "silent_answers", WARN, "for 300 s"),
        (
            with_cluster(BYPASS, new_segment_expiration_s=300, version="1.2.0"),
            "silent_answers",
            WARN,
            "300 s",
        ),
        (
            with_cluster(BYPASS, new_segment_expiration_s=300, version="0.11.0"),
            "silent_answers",
            PASS,
            "no grace period",
        ),
        (replace(GOOD, admin_ports={"a": "refused", "b": None}), "admin_ports", REFUSE, "(a: refused)"),
        (replace(GOOD, admin_ports={}), "admin_ports", WARN, "no server"),
    ],
)
def test_what_the_cluster_is_set_to(facts, rule, verdict, said):
    found, reason = answer(facts, rule)
    assert (found, said in reason) == (verdict, True), reason


@pytest.mark.parametrize(
    ("facts", "rule", "verdict", "said"),
    [
        (replace(GOOD, commit_start=None, unread={"commit_start": "403"}), "commit_start", WARN, "403"),
        (replace(GOOD, commit_start=CommitStart(2.5, "x")), "commit_start", WARN, "2.50 s of the 10 s (x)"),
        (replace(GOOD, commit_start=CommitStart(5.0, "x")), "commit_start", REFUSE, "ERROR on all replicas"),
        (replace(GOOD, commit_times=None), "build_and_upload", WARN, "no commit"),
        (replace(GOOD, commit_times=CommitTimes(200.0, 0, 1)), "build_and_upload", WARN, "200 s"),
        (replace(GOOD, commit_times=CommitTimes(20.0, 4, 1)), "build_and_upload", WARN, "4 of the newest"),
        (
            replace(GOOD, commit_times=CommitTimes(None, 0, 2_400_000_000)),
            "build_and_upload",
            REFUSE,
            "2400 MB, at 7.5 MB/s",
        ),
        (replace(GOOD, commit_times=CommitTimes(None, 0, 1_000_000)), "build_and_upload", PASS, "about 0 s"),
        (replace(GOOD, retention=StreamRetention(None)), "stream_retention", PASS, "all messages"),
        (replace(GOOD, retention=None), "stream_retention", PASS, "no stream"),
        (
            replace(GOOD, retention=StreamRetention(None, compacted=True)),
            "stream_retention",
            WARN,
            "compacted",
        ),
        (
            replace(GOOD, retention=StreamRetention(8 * 3_600_000, None, True)),
            "stream_retention",
            REFUSE,
            "8.0 h",
        ),
        (
            replace(GOOD, retention=StreamRetention(8 * DAYS, None, True)),
            "stream_retention",
            WARN,
            "compacted",
        ),
        (replace(GOOD, retention=StreamRetention(None, 5_000_000_000)), "stream_retention", WARN, "5.0 GB"),
        (replace(GOOD, retention=StreamRetention(7 * DAYS, 10**9)), "stream_retention", WARN, "1.0 GB"),
        (
            replace(GOOD, retention=StreamRetention(8 * 3_600_000)),
            "stream_retention",
            REFUSE,
            "keeps 8.0 h; 6.0 h",
        ),
        (replace(BYPASS, retention=StreamRetention(3_600_000)), "stream_retention", WARN, "keeps 1.0 h"),
        (
            replace(with_table(dedup=True), retention=StreamRetention(3 * DAYS)),
            "stream_retention",
            REFUSE,
            "72.0 h",
        ),
    ],
)
def test_how_long_things_take(facts, rule, verdict, said):
    found, reason = answer(facts, rule)
    assert (found, said in reason) == (verdict, True), reason


@pytest.mark.parametrize(
    ("slow", "rule"),
    [
        (replace(GOOD, commit_start=CommitStart(7.0, "x")), "commit_start"),
        (replace(GOOD, commit_times=CommitTimes(None, 3, 2_400_000_000)), "build_and_upload"),
    ],
)
def test_a_table_that_is_too_slow_already_may_be_changed_to_mend_that(slow, rule):
    found, reason = answer(replace(slow, held=TABLE), rule)
    assert found is WARN, reason
    assert answer(replace(slow, held=BYPASS.target), rule)[0] is REFUSE


def test_how_long_a_lost_segment_may_wait():
    assert GOOD.worst_repair_s == 60 + 2 * 3600 + 1800
    assert with_table(dedup=True).worst_repair_s == PERSON_S
    assert with_table(dedup=True, recovery_always=True).worst_repair_s == GOOD.worst_repair_s


@pytest.mark.parametrize(
    ("text", "hours"), [("30m", 0.5), ("3600000", 1), ("soon", 6), ("", 6), ("1d12h", 36)]
)
def test_how_old_a_segment_gets(text, hours):
    stream = {"realtime.segment.flush.threshold.time": text}
    assert with_table(streams=(stream,)).flush_ms == hours * 3_600_000


def test_what_was_not_read_is_a_warning_of_the_rules_that_need_it():
    blind = with_cluster(replace(GOOD, unread={"retention": "no broker answers"}), unread={"data_dir": "403"})
    answers = {one.name: one for one in run_rules(blind)}
    assert answers["stream_retention"].message == "not known: no broker answers"
    assert answers["segment_store"].message == "not known: 403"
    assert [verdict_of(a) for a in answers.values()].count(WARN) == 2


def test_a_refusal_lists_every_rule_with_its_fix():
    answers = run_rules(with_cluster(with_table(streams=({}, {})), version="1.3.0"))
    with pytest.raises(PreflightRefused) as refused:
        refuse_unless_safe("events_REALTIME", answers)
    text = str(refused.value)
    assert "version: 1.3.0 does not know" in text
    assert "→ use one stream for each table" in text
    assert "realtime preflight events`" in text
    assert recap(answers).endswith("rules: 2 refuse (version, one_stream)")


def test_answers_as_json():
    first, *_ = run_rules(GOOD)
    assert answer_values(first) == {
        "rule": "version",
        "verdict": "pass",
        "reason": first.message,
        "fix": None,
    }
