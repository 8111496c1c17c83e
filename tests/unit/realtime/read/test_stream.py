"""A stream config in kafka-python's words, and what is told of those it has none for."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from pinot_assets.errors import SettingError, StreamUnreadable
from pinot_assets.realtime.read.stream import client_settings, filled_in, read_partitions

BROKERS = {"streamType": "kafka", "stream.kafka.broker.list": "a:1, b:2", "stream.kafka.topic.name": "t"}
JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="me" password="se\\"cret";'


def test_plain() -> None:
    assert client_settings(BROKERS) == {"bootstrap_servers": ["a:1", "b:2"]}


@pytest.mark.parametrize("prefix", ["", "stream.kafka.consumer.prop."])
def test_security_is_passed_on(prefix: str, tmp_path: Path) -> None:
    authorities = tmp_path / "ca.pem"
    authorities.touch()
    told = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": JAAS,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authorities),
        "ssl.endpoint.identification.algorithm": "",
    }
    found = client_settings(BROKERS | {f"{prefix}{key}": value for key, value in told.items()})
    assert found["security_protocol"] == "SASL_SSL"
    assert found["sasl_mechanism"] == "SCRAM-SHA-512"
    assert (found["sasl_plain_username"], found["sasl_plain_password"]) == ("me", 'se"cret')
    assert (found["ssl_cafile"], found["ssl_check_hostname"]) == (str(authorities), False)


def test_isolation() -> None:
    found = client_settings(BROKERS | {"stream.kafka.isolation.level": "read_committed"})
    assert found["isolation_level"] == "read_committed"


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        ({"streamType": "kinesis"}, "only Kafka"),
        ({"streamType": "kafka"}, "names no brokers"),
        (BROKERS | {"security.protocol": "SASL_PLAINTEXT"}, "sasl.mechanism GSSAPI"),
        (BROKERS | {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "no username and password"),
        (BROKERS | {"security.protocol": "SSL", "ssl.truststore.location": "/x.jks"}, "is a JKS file"),
        (
            BROKERS
            | {
                "security.protocol": "SSL",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": "/no/key.pem",
            },
            "no such file",
        ),
    ],
)
def test_what_cannot_be_done_from_here_is_told(stream: dict[str, str], words: str) -> None:
    with pytest.raises(StreamUnreadable, match=words):
        client_settings(stream)


def test_a_stream_that_is_away_is_given_up_in_time_and_tells_no_secret() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        broker = f"127.0.0.1:{taken.getsockname()[1]}"
        stream = BROKERS | {
            "stream.kafka.broker.list": broker,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": JAAS,
        }
        started = time.monotonic()
        with pytest.raises(StreamUnreadable, match=broker) as told:
            read_partitions([stream], seconds=1)
    assert time.monotonic() - started < 10
    assert "cret" not in str(told.value)


def test_no_topic() -> None:
    with pytest.raises(StreamUnreadable, match="names no topic"):
        read_partitions([{"streamType": "kafka", "stream.kafka.broker.list": "127.0.0.1:1"}])


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (
            {"stream.kafka.broker.list": "127.0.0.1:1,kafka.example.org:9092"},
            "kafka://kafka.example.org:9092",
        ),
        ({"stream.kafka.broker.list": "127.0.0.1:1@kafka.example.org:9092"}, "names an address"),
        ({"bootstrap.servers": "PLAINTEXT://kafka.example.org:1"}, "kafka://kafka.example.org:1"),
        ({"ssl.keystore.location": "/root/own.pem"}, "outside the folders"),
        ({"stream.kafka.consumer.prop.ssl.truststore.location": "/etc/ssl/ca.pem"}, "never read as data"),
        ({"stream.kafka.topic.name": "${PINOT_PASSWORD}"}, "PINOT_PASSWORD"),
    ],
)
def test_nothing_is_reached_that_the_policy_refuses(
    setting: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PINOT_PASSWORD", "hunter2")
    stream = {"streamType": "kafka", "stream.kafka.broker.list": "127.0.0.1:1"} | setting
    with pytest.raises(SettingError, match=words) as refused:
        read_partitions([stream])
    assert "hunter2" not in str(refused.value)


def test_a_file_that_a_variable_names_is_the_installations_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABLE_KAFKA_CA", "/etc/ssl/ca.pem")
    stream = BROKERS | {
        "stream.kafka.broker.list": "127.0.0.1:1",
        "ssl.truststore.location": "${TABLE_KAFKA_CA}",
    }
    assert filled_in(stream)["ssl.truststore.location"] == "/etc/ssl/ca.pem"


def test_brokers_behind_a_silent_firewall_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds for each of six would be more than Dagster gives a tick."""
    given: list[float] = []

    def silent(_: object, seconds: float) -> None:
        given.append(seconds)
        raise TimeoutError("timed out")

    monkeypatch.setattr("socket.create_connection", silent)
    brokers = ",".join(f"127.0.0.1:{n}" for n in range(1, 7))
    stream = {
        "streamType": "kafka",
        "stream.kafka.topic.name": "t",
        "stream.kafka.broker.list": brokers,
    }
    with pytest.raises(StreamUnreadable, match=r"127\.0\.0\.1:6: timed out"):
        read_partitions([stream])
    assert len(given) == 6
    assert sum(given) == pytest.approx(10)
