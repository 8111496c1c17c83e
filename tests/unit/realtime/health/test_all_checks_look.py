"""One look: the state with every answer, or every answer with the reason why there is none; its numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.realtime.memory import S1, S2, FakeRealtime

from pinot_assets.core.connections import PinotConnection
from pinot_assets.errors import PinotAssetsError, PinotNotFound
from pinot_assets.realtime.health import all_checks
from pinot_assets.realtime.health.all_checks import CHECKS, view_of
from pinot_assets.realtime.health.metrics import numbers
from pinot_assets.realtime.read.reading import open_deep_store
from pinot_assets.settings.environment import Settings


@pytest.fixture
def fake(monkeypatch) -> FakeRealtime:
    made = FakeRealtime()
    made.segment(sequence=0, end=100)
    made.segment(sequence=1, url="", start=100, end=150)
    made.segment(sequence=2, status="COMMITTING", start=150, end=180, age_ms=60_000)
    made.segment(sequence=3, status="IN_PROGRESS", start=180, end=190, age_ms=60_000)
    monkeypatch.setattr(all_checks, "RealtimePinot", lambda _: made.pinot())
    monkeypatch.setattr(all_checks, "read_state", lambda pinot, table, deep_store: made.look())
    return made


def settings() -> Settings:
    return Settings(PinotConnection("http://controller:9000"), "127.0.0.1:1", "test")


def test_a_look_has_the_state_and_every_answer(fake):
    looked = view_of("clicks", settings)
    assert looked.state is not None
    assert [answer.name for answer in looked.answers] == [check.name for check in CHECKS]


def test_without_a_pinot_every_answer_says_why(fake):
    def nowhere() -> Settings:
        raise PinotAssetsError("there is no Pinot to connect to", why="nothing is set", hint="set it")

    looked = view_of("clicks", nowhere)
    assert looked.state is None
    assert {answer.message for answer in looked.answers} == {
        "not known: there is no Pinot to connect to: nothing is set"
    }
    assert not any(answer.passed or answer.known for answer in looked.answers)


def test_a_table_that_was_not_made_yet_says_how_it_is_made(fake, monkeypatch):
    def missing(pinot: object, table: str, deep_store: object) -> None:
        raise PinotNotFound(f"there is no table {table}", hint="GET /tables lists the tables of this Pinot")

    monkeypatch.setattr(all_checks, "read_state", missing)
    looked = view_of("clicks_REALTIME", settings)
    assert looked.state is None
    assert {answer.next_step for answer in looked.answers} == {"`pinot-assets tables apply clicks` makes it"}


def test_numbers_of_a_look(fake):
    found = numbers(fake.look())
    assert found == {
        "segments": 4,
        "consuming_segments": 1,
        "committing_segments": 1,
        "oldest_commit_s": 60.0,
        "committed_segments": 2,
        "committed_rows": 150,
        "committed_bytes": 2000,
        "only_with_peers": 1,
        "paused": 0,
        "replicas_in_error": 0,
        "servers": 2,
        "servers_that_serve": 2,
        "lag_s": 1.0,
        "messages_to_consume": 10,
        "rows_queryable": 190,
    }


def test_what_is_not_known_is_no_number(fake):
    fake.away |= {"/zk/getChildren", "/tables/clicks_REALTIME/consumingSegmentsInfo", "/query/sql"}
    found = numbers(fake.look())
    assert {"segments", "lag_s", "messages_to_consume", "rows_queryable"}.isdisjoint(found)
    assert found["servers"] == 2
    blind = replace(fake.look(), unread={"servers": "x", "external": "y", "segments": "z"}, stream={})
    assert {"servers", "replicas_in_error"}.isdisjoint(numbers(blind))


def test_a_sum_of_which_a_part_is_not_known_is_left_out(fake):
    first = fake.look()
    one, *others = first.segments
    found = numbers(replace(first, segments=(replace(one, size_bytes=None), *others)))  # as before 1.0
    assert "committed_bytes" not in found
    assert found["committed_rows"] == 150


def test_dead_servers_and_errors_count(fake):
    fake.kill(S2)
    fake.external["clicks__0__0__20260202T0240Z"][S1] = "ERROR"
    found = numbers(fake.look())
    assert (found["servers"], found["servers_that_serve"], found["replicas_in_error"]) == (2, 1, 1)


def test_a_deep_store_that_is_not_at_hand(fake, tmp_path):
    with fake.pinot() as pinot:
        fake.controller_config["controller.data.dir"] = f"file://{tmp_path}"
        store = open_deep_store(pinot)
        assert store is not None
        assert store.uri == f"file://{tmp_path}"
        fake.controller_config["controller.data.dir"] = "hdfs://namenode/pinot"
        assert open_deep_store(pinot) is None
        fake.controller_config.clear()
        assert open_deep_store(pinot) is None
        with pytest.raises(PinotAssetsError):
            open_deep_store(pinot, "hdfs://namenode/pinot")
