"""Notes about indexes that a table config asks for, and that queries would never use.

Pinot accepts these settings and says nothing. Each note begins with the line that makes them work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.pinot.table_config import setting
from pinot_assets.segment.column.unsupported import is_true
from pinot_assets.table_spec.yaml.document import DocumentNode, Note

_INDEXING: Final = "tableIndexConfig"
_BY_TIER: Final = (_INDEXING, "tierOverwrites")
_DYNAMIC: Final = "enableDynamicStarTreeCreation"


def tree_notes(table: DocumentNode) -> Iterator[Note]:
    """Yield a note for each tier that has star-trees of its own.

    A server builds them for the segments on that tier, if the table config lets it (`IndexLoadingConfig`,
    `SegmentPreProcessor.needProcessStarTrees`; since Pinot 1.0).
    """
    tiers = setting(table.value, *_BY_TIER)
    for tier, own in tiers.items() if isinstance(tiers, Mapping) else ():
        if not isinstance(own, Mapping) or not _has_trees(own):
            continue
        place = table.at(*_BY_TIER, tier)
        if is_true(own.get(_DYNAMIC, setting(table.value, _INDEXING, _DYNAMIC))):
            yield place.note("servers build its star-trees when they load a segment on this tier")
        else:
            yield place.note(
                f"write {_DYNAMIC}: true in {_INDEXING}, or no server ever builds the star-trees of this tier"
            )


def _has_trees(indexing: JsonMapping) -> bool:
    return bool(indexing.get("starTreeIndexConfigs")) or is_true(indexing.get("enableDefaultStarTree"))
