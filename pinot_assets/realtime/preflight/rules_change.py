"""Rules of a change that is made by `tables apply`, at once: what must not be changed so, and what must stay.

Only that command asks them: turning pauseless consumption on or off has its own way (`operations.pauseless`).
"""

from __future__ import annotations

from typing import Final

from pinot_assets.core.check_result import CheckResult
from pinot_assets.core.text import plural_are
from pinot_assets.realtime.preflight.facts import Facts
from pinot_assets.realtime.preflight.rule import Rule, passed, refuse, rule


@rule()
def pauseless_is_drained(facts: Facts) -> CheckResult:
    """A commit would begin in one protocol and end in the other (docs/design/realtime.md#point-8)."""
    if facts.held is None or facts.held.pauseless is facts.wanted.pauseless:
        return passed("pauseless consumption stays as it is")
    raw = facts.table.removesuffix("_REALTIME")
    if facts.wanted.pauseless:
        return refuse(
            "pauseless consumption would be turned on while segments are being consumed, which would then be "
            "committed half one way, half the other",
            f"pinot-assets realtime pauseless enable {raw}, then this",
        )
    return refuse(
        "pauseless consumption would be turned off while segments are being committed "
        f"({facts.committing} now): those stay COMMITTING, and nothing uploads them any more",
        f"pinot-assets realtime pauseless disable {raw}, then this",
    )


@rule(needs=("peers_only",))
def scheme_is_not_needed(facts: Facts) -> CheckResult:
    """A segment with an empty URL can be had from peers alone (docs/design/realtime.md#s6-download)."""
    if facts.held is None or facts.held.peer_scheme is None or facts.wanted.peer_scheme is not None:
        return passed("the peer scheme is not taken away")
    waiting = facts.peers_only + facts.committing
    if waiting:
        return refuse(
            f"{plural_are(waiting, 'segment')} not in the deep store: "
            "without the peer scheme no server can load it",
            f"pinot-assets realtime repair {facts.table.removesuffix('_REALTIME')} --apply, then again",
        )
    return passed("every segment is in the deep store, so that no server needs a peer")


RULES: Final[tuple[Rule, ...]] = (
    pauseless_is_drained,
    scheme_is_not_needed,
)
"""In the order in which they are answered."""
