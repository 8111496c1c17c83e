"""What repair, drain, rebalance guard and drill ask of Pinot.

`pinot_assets.pinot.realtime.clients.RealtimePinot` has all of it; a test's fake needs no more than this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from pinot_assets.pinot.client.helix_nodes import Node
from pinot_assets.realtime.model.state import RealtimeState

Reader = Callable[[], RealtimeState]
"""Reads the table anew.

:raises PinotError: what nothing can be decided without did not answer.
"""

Sweeper = Callable[[str], None]
"""Deletes a left-over upload (`<segment>.tmp.<uuid>`) from the table's folder in the deep store."""

Tell = Callable[[str], None]
"""Hears, line by line, what is done."""


class RepairDoor(Protocol):
    """For the steps of a repair. None of them waits for its effect."""

    def run_validation(self, table: str) -> None:
        """The hourly part of the validation manager."""
        ...

    def run_validation_with(self, table: str, properties: Mapping[str, str]) -> None:
        """With properties, the daily part for one."""
        ...

    def upload_to_deep_store(self, table: str, segments: Collection[str]) -> None:
        """By the controller."""
        ...

    def force_upload_to_deep_store(self, table: str, segments: Collection[str]) -> None:
        """By the controller, whatever it thinks of it."""
        ...

    def reset_replica(self, table: str, segment: str, server: str) -> None:
        """One server's copy alone."""
        ...

    def server_uploads(self, admin_url: str, table: str, segment: str, seconds: float) -> str:
        """By the server; the URL where it put it."""
        ...

    def server_crc(self, admin_url: str, table: str, segment: str) -> str:
        """Of the server's copy."""
        ...

    def server_uploads_committed(
        self, admin_url: str, table: str, segment: str, seconds: float
    ) -> Mapping[str, str]:
        """By the server; the fields that the node should have."""
        ...

    def reingest(self, admin_url: str, segment: str) -> str:
        """Have it read from the stream again."""
        ...

    def resume(self, table: str) -> None:
        """Clear the pause and run the validation."""
        ...

    def segment_node(self, table: str, segment: str) -> Node:
        """With its version."""
        ...

    def write_segment(self, table: str, node: Node) -> None:
        """At that version."""
        ...


class DrainDoor(Protocol):
    """For turning pauseless on and off."""

    def table_config(self, table: str) -> dict[str, Any] | None:
        """As Pinot holds it."""
        ...

    def update_realtime_config(self, config: Mapping[str, Any]) -> None:
        """The whole of it."""
        ...

    def pause(self, table: str, comment: str = "") -> None:
        """Stop, and commit what is consumed."""
        ...

    def resume(self, table: str) -> None:
        """Go on where it stopped."""
        ...

    def force_commit(self, table: str) -> str | None:
        """Commit what is consumed."""
        ...


class RebalanceDoor(Protocol):
    """For a rebalance."""

    def preview_rebalance(self, table: str, options: Mapping[str, str]) -> Mapping[str, Any]:
        """With Pinot's own pre-checks."""
        ...

    def rebalance(self, table: str, options: Mapping[str, str]) -> Mapping[str, Any]:
        """For good."""
        ...

    def rebalance_status(self, job: str) -> Mapping[str, Any]:
        """How it stands."""
        ...


class RestartDoor(Protocol):
    """For deleting segments and reading them again in order."""

    def preview_delete_from(self, table: str, segments: Collection[str]) -> Mapping[str, Any]:
        """What `delete_from` would delete."""
        ...

    def delete_from(self, table: str, segments: Collection[str]) -> None:
        """These and all later ones of their partitions."""
        ...

    def pause(self, table: str, comment: str = "") -> None:
        """Stop, and commit what is consumed."""
        ...

    def resume(self, table: str) -> None:
        """Go on after the last segment that is left."""
        ...
