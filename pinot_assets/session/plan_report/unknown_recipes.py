"""Published segments of which no recipe is known, because a release before recipes built them.

They are compared with the table spec through the metadata that servers report. What built them stays unknown:
another filter, say, cannot be seen. So nothing builds them again but `rebuild --files`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pinot_assets.errors import PinotError
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import revisions_of
from pinot_assets.snapshot.recipes import UNKNOWN
from pinot_assets.table_spec.changes.lacking import built_otherwise
from pinot_assets.table_spec.changes.recipe import recipe_of

MOST_ASKED: Final = 100
"""Segments whose metadata are asked for: one request each and replica."""


@dataclass(frozen=True, slots=True)
class UnknownRecipes:
    """What metadata say of segments whose recipe is unknown.

    :ivar segments: how many there are.
    :ivar compared: how many of them were compared, at most `MOST_ASKED`.
    :ivar differ: what the spec would build otherwise → in how many of these; the most frequent first.
    """

    segments: int = 0
    compared: int = 0
    differ: Mapping[str, int] = field(default_factory=dict)


def unknown_recipes(context: TriggerContext, current: Snapshot | None) -> UnknownRecipes:
    """Compare the segments without a recipe; servers that do not answer are left out."""
    if current is None or UNKNOWN not in revisions_of(current.files):
        return UnknownRecipes()
    files = (file for file in current.files if file.revision == UNKNOWN)
    names = [output.segment for file in files for output in file.outputs]
    asked = names[:MOST_ASKED]
    try:
        replicas = context.pinot.online_replicas(context.table, asked)
        servers = {server for states in replicas.values() for server in states}
        held = context.pinot.held_segments(context.table, asked, servers)
    except PinotError:
        return UnknownRecipes(len(names))
    recipe = recipe_of(context.spec)
    compared = [of_servers.values() for of_servers in held.values() if of_servers]
    differ = Counter(
        reason
        for replicas_of_one in compared
        for reason in {reason for one in replicas_of_one for reason in built_otherwise(recipe, one)}
    )
    return UnknownRecipes(len(names), len(compared), dict(differ.most_common()))
