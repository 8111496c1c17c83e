"""How large the ZNode is that lists a table's segments and their servers: Helix's ideal state.

ZooKeeper refuses a node of more than 1 MiB. Above 1,000 segments Pinot has Helix pack it
(`HelixHelper`, later `IdealStateGroupCommit`: NUM_PARTITIONS_THRESHOLD_TO_ENABLE_COMPRESSION).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

PACKED_ABOVE = 1000
LIMIT_BYTES = 1024 * 1024 - 1
"""ZooKeeper's `jute.maxbuffer`, where nobody set another one."""

_SETTINGS = {
    "BATCH_MESSAGE_MODE": "false",
    "IDEAL_STATE_MODE": "CUSTOMIZED",
    "INSTANCE_GROUP_TAG": "DefaultTenant_OFFLINE",
    "MAX_PARTITIONS_PER_INSTANCE": "2147483647",
    "NUM_PARTITIONS": "100000",
    "REBALANCE_MODE": "CUSTOMIZED",
    "REPLICAS": "3",
    "STATE_MODEL_DEF_REF": "SegmentOnlineOfflineStateModel",
    "STATE_MODEL_FACTORY_NAME": "DEFAULT",
}


@dataclass(frozen=True, slots=True)
class IdealState:
    """Its size, by the names that it would hold.

    :ivar text_bytes: as JSON.
    :ivar stored_bytes: as it lies in ZooKeeper: packed, where Pinot packs it.
    """

    segments: int
    text_bytes: int
    stored_bytes: int

    @property
    def packed(self) -> bool:
        """Whether Pinot has it packed."""
        return self.segments > PACKED_ABOVE


def ideal_state(table: str, segments: Collection[str], servers: Sequence[str], replicas: int) -> IdealState:
    """The ideal state with these segments, each on as many servers as it has replicas.

    :param servers: of the table. Which of them has a segment makes no difference to speak of.
    """
    states = dict.fromkeys(servers[:replicas], "ONLINE")
    record = {
        "id": f"{table}_OFFLINE",
        "simpleFields": _SETTINGS,
        "mapFields": dict.fromkeys(sorted(segments), states),
        "listFields": {},
    }
    text = json.dumps(record, indent=2).encode()
    stored = gzip.compress(text) if len(segments) > PACKED_ABOVE else text
    return IdealState(len(segments), len(text), len(stored))
