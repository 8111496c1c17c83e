"""What of a schema and a table config the writer refuses, and why.

`tools.docs.formats_page` has the list of all that may be asked for, refused or not, for
docs/guides/formats.md. A unit test has a schema or table config for every line of it and holds the writer to
it.
"""

from __future__ import annotations

from enum import Enum

_NEEDS_BUILDER = "NEEDS_JVM_BUILDER"


class Feature(Enum):
    """What a schema or table config may ask for, and the writer does not do.

    :ivar reason: why.
    :ivar code: a fixed name for refusals.
    """

    def __init__(self, reason: str, code: str) -> None:
        self.reason = reason
        self.code = code

    COLUMN_INVALID = ("Pinot has no such columns", "COLUMN_INVALID")
    DEFAULT_VALUE = (
        "Pinot would not take it, or its meaning depends on the server's time zone",
        "DEFAULT_VALUE_INVALID",
    )
    TRAILING_ZEROS = ("equal numbers of different scale have no certain order", "BIG_DECIMAL_SCALE_AMBIGUOUS")
    NEEDS_BUILDER = ("only Pinot's own builder writes it", _NEEDS_BUILDER)
    OLD_FIELDS = ("old forms that are not imitated", _NEEDS_BUILDER)
    COLUMN_NAME = ("servers would read something else", "COLUMN_NAME_UNSAFE")
    CODEC_UNREADABLE = ("Pinot 1.5.1 does not read back what it wrote", "CODEC_UNREADABLE_IN_1_5_1")
    ENCODING_INVALID = ("Pinot does not accept it", "ENCODING_INVALID")
    ENCODING_TOO_NEW = ("the oldest server that must read the segments cannot", "SERVER_TOO_OLD")
    INDEX_INVALID = ("Pinot does not accept it", "INDEX_INVALID")
    STAR_TREE_AT_BUILD = (
        "only Pinot's own builder writes it, unless enableDynamicStarTreeCreation leaves it to the server",
        "STAR_TREE_NEEDS_JVM",
    )
    INDEX_NEEDS_DICTIONARY = (
        "the server cannot build it and does not load the segment",
        "INDEX_NEEDS_DICTIONARY",
    )
    TIMESTAMP_INDEX_OF_NULLS = (
        "the server derives its columns without their nulls",
        "TIMESTAMP_INDEX_LOSES_NULLS",
    )
    SORTED_COLUMN_INVALID = ("Pinot does not accept it", "SORTED_COLUMN_INVALID")
    PARTITIONS_INVALID = (
        "no partition, or one that a server computes differently",
        "PARTITION_COLUMN_INVALID",
    )
    TIME_FORMAT_OTHER = ("they cannot be read exactly as Pinot reads them", "TIME_FORMAT_UNSUPPORTED")
    TIME_COLUMN = ("Pinot does not accept it", "TIME_COLUMN_INVALID")
    TRANSFORM_OTHER = (
        "nothing in Spark SQL is certainly the same: write transforms and filter in fileIngestion",
        "TRANSFORM_NOT_TRANSLATED",
    )
    GROOVY = (
        "Spark SQL cannot say what a script does: write transforms and filter in fileIngestion",
        "GROOVY_REFUSED",
    )
    TRANSFORM_REFERENCE = (
        "Pinot and Spark would put a variable of the environment there, which must not become table data",
        "REFERENCE_REFUSED",
    )
    TRANSFORM_INVALID = ("Pinot does not accept it", "TRANSFORM_INVALID")
    INGESTION = ("it changes rows while they are read", "INGESTION_TRANSFORM_NEEDS_JVM")
    UPSERT = ("such a table's segments are no files that can be replaced", "UPSERT_UNSUPPORTED")
    CONFIG_SHAPE = ("Pinot does not accept it", "CONFIG_INVALID")
    OLD_SERVER = ("0.11 is the oldest server that was tested", "SERVER_TOO_OLD")


class Findings:
    """What of a schema and a table config cannot be done, and what is left to the server, for people.

    :ivar problems: what cannot be done.
    :ivar notes: what is accepted but left to the server or not imitated.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.notes: list[str] = []

    def refuse(self, where: str, feature: Feature, what: str) -> None:
        """Note a problem: where it was asked for, and for what."""
        self.problems.append(f"{where}: {what} ({feature.code}: {feature.reason})")
