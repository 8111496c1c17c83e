"""One table's nodes in ZooKeeper, and the way to its lease."""

from __future__ import annotations

import json
from dataclasses import replace

from kazoo.exceptions import BadVersionError, NoAuthError, NodeExistsError

from pinot_assets.core.stored_format import plain
from pinot_assets.errors import SessionError, SessionHeld
from pinot_assets.session.stores.lease import UNKNOWN, Lease
from pinot_assets.session.stores.nodes import first_error, make_own_path
from pinot_assets.session.stores.session_nodes import SessionNodes
from pinot_assets.session.values.state import Owner
from pinot_assets.zookeeper import answered, require_cluster


class SessionStore(SessionNodes):
    """What stands of a table, and who may change it."""

    @answered()
    def take_lease(self, owner: Owner) -> Lease:
        """Become the table's one writer: create the ephemeral lease and grow the epoch, in one transaction.

        :raises SessionHeld: another run holds it; names the run and since when.
        :raises SessionError: no Pinot cluster of that name lives in this ZooKeeper, or none answers.
        """
        self._require_cluster()
        make_own_path(self.zk, self.path)
        for _ in range(5):
            pointer, version, was_set = self.read_pointer()
            mine = replace(pointer, epoch=pointer.epoch + 1, owner=owner)
            transaction = self.zk.transaction()
            transaction.create(f"{self.path}/lease", json.dumps(plain(owner)).encode(), ephemeral=True)
            transaction.set_data(self.path, self.pointer_bytes(mine), version=version)
            try:
                results = transaction.commit()
            except UNKNOWN:
                if not (self.lease_is_ours() and self.pointer() == mine):
                    continue
                results = []
            failure = first_error(results)
            if failure is None:
                # An owner that released its lease took its name off the pointer, too.
                died = was_set and pointer.owner is not None
                return Lease(self, mine, self.version(), took_over_from=pointer.owner if died else None)
            if isinstance(failure, NodeExistsError):
                holder = self.holder()
                if holder is None:
                    continue
                raise SessionHeld(
                    f"{self.table} is paused",
                    why=f"held by {holder}",
                    hint="wait for that run; a dead one lets go within "
                    f"{self.waits.lease:.0f} s of its last heartbeat",
                )
            if isinstance(failure, NoAuthError):
                raise failure
            if not isinstance(failure, BadVersionError):
                raise SessionError(f"the lease of {self.table} could not be taken", why=repr(failure))
        raise SessionError(
            f"the lease of {self.table} could not be taken", why="five attempts met another writer"
        )

    def let_go(self) -> None:
        """End the ZooKeeper session: the lease is free at once, and nothing more can be written from here."""
        self.zk.stop()

    def _require_cluster(self) -> None:
        """Under a wrong cluster name the session would be stored where nobody looks for it."""
        require_cluster(self.zk, self._cluster)
