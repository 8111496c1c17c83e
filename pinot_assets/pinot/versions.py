"""What some releases of Pinot lack or do in their own way, and what we do instead, all in this module.

Other code asks the functions below; `pinot-assets doctor` prints the table. Sources:
docs/design/lineage.md#what-later-releases-change and the threads that it names, and measurements with 0.11.0,
1.5.1 and a compiled 1.6. What was merged after 1.5.1 comes with 1.6: the branch of 1.5 has none of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from packaging.version import InvalidVersion, Version

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.pinot.table_config import is_refresh, period_ms, setting

REFERENCE: Final = "1.5.1"
"""The release that we assume if a controller names no version."""

UNNAMED_SERVER: Final = "0.11"
"""The release that we assume of a server that names none, as those before 1.4 do."""

EXCLUSIVE_DELETE: Final = "controller.lineage.exclusive.delete.enabled"
REPLACED_KEPT: Final = ("segmentsConfig", "replacedSegmentsRetentionPeriod")
ENTRY_KEPT: Final = ("segmentsConfig", "lineageEntryCleanupRetentionPeriod")

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
RENEWAL_MS: Final = 20 * HOUR_MS
"""Age at which we renew an entry, if Pinot keeps open entries for its fixed day (rules R2, R3)."""

_V1: Final = Version("1.0")
_ALL_GROUPS: Final = Version("1.1")
_BATCHES: Final = Version("1.3")
_NEED_RELOAD: Final = Version("1.3")
_HALF_UPLOADS: Final = Version("0.12")
_SERVERS_NAMED: Final = Version("1.4")
_HOLDERS: Final = Version("1.5")
_V1_6: Final = Version("1.6.dev0")  # the branch of 1.5 has none of what was merged after 1.5.1


@dataclass(frozen=True, slots=True)
class Trait:
    """One thing that some releases lack or do in their own way.

    :ivar topic: a few words.
    :ivar pinot: what such a Pinot does.
    :ivar here: what this project does instead.
    :ivar since: the first release that does so, None if even the oldest does.
    :ivar before: the first release that no longer does, None if the newest still does.
    """

    topic: str
    pinot: str
    here: str
    since: Version | None = None
    before: Version | None = None

    def holds(self, version: str) -> bool:
        """Whether that release has the trait."""
        given = release(version)
        return (self.since is None or given >= self.since) and (self.before is None or given < self.before)


def release(version: str) -> Version:
    """Return the release of a controller's version text; `REFERENCE` if the text is no version.

    :param version: as `PinotClient.version` returns it: `0.11.0`, `1.5.1`, or empty.
    """
    try:
        return Version(version)
    except InvalidVersion:
        return Version(REFERENCE)


def oldest_server(named: Iterable[str]) -> str:
    """Return the release of the oldest of some servers, such as 1.5.1; `UNNAMED_SERVER` if one names none.

    :param named: as `PinotClient.server_versions` returns them; a build between two releases counts as the
        later one.
    """
    texts = [text.partition("-")[0] for text in named]
    try:
        oldest = min(map(Version, texts))
    except ValueError:  # a text that is no version, too; or there are no servers
        return UNNAMED_SERVER
    return ".".join(map(str, oldest.release if len(oldest.release) > 1 else (oldest.major, 0)))


def takes_empty_outputs(version: str) -> bool:
    """Whether a replacement may have no outputs; it is then an atomic delete."""
    return release(version) >= _V1


def brokers_keep_all_groups(version: str) -> bool:
    """Whether a query may make its broker keep all groups until HAVING (`minBrokerGroupTrimSize`)."""
    return release(version) >= _ALL_GROUPS


def takes_batches(version: str) -> bool:
    """Whether one upload may announce many segments (`segments/batchUpload`)."""
    return release(version) >= _BATCHES


def takes_over_half_uploads(version: str) -> bool:
    """Whether an upload that finds the metadata of a failed one starts afresh. Otherwise Pinot treats it as a
    refresh of a segment that is not there."""
    return release(version) >= _HALF_UPLOADS


def forces_schemas(version: str) -> bool:
    """Whether a schema may be replaced by one that is not backward compatible (`force`)."""
    return release(version) >= _V1


def tells_what_to_reload(version: str) -> bool:
    """Whether this Pinot says if its servers have to reload a segment of a table (`needReload`)."""
    return release(version) >= _NEED_RELOAD


def honours_lineage_settings(version: str) -> bool:
    """Whether this Pinot uses the two lineage periods of a table config."""
    return release(version) >= _V1_6


def replaced_segments_kept_ms(version: str, table_json: JsonMapping) -> int:
    """Return for how long after a switch Pinot keeps the replaced segments; 0: until its next clean-up.

    :param table_json: the table config, as Pinot stores it.
    """
    refresh = is_refresh(table_json)
    if not honours_lineage_settings(version):
        return DAY_MS if refresh else 0
    kept = period_ms(setting(table_json, *REPLACED_KEPT))
    return kept if kept is not None else DAY_MS if refresh else 4 * HOUR_MS


def replaces_for_good(version: str, table_json: JsonMapping) -> bool:
    """Whether Pinot deletes at its next clean-up what this table replaces, because it is no REFRESH table.

    :param table_json: the table config, as Pinot stores it.
    """
    return not is_refresh(table_json) and replaced_segments_kept_ms(version, table_json) == 0


def way_back_ms(version: str, table_json: JsonMapping) -> int:
    """Return for how long after a switch a revert is safe: five sixths of the time for which Pinot keeps the
    sources, well before its clean-up (20 of 24 hours, rule R22); 0 if a revert is not possible."""
    return replaced_segments_kept_ms(version, table_json) * 5 // 6


def entry_renewed_ms(version: str, table_json: JsonMapping) -> int:
    """Return the age at which we replace an open entry by a new one: 20 h, or half of the table's period if
    this Pinot uses that and it is less (docs/design/session.md#renewed-entries-and-forced-starts). After the
    period Pinot deletes the entry's outputs, then the entry.

    :param table_json: the table config, as Pinot stores it.
    """
    kept = period_ms(setting(table_json, *ENTRY_KEPT)) if honours_lineage_settings(version) else None
    return RENEWAL_MS if kept is None else min(RENEWAL_MS, kept // 2)


def traits_of(version: str) -> tuple[Trait, ...]:
    """Return the traits that a release has."""
    return tuple(trait for trait in TRAITS if trait.holds(version))


TRAITS: Final = (
    Trait(
        "removing files only",
        "refuses a replacement by nothing",
        "the smallest segment that stays is pushed again under a new name; a table cannot be emptied",
        before=_V1,
    ),
    Trait(
        "forced start",
        "answers only when its servers have dropped what is deleted: 2 s to 20 min",
        "the call is given up after its deadline, and the lineage shows whether the entry ended",
        before=_V1,
    ),
    Trait(
        "list of segments",
        "lists deleted segments and failed uploads for some seconds more",
        "the ideal state shows what is in the table",
        before=_V1,
    ),
    Trait(
        "name of a deleted segment",
        "cannot be used again for some seconds",
        "names are never used twice",
        before=_V1,
    ),
    Trait(
        "upload after one that failed",
        "is treated as a refresh of what the failed one left: refused, or never assigned to a server",
        "the next upload waits until Pinot has removed what was left",
        before=_HALF_UPLOADS,
    ),
    Trait(
        "upload after one that failed",
        "starts again, but the clean-up of the failed one, 2 s later, may remove the new metadata, too",
        "the next upload waits for the clean-up, up to 10 s",
        since=_HALF_UPLOADS,
    ),
    Trait(
        "HAVING",
        "chooses from five times LIMIT groups (5,000 at least), and does not report the others",
        "a query of an assertion with HAVING has LIMIT 1000000; an assertion with its own LIMIT "
        "is not answered",
        before=_ALL_GROUPS,
    ),
    Trait(
        "batch upload",
        "takes one segment per call",
        "segments are uploaded one by one, several at the same time, and confirmed by reading",
        before=_BATCHES,
    ),
    Trait(
        "batch upload",
        "takes many segments per call; leaves the metadata of those before one that it cannot copy, and of "
        "every batch two entries in the controller's temporary folder (allSegmentsMetadata…)",
        "a batch is what can be sent in a quarter of an upload's deadline; what is not in the "
        "ideal state is pushed again; a refused batch is uploaded one by one",
        since=_BATCHES,
    ),
    Trait(
        "servers of a table",
        "names those that hold segments of it, none for an empty table; not those that may be given some",
        "the servers of the table's tenant are added",
        since=_HOLDERS,
    ),
    Trait(
        "table that is made again",
        "is refused until the servers have let go of the segments of the deleted one",
        "the refusal says so; `tables apply` is repeated then",
        since=_V1,
    ),
    Trait(
        "size of a table",
        "may leave out replaced segments, which its quota counts",
        "the query for the size includes the replaced ones",
        since=_V1,
    ),
    Trait(
        "release of a server",
        "is not named in its instance config",
        "writeFor: auto makes segments that 0.11 reads",
        before=_SERVERS_NAMED,
    ),
    Trait(
        "segments",
        "have another metadata.properties, a version 6 of raw forward indexes, dictionaries beside raw ones, "
        "and always their inverted indexes",
        "writeFor: auto makes such segments when no server of the table is older",
        since=_V1_6,
    ),
    Trait(
        "indexes.null.backfill",
        "makes null of default values in segments that do not say that a column has none (isNonNull)",
        "segments written for 1.6 say it; files that were published before have to be built again",
        since=_V1_6,
    ),
    Trait(
        "deleting segments of an open replacement",
        "does so: data may come back, a rollback become impossible",
        "sources are fixed at the start and read again right before the end; a rollback checks them first",
        before=_V1_6,
    ),
    Trait(
        "deleting segments of an open replacement",
        f"refuses it ({EXCLUSIVE_DELETE}), and an end whose sources are missing",
        "our own deletes come after the revert, when nothing is locked; if others lock a name, the rest is "
        "deleted without it; the sources are read before the end",
        since=_V1_6,
    ),
    Trait(
        "revert after a switch",
        "keeps what was replaced for 24 hours on REFRESH tables, elsewhere not at all; "
        "replacedSegmentsRetentionPeriod is not known",
        "sync and swap need REFRESH; a revert is offered for 20 hours",
        before=_V1_6,
    ),
    Trait(
        "revert after a switch",
        "keeps what was replaced for replacedSegmentsRetentionPeriod (24 hours on REFRESH tables, "
        "4 hours elsewhere)",
        "a revert is offered for five sixths of that; 0d means that no revert is possible",
        since=_V1_6,
    ),
    Trait(
        "open entries",
        "deletes their segments after 24 hours; lineageEntryCleanupRetentionPeriod is not known",
        "an entry is renewed after 20 hours, before anything is pushed or ended under it",
        before=_V1_6,
    ),
    Trait(
        "open entries",
        "deletes their segments after lineageEntryCleanupRetentionPeriod (24 hours where it is not set)",
        "an entry is renewed after 20 hours, or after half of what is set if that is less",
        since=_V1_6,
    ),
    Trait(
        "upload after a revert",
        "puts the segment back into the table, visible",
        "names contain session and attempt; lease and entry are checked before every batch; "
        "strays are deleted",
    ),
    Trait(
        "another type of a column",
        "does not take a schema with another type, default null value or length of a column",
        "the schema is deleted and made anew; until then the table has none",
        before=_V1,
    ),
    Trait(
        "reloads after a change",
        "does not say which segments need one",
        "the columns and indexes of every segment are read from its servers and compared with the spec",
        before=_NEED_RELOAD,
    ),
    Trait(
        "reloads after a change",
        "says whether a segment of the table needs one",
        "if none does, no segment is read",
        since=_NEED_RELOAD,
    ),
    Trait(
        "parallel starts and ends",
        "may lose one of the lineage's first entries",
        "one lease per table; the entry is read back before the first upload",
    ),
    Trait(
        "push that failed",
        "leaves its entry open, and refuses the next start that overlaps",
        "the entry is adopted, renewed or reverted by its id; an entry of others is never ended",
    ),
    Trait(
        "storage quota",
        "is checked upload by upload, hidden segments included; it cannot be checked before",
        "the switch is compared with quota.storage before anything is pushed",
    ),
    Trait(
        "refusals of the lineage",
        "are a 500 without a reason, like a fault",
        "the lineage shows the reason; no answer means unknown, never failed",
    ),
)
"""Every trait that we know."""
