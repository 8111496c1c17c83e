"""In what the releases of Pinot under test differ, as far as tests can see it: data, so that no test asks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pinot_assets.pinot.versions import release


@dataclass(frozen=True, slots=True)
class Dialect:
    """The ways of one release.

    :ivar version: as its controller names it.
    :ivar empty_outputs_refused: what it says to a replacement by nothing, None where it does it.
    :ivar forced_start_waits: whether a forced start answers only when its servers have dropped what it
        deletes; its caller's deadline may be over by then.
    """

    version: str
    empty_outputs_refused: str | None
    forced_start_waits: bool


PINOT_0_11 = Dialect("0.11.0", "'segmentsTo' should not be null or empty", forced_start_waits=True)
PINOT_1_5 = Dialect("1.5.1", None, forced_start_waits=False)


def dialect_of(version: str) -> Dialect:
    """What a release speaks, as far as it was seen."""
    return replace(PINOT_0_11 if release(version) < release("1.0") else PINOT_1_5, version=version)
