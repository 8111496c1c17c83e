"""The deep store as seen from here."""

from __future__ import annotations

from pinot_assets.core.policy import UNLIMITED
from pinot_assets.errors import PinotAssetsError
from pinot_assets.pinot.realtime import RealtimeReads
from pinot_assets.realtime.read.api import Sweeper
from pinot_assets.source import ObjectStore, open_store


def open_deep_store(pinot: RealtimeReads, given: str | None = None) -> ObjectStore | None:
    """The deep store, as given or as the controller names it; None where that one cannot be opened.

    :raises SourceError: what is given cannot be opened.
    """
    try:
        address = given or pinot.controller_config().text("controller.data.dir")
        return open_store(address, {}, UNLIMITED) if address else None
    except PinotAssetsError:
        if given is not None:
            raise
        return None


def sweeper(store: ObjectStore | None, table: str) -> Sweeper | None:
    """Deletes left-over uploads of that table; None without a store.

    :param table: with or without `_REALTIME`.
    """
    if store is None:
        return None
    folder = table.removesuffix("_REALTIME")
    return lambda name: store.delete(f"{folder}/{name}")
