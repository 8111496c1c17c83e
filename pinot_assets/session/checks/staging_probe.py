"""Check that driver and executors see the same staging area (rule R28).

A folder on a local disk of every machine looks right to each of them, though they do not share it.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from pinot_assets.core.installation_policy import Policy
from pinot_assets.errors import PinotAssetsError, SettingError, SourceError
from pinot_assets.ingest.contract.builder import Builder
from pinot_assets.session.stores.staging import Staging
from pinot_assets.source import open_store
from pinot_assets.source.object_store import probe_key

_HINT = "name a place that the driver and every executor reach under this URI, with these settings"


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What one place found.

    :ivar host: its name.
    :ivar key: of the object that it wrote, "" if it could not.
    :ivar trouble: what went wrong there.
    :ivar is_setting: whether a wrong setting is the reason, so that a later try does not help.
    """

    host: str
    key: str = ""
    trouble: str = ""
    is_setting: bool = False


@dataclass(frozen=True, slots=True)
class StagingProbe:
    """Runs where files are built: read what the driver wrote, write something for it to read.

    :ivar uri: the staging area.
    :ivar props: how to reach it; names of environment variables, never secrets.
    :ivar policy: the table spec's.
    :ivar key: what the driver wrote.
    """

    uri: str
    props: Mapping[str, str]
    policy: Policy
    key: str

    def __call__(self) -> ProbeResult:
        """Read and write; return errors in the result instead of raising them."""
        host, own = socket.gethostname(), probe_key()
        try:
            store = open_store(self.uri, self.props, self.policy)
            store.read(self.key)
            store.put_if_absent(own, b"from where files are built")
        except PinotAssetsError as error:
            return ProbeResult(host, trouble=str(error), is_setting=isinstance(error, SettingError))
        return ProbeResult(host, own)


def require_staging_reachable(
    staging: Staging, props: Mapping[str, str], policy: Policy, builder: Builder
) -> None:
    """Prove that driver and executors read what the other one writes; leaves nothing behind.

    :param props: the settings with which executors reach the staging area.
    :param policy: what the table spec may reach, from there as well.
    :raises SourceError: they do not; names the machine.
    :raises BuildError: nothing could be run where files are built.
    """
    store = staging.store
    store.probe()
    key = probe_key()
    with ExitStack() as written:
        store.put_if_absent(key, b"from the driver")
        written.callback(store.delete, key)
        results = builder.everywhere(StagingProbe(store.uri, props, policy, key))
        for one in results:
            if one.key:
                written.callback(store.delete, one.key)
        for one in results:
            if one.trouble:
                raise (SettingError if one.is_setting else SourceError)(
                    f"{store.uri} cannot be used from {one.host}, where files are built",
                    why=one.trouble,
                    hint=_HINT,
                )
            if store.stat(one.key) is None:
                raise SourceError(
                    f"{store.uri} is another place on {one.host}, where files are built",
                    why="what was written there cannot be seen here",
                    hint=_HINT,
                )
