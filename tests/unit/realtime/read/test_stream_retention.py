"""What a topic's config means, and what a client's failure becomes."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.errors import KafkaConnectionError

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import SourceError, StreamUnreadable
from pinot_assets.realtime.read import stream
from pinot_assets.realtime.read.stream import StreamRetention, read_retention, retention_of

STREAM = {"stream.kafka.topic.name": "t", "stream.kafka.broker.list": "127.0.0.1:1"}


@pytest.mark.parametrize(
    ("config", "kept"),
    [
        ({"retention.ms": "1000", "retention.bytes": "-1"}, StreamRetention(1000)),
        ({"retention.ms": "-1", "retention.bytes": "5"}, StreamRetention(None, 5)),
        ({"retention.ms": "1000", "cleanup.policy": "compact"}, StreamRetention(None, None, compacted=True)),
        (
            {"retention.ms": "1", "cleanup.policy": "compact, delete"},
            StreamRetention(1, None, compacted=True),
        ),
        ({}, StreamRetention(604_800_000)),
    ],
)
def test_what_a_topic_says(config, kept):
    assert retention_of(config) == kept


class Admin:
    """Kafka's, as far as it is asked here."""

    DEFAULT_CONFIG: JsonObject = {"bootstrap_servers": None}  # noqa: RUF012
    topics: JsonObject = {"t": {"retention.ms": {"value": "7000"}}}  # noqa: RUF012

    def __init__(self, **settings: Any) -> None:
        assert settings["bootstrap_servers"] == ["127.0.0.1:1"]
        assert "isolation_level" not in settings

    def describe_configs(self, resources: list[Any], config_filter: str) -> JsonObject:
        assert config_filter == "all"
        return {"topic": {one.name: self.topics.get(one.name, {}) for one in resources}}

    def close(self) -> None:
        pass


@pytest.fixture
def admin(monkeypatch):
    monkeypatch.setattr("kafka.KafkaAdminClient", Admin)
    monkeypatch.setattr(stream, "_knock", lambda brokers, seconds: None)


def test_a_topic_is_asked(admin):
    assert read_retention({**STREAM, "stream.kafka.isolation.level": "read_committed"}).ms == 7000
    with pytest.raises(StreamUnreadable, match="no topic u"):
        read_retention({**STREAM, "stream.kafka.topic.name": "u"})


def test_a_broker_that_is_away_tells_nothing_that_it_was_given(admin, monkeypatch):
    def away(*_: Any, **__: Any) -> None:
        raise KafkaConnectionError("hunter2")

    monkeypatch.setattr(Admin, "__init__", away)
    with pytest.raises(StreamUnreadable, match="does not answer: KafkaConnectionError") as unread:
        read_retention(STREAM)
    assert "hunter2" not in str(unread.value)


def test_references_are_filled_in_from_here(admin, monkeypatch):
    monkeypatch.setenv("TABLE_BROKERS", "127.0.0.1:1")
    assert read_retention({**STREAM, "stream.kafka.broker.list": "${TABLE_BROKERS}"}).ms == 7000
    monkeypatch.delenv("TABLE_BROKERS")
    with pytest.raises(SourceError, match="TABLE_BROKERS"):
        read_retention({**STREAM, "stream.kafka.broker.list": "${TABLE_BROKERS}"})


def test_a_broker_that_does_not_listen():
    with pytest.raises(StreamUnreadable, match=r"does not answer: 127\.0\.0\.1:1: "):
        read_retention(STREAM, seconds=1)
