"""A participant of Helix in plain Python, which a Pinot controller takes for a server or broker.

It registers, answers the state transitions that the controller sends, and notes every other message. What a
transition means (load a segment, drop it) is told by whoever makes the participant.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.recipe.watchers import ChildrenWatch

from pinot_assets.core.json_object import JsonObject

Move = Callable[[str, str, str], str]
"""Resource, partition and the state that is asked for → the state that is reached (`ERROR` if it failed)."""

_FOLDERS = ("MESSAGES", "CURRENTSTATES", "ERRORS", "STATUSUPDATES", "HISTORY")


def reach(resource: str, partition: str, state: str) -> str:
    """The move of one that holds nothing, and so reaches every state at once."""
    return state


class Participant:
    """One instance. Close it, or use it in a `with`.

    :ivar name: of the instance, `Server_127.0.0.1_7051`.
    :ivar notes: simple fields of the messages that were no state transitions, in order of arrival.
    """

    def __init__(
        self, zookeeper: str, cluster: str, name: str, tags: Sequence[str], move: Move = reach, **config: str
    ) -> None:
        """Register.

        :param config: more simple fields of the instance's configuration, `adminPort="8097"`.
        """
        self.name = name
        self.notes: list[dict[str, str]] = []
        self._root = f"/{cluster}"
        self._inbox = f"/{cluster}/INSTANCES/{name}/MESSAGES"
        self._move = move
        self._at_work = threading.Lock()
        self._open = True
        self._client = KazooClient(zookeeper, timeout=30)
        self._client.start(timeout=15)
        self._session = f"{self._client.client_id[0]:x}"
        self._register(tags, config)

    def close(self) -> None:
        """Leave the cluster."""
        with self._at_work:  # no message is half done
            self._open = False
        self._client.stop()
        self._client.close()

    def __enter__(self) -> Participant:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _register(self, tags: Sequence[str], config: Mapping[str, str]) -> None:
        prefix, port = self.name.rsplit("_", 1)
        fields = {"HELIX_HOST": prefix, "HELIX_PORT": port, "HELIX_ENABLED": "true", **config}
        for folder in _FOLDERS:
            self._client.ensure_path(f"{self._root}/INSTANCES/{self.name}/{folder}")
        self._write(f"CONFIGS/PARTICIPANT/{self.name}", _record(self.name, fields, TAG_LIST=list(tags)))
        ChildrenWatch(self._client, self._inbox, self._answer)
        live = {
            "LIVE_INSTANCE": f"{os.getpid()}@{socket.gethostname()}",
            "HELIX_VERSION": "1.3.2",
            "SESSION_ID": self._session,
        }
        self._client.create(
            f"{self._root}/LIVEINSTANCES/{self.name}", _json(_record(self.name, live)), ephemeral=True
        )

    def _answer(self, messages: list[str]) -> bool:
        """Take each message once, oldest first."""
        with self._at_work:
            if not self._open:
                return False  # ends the watch
            for message in self._in_order(messages):
                self._take(message)
                with suppress(NoNodeError):  # the controller clears the messages of what it gave up
                    self._client.delete(f"{self._inbox}/{message['MSG_ID']}")
        return True

    def _in_order(self, messages: list[str]) -> list[dict[str, str]]:
        decoded = []
        for message in messages:
            try:
                content, _ = self._client.get(f"{self._inbox}/{message}")
            except NoNodeError:
                continue  # answered at an earlier call
            decoded.append({**json.loads(content)["simpleFields"], "MSG_ID": message})
        return sorted(decoded, key=lambda message: int(message.get("CREATE_TIMESTAMP", "0")))

    def _take(self, message: dict[str, str]) -> None:
        if message["MSG_TYPE"] != "STATE_TRANSITION":
            self.notes.append(message)
        elif message["TGT_SESSION_ID"] == self._session:
            resource, partition = message["RESOURCE_NAME"], message["PARTITION_NAME"]
            reached = self._move(resource, partition, message["TO_STATE"])
            self._report(resource, message["STATE_MODEL_DEF"], partition, reached)

    def _report(self, resource: str, model: str, partition: str, state: str) -> None:
        path = f"{self._root}/INSTANCES/{self.name}/CURRENTSTATES/{self._session}/{resource}"
        try:
            record = json.loads(self._client.get(path)[0])
        except NoNodeError:
            record = _record(resource, {"SESSION_ID": self._session, "STATE_MODEL_DEF": model})
        if state == "DROPPED":
            record["mapFields"].pop(partition, None)
        else:
            record["mapFields"][partition] = {"CURRENT_STATE": state}
        self._write(path.removeprefix(f"{self._root}/"), record)

    def _write(self, path: str, record: JsonObject) -> None:
        full = f"{self._root}/{path}"
        self._client.ensure_path(full)
        self._client.set(full, _json(record))


def _record(name: str, fields: Mapping[str, str], **lists: list[str]) -> JsonObject:
    return {"id": name, "simpleFields": dict(fields), "mapFields": {}, "listFields": lists}


def _json(record: JsonObject) -> bytes:
    return json.dumps(record).encode()
