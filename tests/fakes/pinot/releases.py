"""In what the releases of Pinot under test differ, as far as tests can see it: data, so that no test asks."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from pinot_assets.local.pinot_build import jars_of, read_build
from pinot_assets.pinot.versions import honours_lineage_settings, release


@dataclass(frozen=True, slots=True)
class Dialect:
    """The ways of one release.

    :ivar version: as its controller names it.
    :ivar empty_outputs_refused: what it says to a replacement by nothing, None where it does it.
    :ivar forced_start_waits: whether a forced start answers only when its servers have dropped what it
        deletes; its caller's deadline may be over by then.
    :ivar upload: end of the path of an upload of several segments.
    :ivar takes_batches: whether that one upload is all.
    :ivar tells_what_to_reload: whether it says that a segment needs a reload.
    :ivar fixed_in_schemas: what may not change in a field of a schema.
    :ivar append_keeps_hours: for how long it keeps what is replaced in an APPEND table whose config does not
        say so; 0 where the config cannot.
    :ivar locks_deletes: whether it refuses a whole delete if a lineage entry locks one of its names.
    :ivar needs_dictionaries: whether it refuses the config of a table with an inverted index on a column
        without dictionary.
    """

    version: str
    empty_outputs_refused: str | None
    forced_start_waits: bool
    upload: str
    takes_batches: bool
    tells_what_to_reload: bool
    fixed_in_schemas: tuple[str, ...]
    append_keeps_hours: int = 0
    locks_deletes: bool = False
    needs_dictionaries: bool = False

    @property
    def server_version(self) -> str:
        """As its servers name it, with a commit behind it; those before 1.4 name none."""
        return f"{self.version}-0123abc" if release(self.version) >= release("1.4") else ""

    @property
    def uploads_on_request(self) -> bool:
        """Whether its controller can be asked to have servers upload segments of REALTIME tables."""
        return release(self.version) >= release("1.5")

    def uploads(self, segments: int) -> int:
        """Uploads that a push of so many new segments takes: one shows that Pinot can copy from the staging
        area, the others go together where they can."""
        return min(segments, 2) if self.takes_batches else segments


PINOT_0_11 = Dialect(
    "0.11.0",
    "'segmentsTo' should not be null or empty",
    forced_start_waits=True,
    upload="/v2/segments",
    takes_batches=False,
    tells_what_to_reload=False,
    fixed_in_schemas=("dataType", "singleValueField", "defaultNullValue", "maxLength"),
)
PINOT_1_5 = Dialect(
    "1.5.1",
    None,
    forced_start_waits=False,
    upload="/segments/batchUpload",
    takes_batches=True,
    tells_what_to_reload=True,
    fixed_in_schemas=("dataType", "singleValueField"),
)
PINOT_1_6 = replace(
    PINOT_1_5, version="1.6.0", append_keeps_hours=4, locks_deletes=True, needs_dictionaries=True
)


def release_of_stack() -> str:
    """The release that the local stack of the tests starts: the one of PINOT_HOME, or Maven's."""
    home = os.environ.get("PINOT_HOME")
    return PINOT_0_11.version if home is None else read_build(jars_of(Path(home))).version.partition("-")[0]


def dialect_of(version: str) -> Dialect:
    """What a release speaks, as far as it was seen. A snapshot of a release counts as that release."""
    known = PINOT_0_11 if release(version) < release("1.0") else PINOT_1_5
    return replace(PINOT_1_6 if honours_lineage_settings(version) else known, version=version)
