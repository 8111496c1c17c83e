"""What a Kafka topic keeps, as its brokers say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pinot_assets.errors import StreamUnreadable
from pinot_assets.realtime.preflight.facts import StreamRetention
from pinot_assets.realtime.read.stream import SECONDS, filled_in, open_client


def read_retention(stream: Mapping[str, str], seconds: float = SECONDS) -> StreamRetention:
    """What the topic of a stream config keeps.

    :param seconds: how long the question may take.
    :raises StreamUnreadable: it is no Kafka, needs what is not at hand here, or does not answer.
    :raises SourceError: it refers to a variable that is not set here.
    """
    config = filled_in(stream)
    topic = config.get("stream.kafka.topic.name", "")
    with open_client("KafkaAdminClient", config, seconds) as admin:
        from kafka.admin import ConfigResource, ConfigResourceType

        wanted = ConfigResource(ConfigResourceType.TOPIC, topic)
        told = admin.describe_configs([wanted], config_filter="all")["topic"].get(topic)
    if not told:
        raise StreamUnreadable(f"the stream has no topic {topic}")
    return retention_of({name: str(one["value"]) for name, one in told.items()})


def retention_of(config: Mapping[str, str]) -> StreamRetention:
    """What a topic's config says; negative limits are none.

    :param config: name → value; a topic that says nothing has Kafka's defaults: 7 days, no limit in bytes.
    """
    policies = {policy.strip() for policy in config.get("cleanup.policy", "delete").split(",")}
    deletes = "delete" in policies
    return StreamRetention(
        ms=_limit(config.get("retention.ms", "604800000")) if deletes else None,
        bytes_per_partition=_limit(config.get("retention.bytes", "-1")) if deletes else None,
        compacted="compact" in policies,
    )


def least(kept: Sequence[StreamRetention]) -> StreamRetention:
    """What is kept of every one of several streams: each may be the first to forget, in its own way."""
    times = [one.ms for one in kept if one.ms is not None]
    sizes = [one.bytes_per_partition for one in kept if one.bytes_per_partition is not None]
    return StreamRetention(
        min(times, default=None), min(sizes, default=None), any(one.compacted for one in kept)
    )


def _limit(text: str) -> int | None:
    return None if text.startswith("-") else int(text)
