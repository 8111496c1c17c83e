"""Settings of a Pinot table that affect its sessions: each is handled, or refused with the reason.

The same rules judge the spec and, at every trigger, the config that Pinot holds, because somebody may have
added a setting there that no spec has. Sources: docs/design/lineage.md#retention-and-clean-up,
#other-programs-that-write-lineage and #what-later-releases-change; edge cases E21 and E23.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pinot_assets.core.json_object import JsonMapping, JsonValue
from pinot_assets.errors import SpecError
from pinot_assets.pinot.table_config import is_refresh, period_ms, setting
from pinot_assets.pinot.versions import ENTRY_KEPT, HOUR_MS, REPLACED_KEPT
from pinot_assets.table_spec.yaml.document import KeyPath

CONSISTENT_DATA_PUSH: Final = ("ingestionConfig", "batchIngestionConfig", "consistentDataPush")
TASKS: Final = ("task", "taskTypeConfigsMap")
PEER_SCHEME: Final = ("segmentsConfig", "peerSegmentDownloadScheme")

SHORTEST_ENTRY_MS: Final = HOUR_MS
"""Pinot must keep a lineage entry at least so long: a switch is pushed, audited and ended in half of it."""

_MERGES: Final = "merges segments of several files, after which no file can be replaced or rolled back"
_REFUSED_TASKS: Final = {
    "MergeRollupTask": _MERGES,
    "UpsertCompactMergeTask": _MERGES,
    "SegmentGenerationAndPushTask": "pushes files into this table beside the session, one by one and "
    "visible at once: only one program may write a table",
    "MaterializedViewTask": "makes this table a view of another one: Pinot's minions write its segments "
    "beside the session, visible at once, and only one program may write a table",
}
_NOTED_TASKS: Final = {
    "PurgeTask": "rewrites published segments in place: a rollback to an older snapshot brings the purged "
    "rows back"
}
_LATER: Final = "a Pinot up to 1.5.1 does not know it, and keeps 24 hours"


@dataclass(frozen=True, slots=True)
class Bearing:
    """What one setting means for sessions.

    :ivar path: its path in the table config.
    :ivar text: what is wrong with it, or worth knowing.
    :ivar fix: what to do; None if the setting is accepted.
    """

    path: KeyPath
    text: str
    fix: str | None = None


def bearings(config: JsonMapping) -> Iterator[Bearing]:
    """Yield what the settings of an OFFLINE table mean for its sessions, the refused ones first.

    :param config: the table config; parts with a wrong shape are skipped.
    """
    listed = [*_tasks(config), *_peers(config), *_kept(config), *_native_indexes(config)]
    if str(setting(config, *CONSISTENT_DATA_PUSH)).lower() == "true":
        text = (
            "makes every batch job of Pinot replace all visible segments, also those of the "
            "session: only one program may write a table"
        )
        fix = "remove it: the session makes its switch without it"
        listed.insert(0, Bearing(CONSISTENT_DATA_PUSH, text, fix))
    yield from sorted(listed, key=lambda bearing: bearing.fix is None)


def refuse_settings(table: str, config: JsonMapping) -> None:
    """Check the table config that Pinot holds; every run does this.

    :param table: raw table name.
    :raises SpecError: a session cannot work with a setting in it.
    """
    if refused := [b for b in bearings(config) if b.fix is not None]:
        listed = "".join(f"\n  {'.'.join(map(str, b.path))}: {b.text}" for b in refused)
        raise SpecError(
            f"Pinot's config of {table} has settings that a session cannot work with:{listed}",
            hint=f"{refused[0].fix}, in Pinot",
        )


def _tasks(config: JsonMapping) -> Iterator[Bearing]:
    tasks = setting(config, *TASKS)
    for name in tasks if isinstance(tasks, Mapping) else ():
        if name in _REFUSED_TASKS:
            yield Bearing((*TASKS, name), _REFUSED_TASKS[name], "remove the task from this table")
        elif name in _NOTED_TASKS:
            yield Bearing((*TASKS, name), _NOTED_TASKS[name])


def _peers(config: JsonMapping) -> Iterator[Bearing]:
    """Yield what peer download means: two servers may exchange an old version in place of the new one.

    Source: docs/design/realtime.md#rule-refresh-in-place.
    """
    if setting(config, *PEER_SCHEME) is None:
        return
    tasks = setting(config, *TASKS)
    if isinstance(tasks, Mapping) and "PurgeTask" in tasks:
        yield Bearing(
            PEER_SCHEME,
            "is set together with a PurgeTask, which rewrites segments in place: a server that "
            "misses the new version of a segment can load the old one from a peer and treat it "
            "as new",
            "remove one of the two",
        )
    else:
        yield Bearing(
            PEER_SCHEME,
            "is safe for what pinot-assets pushes, because no name is used twice; another "
            "program that refreshes segments in place can leave servers with old ones",
        )


def _native_indexes(config: JsonMapping) -> Iterator[Bearing]:
    """Yield the places that ask for the native text or FST index, which Pinot removed after 1.5.1.

    Source: https://github.com/apache/pinot/pull/17998.
    """
    fields = setting(config, "fieldConfigList")
    places: list[KeyPath] = [("tableIndexConfig", "fstindexType")]
    for number in range(len(fields) if isinstance(fields, list) else 0):
        # Below a list only these keys exist: how Pinot reads them up to 1.5.1.
        places += [
            ("fieldConfigList", number, *keys)
            for keys in (
                ("indexes", "fst", "type"),
                ("indexes", "ifst", "type"),
                ("indexes", "text", "fst"),
                ("properties", "fstType"),
            )
        ]
    for path in places:
        if str(_at(config, path)).upper() == "NATIVE":
            yield Bearing(
                path,
                "asks for the native text or FST index. Pinot after 1.5.1 has only Lucene's: it ignores this "
                "setting, and an index that an older server built is not read until its segment is "
                "reloaded. Without the setting all releases do the same",
            )


def _at(value: JsonValue, path: KeyPath) -> JsonValue:
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) else None
        else:
            value = setting(value, step)
    return value


def _kept(config: JsonMapping) -> Iterator[Bearing]:
    """Yield what two periods mean: that of open entries, and that of segments that a switch replaced."""
    for path in (ENTRY_KEPT, REPLACED_KEPT):
        text = setting(config, *path)
        kept = period_ms(text)
        if text is None:
            continue
        if kept is None:
            reason = "is not a period that Pinot can read; Pinot would use its default"
            yield Bearing(path, reason, "write it as 1d, 12h or 1d12h")
        elif path == REPLACED_KEPT:
            means = f"what a switch replaces is kept for {text}"
            if not kept:
                means = "no revert is possible: Pinot deletes what a switch replaces at its next clean-up"
            yield Bearing(path, f"{means} ({_LATER}{'' if is_refresh(config) else ', or nothing'})")
        elif kept < SHORTEST_ENTRY_MS:
            reason = (
                "is shorter than a switch may take: Pinot would delete what is pushed while it "
                "is still hidden"
            )
            yield Bearing(path, reason, "write 1h or more; without it, it is one day")
        else:
            yield Bearing(path, f"a switch that waits is opened again after half of it ({_LATER})")
