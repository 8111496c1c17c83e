"""How to come into ZooKeeper."""

from __future__ import annotations

from dataclasses import dataclass, field

from pinot_assets.core.connections.pinot import Tls


@dataclass(frozen=True, slots=True)
class ZooKeeperAccess:
    """Who we are there.

    :ivar username: for the scheme `digest`, with `password`; None writes nodes that everybody may change.
    :ivar tls: None speaks plaintext. A client certificate's key may stand in the same file.
    """

    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: Tls | None = None
