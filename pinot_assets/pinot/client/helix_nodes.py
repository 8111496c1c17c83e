"""Nodes of Pinot's ZooKeeper, read and written through the controller."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self

from pinot_assets.core.json_object import JsonMapping, JsonValue
from pinot_assets.core.untrusted import listed, typed
from pinot_assets.errors import PinotError, PinotNotFound
from pinot_assets.pinot.client.table_calls import TableCalls


@dataclass(frozen=True, slots=True)
class Node:
    """One ZNRecord of Helix.

    :ivar id: the record's own name, usually the last part of the path.
    :ivar version: the node's version when it was read; -1 if it was read without.
    """

    id: str
    simple: Mapping[str, str]
    lists: Mapping[str, list[str]]
    maps: Mapping[str, Mapping[str, str]]
    version: int = -1

    @classmethod
    def from_json(cls, value: JsonMapping, version: int = -1) -> Self:
        """Read an answer of `/zk/get`."""
        return cls(
            id=str(value["id"]),
            simple=value.get("simpleFields") or {},
            lists=value.get("listFields") or {},
            maps=value.get("mapFields") or {},
            version=version,
        )

    def with_fields(self, **fields: str) -> Node:
        """Return a copy with these simple fields replaced and the same version."""
        return replace(self, simple={**self.simple, **fields})


@dataclass(frozen=True, slots=True)
class Stat:
    """When a node was created and last written, in epoch milliseconds, and its version (number of writes)."""

    created_ms: int
    modified_ms: int
    version: int

    @classmethod
    def from_json(cls, value: JsonMapping) -> Self:
        """Read an answer of `/zk/stat`."""
        return cls(int(value["ctime"]), int(value["mtime"]), int(value["version"]))


class Nodes(TableCalls):
    """Calls for nodes. A path starts below the cluster's root, without a slash. Every release from 0.11 on.

    Errors of every method: `PinotError` and its subclasses.
    """

    _cluster: str = ""

    def read_cluster(self) -> str:
        """Return the cluster's name, which is the root of its nodes."""
        self._cluster = self._cluster or str(self._get("/cluster/info")["clusterName"])
        return self._cluster

    def node(self, path: str) -> Node | None:
        """Return one node, None if there is none."""
        value = self._look("get", path)
        return None if value is None else Node.from_json(typed(value, dict))

    def versioned_node(self, path: str) -> Node:
        """Return one node with its version. The content is at least as new as the version, so a write with
        that version never overwrites a change that we did not see.

        :raises PinotNotFound: there is no such node.
        """
        stat = Stat.from_json(self._get("/zk/stat", path=self._full(path)))
        if (node := self.node(path)) is None:
            raise PinotNotFound(f"there is no node {self._full(path)}")
        return replace(node, version=stat.version)

    def children(self, path: str) -> tuple[Node, ...]:
        """Return all children of a node, none if there is no such node."""
        return tuple(map(Node.from_json, listed(self._look("getChildren", path) or [], dict)))

    def child_stats(self, path: str) -> dict[str, Stat]:
        """Return the stat of every child by its name; empty if there is no such node."""
        children = typed(self._look("lsl", path) or {}, dict)
        return {str(name): Stat.from_json(stat) for name, stat in children.items() if stat}

    def put_node(self, path: str, node: Node) -> None:
        """Write a node, unless somebody wrote it after it was read with its version.

        :raises PinotError: also if it was written in between, or was not read by `versioned_node`.
        """
        if node.version < 0:
            raise PinotError(
                f"the node {path} was read without its version", why="-1 would overwrite whatever is there"
            )
        record = {
            "id": node.id,
            "simpleFields": dict(node.simple),
            "listFields": dict(node.lists),
            "mapFields": {key: dict(value) for key, value in node.maps.items()},
        }
        version = str(node.version)
        self._write("PUT", "/zk/put", body=record, path=self._full(path), expectedVersion=version)

    def _look(self, call: str, path: str) -> JsonValue:
        """Return Pinot's answer about a node, None if there is no such node."""
        with suppress(PinotNotFound):
            return self._client.get_json(f"/zk/{call}", path=self._full(path))
        return None

    def _full(self, path: str) -> str:
        return f"/{self.read_cluster()}/{path}"
