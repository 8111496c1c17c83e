"""What a Kafka topic keeps, as its brokers say it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError

from pinot_assets.errors import StreamUnreadable
from pinot_assets.realtime.preflight.facts import Retention
from pinot_assets.realtime.stream import SECONDS, client_settings, filled_in


def read_retention(stream: Mapping[str, str], seconds: float = SECONDS) -> Retention:
    """What the topic of a stream config keeps.

    :param seconds: how long the question may take.
    :raises StreamUnreadable: it is no Kafka, needs what is not at hand here, or does not answer.
    :raises SourceError: it refers to a variable that is not set here.
    """
    config = filled_in(stream)
    topic = config.get("stream.kafka.topic.name", "")
    with _admin(config, seconds) as admin:
        wanted = ConfigResource(ConfigResourceType.TOPIC, topic)
        told = admin.describe_configs([wanted], config_filter="all")["topic"].get(topic)
    if not told:
        raise StreamUnreadable(f"the stream has no topic {topic}")
    return retention_of({name: str(one["value"]) for name, one in told.items()})


def retention_of(config: Mapping[str, str]) -> Retention:
    """What a topic's config says; negative limits are none.

    :param config: name → value; a topic that says nothing has Kafka's defaults: 7 days, no limit in bytes.
    """
    policies = {policy.strip() for policy in config.get("cleanup.policy", "delete").split(",")}
    deletes = "delete" in policies
    return Retention(
        ms=_limit(config.get("retention.ms", "604800000")) if deletes else None,
        bytes_per_partition=_limit(config.get("retention.bytes", "-1")) if deletes else None,
        compacted="compact" in policies,
    )


def _limit(text: str) -> int | None:
    return None if text.startswith("-") else int(text)


@contextmanager
def _admin(stream: Mapping[str, str], seconds: float) -> Iterator[KafkaAdminClient]:
    settings = client_settings(stream)
    settings.pop("isolation_level", None)  # a consumer's
    milliseconds = int(seconds * 1000)
    admin = None
    try:
        admin = KafkaAdminClient(
            **settings, request_timeout_ms=milliseconds, bootstrap_timeout_ms=milliseconds
        )
        yield admin
    except KafkaError as error:
        # The class alone: a client's message may repeat what it was given.
        raise StreamUnreadable(
            "the stream does not answer", why=type(error).__name__, hint="is stream.kafka.broker.list right?"
        ) from None
    finally:
        if admin is not None:
            admin.close()
