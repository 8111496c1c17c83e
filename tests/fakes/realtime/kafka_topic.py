"""A topic for a table of a test."""

from __future__ import annotations

from kafka.admin import KafkaAdminClient, NewTopic


def create_topic(bootstrap: str, name: str, partitions: int) -> None:
    """Make it, without replicas.

    :param bootstrap: `host:port` of the broker.
    """
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.create_topics([NewTopic(name, num_partitions=partitions, replication_factor=1)])
    finally:
        admin.close()
