"""A hybrid table's time boundary on a real Pinot: what a switch does to it, and that we know."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fakes.waiting import until

from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.this_machine import find_java
from pinot_assets.errors import PinotError
from pinot_assets.local import jars, parts, processes
from pinot_assets.local.parts import Site
from pinot_assets.pinot.table_config import time_boundary_ms
from pinot_assets.settings.local_stack import Record

pytestmark = pytest.mark.integration

DAY = 86_400_000
NOON = 1_700_000_000_000


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`host:port` of a Kafka like the local stack's."""
    home = tmp_path_factory.mktemp("kafka")
    part = parts.KAFKA
    site = Site(home, Record(ports={part.name: {name: processes.free_port(()) for name in part.ports}}))
    site.data(part.name).mkdir(parents=True)
    class_path = ":".join(map(str, jars.class_path(part.jars)))
    command = [str(find_java().executable), "-Xmx256m", "-cp", class_path, *part.arguments(site)]
    process = processes.find(processes.spawn(command, home / "kafka.log"))
    assert process is not None
    try:
        until(lambda: part.missing(site) is None)
        yield f"127.0.0.1:{site.port(part.name, 'client')}"
    finally:
        processes.stop_processes([process], grace=5)


@pytest.fixture
def timed(make_world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Worlds have a time column beside `v`."""
    names = make_world.__globals__
    plain = names["_document"]

    def document(*arguments: Any) -> JsonObject:
        whole: JsonObject = plain(*arguments)
        column = {"name": "at", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH"}
        whole["schema"]["dateTimeFieldSpecs"] = [{**column, "granularity": "1:MILLISECONDS"}]
        whole["table"]["segmentsConfig"]["timeColumnName"] = "at"
        return whole

    monkeypatch.setitem(names, "_document", document)


@pytest.fixture
def hybrid(timed: None, real_world: Any, kafka: str) -> Iterator[Any]:
    """A sync table and an empty stream of the same name."""
    world = real_world
    stream = {
        "streamType": "kafka",
        "stream.kafka.topic.name": world.table,
        "stream.kafka.broker.list": kafka,
        "stream.kafka.consumer.type": "lowlevel",
        "stream.kafka.consumer.factory.class.name": "org.apache.pinot.plugin.stream.kafka20"
        ".KafkaConsumerFactory",
        "stream.kafka.decoder.class.name": "org.apache.pinot.plugin.stream.kafka.KafkaJSONMessageDecoder",
        "stream.kafka.consumer.prop.auto.offset.reset": "smallest",
    }
    config = {
        "tableName": world.table,
        "tableType": "REALTIME",
        "segmentsConfig": {"replication": "1", "replicasPerPartition": "1", "timeColumnName": "at"},
        "tenants": {},
        "tableIndexConfig": {"loadMode": "MMAP", "streamConfigs": stream},
        "metadata": {},
    }

    def created() -> bool:
        try:  # Kafka makes the topic when it is first asked for it, and has none to tell then
            world.pinot.create_table(config)
        except PinotError:
            return False
        return True

    until(created, 60)
    yield world
    world.pinot._write("DELETE", f"/tables/{world.table}", type="realtime")


def write(folder: Path, **times: int) -> None:
    for name, at in times.items():
        (folder / name).write_text(f"v,at\n{name},{at}\n")


def boundaries(world: Any) -> set[int]:
    """What the brokers go by."""
    answers = [httpx.get(f"{broker}/debug/timeBoundary/{world.table}") for broker in world.brokers]
    return {int(answer.json()["timeValue"]) for answer in answers}


def test_a_switch_moves_the_time_boundary_of_a_hybrid_table(hybrid: Any) -> None:
    world = hybrid
    config = world.read_spec().table_json
    write(world.source, P1=NOON)
    world.run()
    assert boundaries(world) == {time_boundary_ms(config, [NOON])}

    write(world.source, P2=NOON + 5 * DAY)
    world.trigger()
    assert boundaries(world) == {NOON - DAY}  # what is hidden counts for nothing
    world.run()
    assert boundaries(world) == {time_boundary_ms(config, [NOON, NOON + 5 * DAY])} == {NOON + 4 * DAY}
    said = [note for note in world.notes if note.startswith("hybrid table")]
    assert said[-1].endswith("the time boundary is 2023-11-18 22:13:20 UTC")

    # P1 comes from its file; P2, newer than the border, would come from the stream, which is empty.
    assert [len(world.shown_by(broker)) for broker in world.brokers] == [1, 1]

    world.remove("P2")
    world.run()
    assert boundaries(world) == {NOON - DAY}
    assert [world.shown_by(broker) for broker in world.brokers] == [[], []]
    world.assert_settled()
