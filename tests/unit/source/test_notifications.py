"""Messages of S3 in a queue, as S3 documents them, and a queue of moto's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest
from moto.server import ThreadedMotoServer

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.errors import SourceError
from pinot_assets.source import notifications
from pinot_assets.source.notifications import SqsHints, is_test, objects_of
from pinot_assets.source.uris import parse_root

TEST_EVENT = json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "lake", "RequestId": "5"})


def event(key: str, bucket: str = "lake") -> str:
    s3 = {"bucket": {"name": bucket}, "object": {"key": key, "size": 1}}
    return json.dumps({"Records": [{"eventName": "ObjectCreated:Put", "s3": s3}]})


def test_keys_are_told_as_they_are() -> None:
    assert objects_of(event("in/a+b%2B.csv")) == (("lake", "in/a b+.csv"),)
    assert objects_of(json.dumps({"Type": "Notification", "Message": event("in/a")})) == (("lake", "in/a"),)
    bridge = {
        "detail-type": "Object Created",
        "detail": {"bucket": {"name": "lake"}, "object": {"key": "a+b"}},
    }
    assert objects_of(json.dumps(bridge)) == (("lake", "a+b"),)


@pytest.mark.parametrize(
    "body",
    [
        *("", "no json", "7", "null", "[]", "[" * 100_000),
        *('{"Records": 7}', '{"Records": [{}]}', '{"Message": "x"}', TEST_EVENT),
    ],
)
def test_what_tells_of_no_object_is_passed_over(body: str) -> None:
    assert objects_of(body) == ()
    assert is_test(body) == (body == TEST_EVENT)


class Queue:
    def __init__(self, endpoint: str, name: str) -> None:
        self.sqs = boto3.client("sqs", endpoint_url=endpoint, region_name="us-east-1")
        self.url = self.sqs.create_queue(QueueName=name)["QueueUrl"]

    def send(self, *bodies: str) -> None:
        for body in bodies:
            self.sqs.send_message(QueueUrl=self.url, MessageBody=body)

    def left(self) -> int:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        told = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)["Attributes"]
        return sum(int(told[name]) for name in names)

    def hints(self, **props: str) -> SqsHints:
        return SqsHints("${QUEUE_URL}", parse_root("s3://lake/in"), props, UNLIMITED)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def queue(endpoint: str, monkeypatch: pytest.MonkeyPatch, request: Any) -> Queue:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret-value")
    queue = Queue(endpoint, request.node.name)
    monkeypatch.setenv("QUEUE_URL", queue.url)
    return queue


def test_messages_of_the_table_are_hints_until_they_are_deleted(queue: Queue) -> None:
    assert queue.hints().receive() == ()
    queue.send(*[event(f"in/{n}") for n in range(23)])
    hints = queue.hints(accessKey="${AWS_ACCESS_KEY_ID}", secretKey="${AWS_SECRET_ACCESS_KEY}")
    handles = hints.receive()
    assert (len(handles), queue.left()) == (23, 23)
    assert hints.receive() == (), "a sweep is under way for them"
    hints.delete(handles)
    hints.delete(handles)  # once more, after a crash
    assert queue.left() == 0


def test_what_is_of_others_goes_back_to_the_queue(queue: Queue) -> None:
    queue.send(event("other/a"), event("in/a", bucket="pond"), event("into/a"), "no json", TEST_EVENT)
    assert queue.hints().receive() == ()
    assert queue.left() == 4, "only the test event is nobody's"
    assert SqsHints(queue.url, parse_root("s3://pond/in"), {}, UNLIMITED).receive() != ()


def test_a_queue_full_of_others_is_told(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "MOST", 2)
    queue.send(event("elsewhere/a.csv"), event("elsewhere/b.csv"))
    with pytest.raises(SourceError, match=r"2 messages of queue .* other places than s3://lake/in,"):
        queue.hints().receive()
    assert queue.left() == 2


def test_a_queue_that_is_not_there_is_told_without_secrets(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    for url in (f"{queue.url}-not", "http://127.0.0.1:9/1/q"):
        monkeypatch.setenv("QUEUE_URL", url)
        with pytest.raises(SourceError, match="cannot be used") as caught:
            queue.hints().receive()
        assert "s3cret-value" not in str(caught.value)
        assert caught.value.__cause__ is None


def test_keys_do_not_go_to_another_machine_without_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SourceError, match="without TLS"):
        SqsHints("http://queue.example.com/1/q", parse_root("s3://lake/in"), {}, UNLIMITED).receive()
