"""Kafka and S3, the optional parts of the local stack: their configuration, and when they are ready."""

from __future__ import annotations

import socket
from pathlib import Path

import httpx

from pinot_assets.local.part import SMALL_JVM, Site, StackPart
from pinot_assets.settings.local_stack import LOOPBACK


def _kafka_arguments(site: Site) -> list[str]:
    node, quorum = site.port("kafka", "client"), site.port("kafka", "quorum")
    data = site.data("kafka")
    if not (data / "meta.properties").exists():
        # What `kafka-storage format` would write, without starting a JVM for it.
        data.mkdir(parents=True, exist_ok=True)
        (data / "meta.properties").write_text("version=1\ncluster.id=pinotAssetsLocalStack\nnode.id=1\n")
    settings: dict[str, object] = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{LOOPBACK}:{quorum}",
        "listeners": f"PLAINTEXT://{LOOPBACK}:{node},CONTROLLER://{LOOPBACK}:{quorum}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{node}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": data,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
    }
    return [
        "-Xmx512m",
        *SMALL_JVM,
        f"-Dlog4j.configuration=file:{Path(__file__).with_name('kafka-log4j.properties')}",
        "kafka.Kafka",
        site.write("kafka.properties", settings),
    ]


def _kafka_missing(site: Site) -> str | None:
    # An ApiVersions request, version 0: only a broker that is up answers it with the same correlation id.
    request = bytes.fromhex("0012 0000 0000002a 0005 6c6f63616c")
    try:
        with socket.create_connection((LOOPBACK, site.port("kafka", "client")), timeout=2) as door:
            door.sendall(len(request).to_bytes(4, "big") + request)
            answer = door.recv(4096)
    except OSError as error:
        return f"no answer on its client port ({error})"
    return None if answer[4:8] == bytes.fromhex("0000002a") else "its answer is not Kafka's"


def _s3_arguments(site: Site) -> list[str]:
    data = site.data("s3")
    data.mkdir(parents=True, exist_ok=True)
    settings: dict[str, object] = {
        "s3proxy.endpoint": f"http://{LOOPBACK}:{site.port('s3', 'http')}",
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.identity": site.record.s3_access_key,
        "s3proxy.credential": site.record.s3_secret_key,
        "jclouds.provider": "filesystem-nio2",
        "jclouds.filesystem.basedir": data,
    }
    return [
        "-Xmx256m",
        *SMALL_JVM,
        f"-Dlogback.configurationFile={Path(__file__).with_name('s3-logback.xml')}",
        "org.gaul.s3proxy.Main",
        "--properties",
        site.write("s3.properties", settings),
    ]


def _s3_missing(site: Site) -> str | None:
    url = f"http://{LOOPBACK}:{site.port('s3', 'http')}/"
    try:
        answer = httpx.get(url, timeout=5, trust_env=False)
    except httpx.HTTPError as error:
        return f"no answer from {url} ({type(error).__name__})"
    # Whoever asks without credentials is refused, in S3's own words.
    return None if b"<Error>" in answer.content else f"{url} does not answer as S3"


KAFKA = StackPart("kafka", "kafka", ("client", "quorum"), (), _kafka_arguments, _kafka_missing)
S3 = StackPart("s3", "s3", ("http",), (), _s3_arguments, _s3_missing)
