"""S3's notifications in an SQS queue: hints that a listing is worthwhile, and nothing more.

Messages get lost or come twice, and anybody who may write to the queue can invent them. So no message decides
anything: it makes the next sweep come earlier, and is deleted when that sweep has ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Final, Protocol
from urllib.parse import unquote_plus, urlsplit

from pinot_assets.core.installation_policy import Policy
from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.text import plural
from pinot_assets.core.untrusted import MESSAGE_BYTES, fields_of_json
from pinot_assets.errors import SourceError
from pinot_assets.source.allowed_places import props_of_queue, refused_queue
from pinot_assets.source.settings import allow_http, resolve_env, resolve_references
from pinot_assets.source.uris import Root

MOST: Final = 1000
"""The most messages taken at a time; the rest triggers the next sweep."""
BATCH: Final = 10  # SQS' own limit
HIDDEN_S: Final = 900
"""SQS hides a received message for so many seconds: longer than most sweeps. If it appears again, it triggers
another sweep, which does no harm."""


class _Sqs(Protocol):
    """What we use of boto3's client, which has no types."""

    def receive_message(self, *, QueueUrl: str, **most: int) -> JsonMapping: ...
    def change_message_visibility_batch(self, *, QueueUrl: str, Entries: Sequence[JsonMapping]) -> object: ...
    def delete_message_batch(self, *, QueueUrl: str, Entries: Sequence[JsonMapping]) -> object: ...


def objects_of(body: str) -> tuple[tuple[str, str], ...]:
    """Return the buckets and keys of a message: S3's own events, also through SNS, and EventBridge's.

    :returns: nothing for a test event, and for a text that is not a notification.
    """
    try:
        if len(body) > MESSAGE_BYTES:
            return ()
        message = fields_of_json(body)
        if "Message" in message:  # from SNS
            message = fields_of_json(message["Message"])
        if "detail" in message:  # from EventBridge, which does not escape keys
            return ((str(message["detail"]["bucket"]["name"]), str(message["detail"]["object"]["key"])),)
        parts = [record["s3"] for record in message.get("Records", ())]
        return tuple((str(s3["bucket"]["name"]), unquote_plus(s3["object"]["key"])) for s3 in parts)
    except (ValueError, TypeError, KeyError, AttributeError):
        return ()


def is_test(body: str) -> bool:
    """Whether this is the message that S3 sends when notifications are turned on."""
    return "s3:TestEvent" in body and not objects_of(body)


class SqsHints:
    """An SQS queue of hints.

    :param url: the queue's URL; may refer to the environment.
    :param root: the source that the table lists.
    :param props: the table's `input.fs.prop.*`: the bucket's keys are used for the queue (`props_of_queue`).
    :param policy: the table spec's.
    """

    def __init__(self, url: str, root: Root, props: Mapping[str, str], policy: Policy) -> None:
        self._url, self._root, self._props, self._policy = url, root, props, policy

    def receive(self) -> tuple[str, ...]:
        """Return handles of messages about changed objects in the table's directory.

        Messages about other places go back to the queue; test events are deleted.

        :raises SourceError: the queue cannot be reached or refuses; or messages about other places fill it,
            so that we cannot receive ours, if there are any.
        """
        ours, others, tests = list[str](), list[str](), list[str]()
        with self._mapped():
            while len(ours) + len(others) < MOST:
                answer = self._client.receive_message(
                    QueueUrl=self.url, MaxNumberOfMessages=BATCH, VisibilityTimeout=HIDDEN_S
                )
                messages = answer.get("Messages", ())
                if not messages:
                    break
                for message in messages:
                    body = message["Body"]
                    of = ours if self._concerns(body) else tests if is_test(body) else others
                    of.append(message["ReceiptHandle"])
            for batch in _batches(others):
                shown = [{**entry, "VisibilityTimeout": 0} for entry in batch]
                self._client.change_message_visibility_batch(QueueUrl=self.url, Entries=shown)
        self.delete(tests)
        if len(others) >= MOST and not ours:
            raise SourceError(
                f"{plural(len(others), 'message')} of queue {self.url} are about other places "
                f"than s3://{self._root.bucket}/{self._root.path}, and keep back those of this "
                "table",
                why="no other program takes them out of the queue",
                hint="give the table its own queue, with a filter for its folder",
            )
        return tuple(ours)

    def delete(self, handles: Sequence[str]) -> None:
        """Delete messages after the sweep that they triggered has ended. A message stays if the queue has
        delivered it again to another receiver.

        :raises SourceError: the queue cannot be reached or refuses.
        """
        with self._mapped():
            for batch in _batches(handles):
                self._client.delete_message_batch(QueueUrl=self.url, Entries=batch)

    @cached_property
    def url(self) -> str:
        """Return the queue's URL, its references resolved."""
        return resolve_env(self._url, self._policy)

    def _concerns(self, body: str) -> bool:
        folder = f"{self._root.path}/" if self._root.path else ""
        return any(bucket == self._root.bucket and key.startswith(folder) for bucket, key in objects_of(body))

    @cached_property
    def _client(self) -> _Sqs:
        import boto3
        from botocore.config import Config

        props = props_of_queue(self.url, self._props, self._policy)
        for refusal in refused_queue(self.url, props, self._policy):
            raise refusal.error("notificationQueue")
        values = resolve_references("s3", props, self._policy)
        parts = urlsplit(self.url)
        allow_http("SQS", self.url, values, "accessKey and secretKey")
        host = (parts.hostname or "").split(".")
        region = host[1] if host[0] == "sqs" and len(host) > 2 else values.get("region")
        session = boto3.Session(
            aws_access_key_id=values.get("accessKey"),
            aws_secret_access_key=values.get("secretKey"),
            aws_session_token=values.get("sessionToken"),
        )
        client: _Sqs = session.client(
            "sqs",
            endpoint_url=f"{parts.scheme}://{parts.netloc}",
            region_name=region or session.region_name or "us-east-1",
            config=Config(connect_timeout=5, read_timeout=10, retries={"max_attempts": 2}),
        )
        return client

    @contextmanager
    def _mapped(self) -> Iterator[None]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "refused")
            raise self._failed(f"it answers {code}") from None
        except BotoCoreError as error:
            raise self._failed(type(error).__name__) from None

    def _failed(self, why: str) -> SourceError:
        hint = "check notificationQueue, and that the keys may receive and delete messages there"
        return SourceError(f"the queue {self.url} cannot be used", why=why, hint=hint)


def _batches(handles: Sequence[str]) -> Iterator[list[dict[str, str]]]:
    for start in range(0, len(handles), BATCH):
        batch = handles[start : start + BATCH]
        yield [{"Id": str(n), "ReceiptHandle": handle} for n, handle in enumerate(batch)]
