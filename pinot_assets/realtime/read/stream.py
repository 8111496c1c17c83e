"""Reads from the streams of a table what they still hold: earliest and latest offset of each partition, and
what the topic keeps. Pinot is not asked.

The stream configs are Java's: they mix properties of a Kafka client with Pinot's own. The security properties
are passed on as kafka-python names them. What it cannot do (a JKS store, Kerberos) raises an error, and is
never just left out.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.errors import StreamUnreadable
from pinot_assets.realtime.model.state import PARTITIONS_A_STREAM, StreamPartition
from pinot_assets.settings.environment import tables_directory
from pinot_assets.source import resolve_env
from pinot_assets.table_spec.blocks.pinot_reach import require_stream
from pinot_assets.table_spec.yaml.policy_file import policy_of

SECONDS: Final = 10.0
"""Seconds that one call to the stream may take."""

_SHORTEST_KNOCK_S: Final = 0.5
_SILENT: Final = "the stream does not answer"

_JAAS: Final = re.compile(r'\b(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')
_PASSED_ON: Final = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "stream.kafka.isolation.level": "isolation_level",
    "isolation.level": "isolation_level",
}
_PEM: Final = {"ssl.truststore.location": "ssl_cafile", "ssl.keystore.location": "ssl_certfile"}
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True, slots=True)
class StreamRetention:
    """How much a topic keeps.

    :ivar ms: how long; None for ever.
    :ivar bytes_per_partition: None without a limit; this limit may drop messages before `ms` does.
    :ivar compacted: whether older messages of a key are dropped before their time.
    """

    ms: int | None
    bytes_per_partition: int | None = None
    compacted: bool = False


def read_partitions(
    streams: Sequence[Mapping[str, str]], seconds: float = SECONDS
) -> dict[int, StreamPartition]:
    """Return the earliest and latest offset of each partition, by the number that Pinot gives it.

    :param streams: the table's stream configs, in order.
    :param seconds: how long each call may take.
    :raises StreamUnreadable: a stream is not Kafka, needs something that is missing here, or does not answer.
    """
    return {
        one.partition: one
        for index, stream in enumerate(streams)
        for one in _read(filled_in(stream), index * PARTITIONS_A_STREAM, seconds)
    }


def filled_in(stream: Mapping[str, str]) -> dict[str, str]:
    """Return a stream config with its references filled in from our environment. From 1.3 on Pinot shows the
    references as they are written, and fills them in from its own environment.

    The values go to the brokers that the config names. So the installation's policy applies, whoever wrote
    the config: to the variables, to the brokers, and to the files of keys and authorities.

    :raises SettingError: a variable is not set here, or the policy refuses something.
    """
    policy = policy_of(tables_directory())
    require_stream(stream, policy)
    return {key: resolve_env(text, policy) for key, text in stream.items()}


def client_settings(stream: Mapping[str, str]) -> JsonObject:
    """Return a stream config as keyword arguments of kafka-python.

    :raises StreamUnreadable: the config needs something that kafka-python lacks.
    """
    kind = stream.get("streamType", "kafka")
    if kind != "kafka":
        raise StreamUnreadable(f"the stream is {kind}", why="pinot-assets reads only Kafka")
    # At top level, as Pinot takes them, and with the prefix that Pinot's guides write.
    properties = {
        **{key.removeprefix("stream.kafka.consumer.prop."): value for key, value in stream.items()},
        **stream,
    }
    if not (servers := properties.get("stream.kafka.broker.list")):
        raise StreamUnreadable("the stream config names no brokers", hint="set stream.kafka.broker.list")
    settings: JsonObject = {"bootstrap_servers": [one.strip() for one in servers.split(",")]}
    settings |= {ours: properties[key] for key, ours in _PASSED_ON.items() if properties.get(key)}
    return settings | _sasl(properties) | _ssl(properties)


def _sasl(properties: Mapping[str, str]) -> dict[str, str]:
    if not properties.get("security.protocol", "").startswith("SASL"):
        return {}
    mechanism = properties.get("sasl.mechanism", "GSSAPI")
    if mechanism not in _MECHANISMS:
        raise StreamUnreadable(
            f"the stream needs sasl.mechanism {mechanism}",
            why=f"pinot-assets knows {', '.join(_MECHANISMS)}",
        )
    pairs = _JAAS.findall(properties.get("sasl.jaas.config", ""))
    login = {key: re.sub(r"\\(.)", r"\1", value) for key, value in pairs}
    if len(login) < 2:
        raise StreamUnreadable("the stream's sasl.jaas.config names no username and password")
    return {"sasl_plain_username": login["username"], "sasl_plain_password": login["password"]}


def _ssl(properties: Mapping[str, str]) -> JsonObject:
    if not properties.get("security.protocol", "").endswith("SSL"):
        return {}
    settings: JsonObject = {}
    for key, ours in _PEM.items():
        if path := properties.get(key):
            kind = properties.get(key.replace("location", "type"), "JKS")
            if kind.upper() != "PEM":
                raise StreamUnreadable(
                    f"{key} of the stream is a {kind} file", why="pinot-assets reads only PEM files"
                )
            if not Path(path).is_file():
                raise StreamUnreadable(
                    f"{key} of the stream names {path}", why="this machine has no such file"
                )
            settings[ours] = path
    if properties.get("ssl.endpoint.identification.algorithm") == "":
        settings["ssl_check_hostname"] = False
    return settings


def _read(stream: Mapping[str, str], first: int, seconds: float) -> Iterator[StreamPartition]:
    if not (topic := stream.get("stream.kafka.topic.name")):
        raise StreamUnreadable("the stream config names no topic", hint="set stream.kafka.topic.name")
    milliseconds = int(seconds * 1000)
    consuming = {"enable_auto_commit": False, "allow_auto_create_topics": False}
    with open_client("KafkaConsumer", stream, seconds, **consuming) as consumer:
        if not (partitions := consumer.partitions_for_topic(topic)):
            raise StreamUnreadable(f"the stream has no topic {topic}")
        from kafka import TopicPartition

        numbered = [TopicPartition(topic, number) for number in sorted(partitions)]
        earliest = consumer.beginning_offsets(numbered, milliseconds)
        latest = consumer.end_offsets(numbered, milliseconds)
        for one in numbered:
            yield StreamPartition(first + one.partition, int(earliest[one]), int(latest[one]))


class _KafkaClient(Protocol):
    """What we use of kafka-python, which has no types: three calls of a consumer, one of an admin client."""

    def partitions_for_topic(self, topic: str) -> Collection[int] | None: ...
    def beginning_offsets(self, partitions: Sequence[object], timeout_ms: int) -> Mapping[object, int]: ...
    def end_offsets(self, partitions: Sequence[object], timeout_ms: int) -> Mapping[object, int]: ...
    def describe_configs(self, config_resources: Sequence[object], config_filter: str) -> JsonMapping: ...


@contextmanager
def open_client(kind: str, stream: Mapping[str, str], seconds: float, **more: bool) -> Iterator[_KafkaClient]:
    """Open one of kafka-python's clients for a stream, and close it at the end.

    :param kind: `KafkaConsumer` or `KafkaAdminClient`.
    :param stream: its config, with the references filled in.
    :param seconds: how long each call may take.
    :raises StreamUnreadable: the stream is not Kafka, needs something missing here, or does not answer.
    """
    # Imported late, so that code which reads no stream does not wait for this import.
    import kafka
    from kafka.errors import KafkaError

    kind_of_client, milliseconds = getattr(kafka, kind), int(seconds * 1000)
    defaults = kind_of_client.DEFAULT_CONFIG
    # A consumer has settings that an admin client lacks, and the reverse.
    settings = {key: value for key, value in client_settings(stream).items() if key in defaults}
    _knock(settings["bootstrap_servers"], seconds)
    # Closes what a client leaves behind that could not be created: its connections and its thread.
    with ExitStack() as connections:

        def connect(**config: object) -> object:
            return connections.enter_context(closing(defaults["kafka_client"](**config)))

        try:
            client = kind_of_client(
                **settings,
                **more,
                request_timeout_ms=milliseconds,
                bootstrap_timeout_ms=milliseconds,
                kafka_client=connect,
            )
            with closing(client):
                yield client
        except (KafkaError, OSError, ValueError, AssertionError) as error:
            # A file that is not PEM, an unknown protocol: not all are Kafka's own errors. Only the class is
            # shown: the message may repeat what the client was given.
            hint = "is stream.kafka.broker.list right?"
            raise StreamUnreadable(_SILENT, why=type(error).__name__, hint=hint) from None


def _knock(brokers: Sequence[str], seconds: float) -> None:
    """Find a broker that listens: kafka-python only says that its time is over, and leaves sockets open.

    :param seconds: for all brokers together; behind a silent firewall each takes all of its share.
    :raises StreamUnreadable: no broker listens.
    """
    reasons, each_s = [], max(seconds / len(brokers), _SHORTEST_KNOCK_S)
    for broker in brokers:
        host, _, port = broker.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), each_s):
                return
        except (OSError, ValueError) as error:
            reasons.append(f"{broker}: {error}")
    raise StreamUnreadable(_SILENT, why="; ".join(reasons), hint="is stream.kafka.broker.list right?")


def read_retention(stream: Mapping[str, str], seconds: float = SECONDS) -> StreamRetention:
    """Return what the topic of a stream config keeps.

    :param seconds: how long the call may take.
    :raises StreamUnreadable: the stream is not Kafka, needs something missing here, or does not answer.
    :raises SourceError: the config refers to a variable that is not set here.
    """
    config = filled_in(stream)
    topic = config.get("stream.kafka.topic.name", "")
    with open_client("KafkaAdminClient", config, seconds) as admin:
        from kafka.admin import ConfigResource, ConfigResourceType

        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        entries = admin.describe_configs([resource], config_filter="all")["topic"].get(topic)
    if not entries:
        raise StreamUnreadable(f"the stream has no topic {topic}")
    return retention_of({name: str(one["value"]) for name, one in entries.items()})


def retention_of(config: Mapping[str, str]) -> StreamRetention:
    """Return what a topic's config makes it keep; a negative limit is no limit.

    :param config: name → value; Kafka's defaults for what is missing are 7 days, and no limit in bytes.
    """
    policies = {policy.strip() for policy in config.get("cleanup.policy", "delete").split(",")}
    deletes = "delete" in policies
    return StreamRetention(
        ms=_limit(config.get("retention.ms", "604800000")) if deletes else None,
        bytes_per_partition=_limit(config.get("retention.bytes", "-1")) if deletes else None,
        compacted="compact" in policies,
    )


def least(kept: Sequence[StreamRetention]) -> StreamRetention:
    """Return what each of several streams keeps at least: any may drop messages first, by time or by size."""
    times = [one.ms for one in kept if one.ms is not None]
    sizes = [one.bytes_per_partition for one in kept if one.bytes_per_partition is not None]
    return StreamRetention(
        min(times, default=None), min(sizes, default=None), any(one.compacted for one in kept)
    )


def _limit(text: str) -> int | None:
    return None if text.startswith("-") else int(text)
