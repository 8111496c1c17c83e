"""Removing files on a Pinot before 1.0, which refuses a replacement by nothing.

One published segment that stays goes along under a new name: it is among the sources, and its renamed copy is
the output. Queries see the same rows of it before and after.
"""

from __future__ import annotations

from dataclasses import replace

from pinot_assets.errors import SwitchConflict
from pinot_assets.ingest.contract.build_spec import segment_name
from pinot_assets.pinot import versions
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.values.plan import Plan
from pinot_assets.session.values.state import PushKind
from pinot_assets.snapshot.manifest import PublishedFile, Snapshot


def add_placeholder(
    context: TriggerContext, plan: Plan, current: Snapshot, switch: Switch, visible: frozenset[str]
) -> Switch:
    """The same switch with the smallest segment that stays carried along.

    :param visible: every visible segment of the table; another cannot be a source.
    :raises SwitchConflict: no segment stays: this Pinot cannot switch to an empty table.
    """
    foreseen = _with_smallest(context, plan, current, switch, visible)
    (output,) = foreseen.segments_to
    carried = current.segments[foreseen.carried]
    return replace(foreseen, segments_to=(context.clients.staging.put_renamed(carried, output.segment),))


def with_placeholder(
    context: TriggerContext, plan: Plan, current: Snapshot | None, switch: Switch, visible: frozenset[str]
) -> Switch:
    """What a switch becomes in `stage`, foreseen: where nothing is left to build, and it removes only.

    :raises SwitchConflict: as `add_placeholder`.
    """
    only_removes = switch.segments_from and not plan.to_build and context.push is not PushKind.PLAIN
    if not only_removes or current is None or not needs_placeholder(context, switch):
        return switch
    return _with_smallest(context, plan, current, switch, visible)


def _with_smallest(
    context: TriggerContext, plan: Plan, current: Snapshot, switch: Switch, visible: frozenset[str]
) -> Switch:
    free = visible - set(switch.segments_from)
    staying = [output for name, output in current.segments.items() if name in free]
    if not staying:
        raise SwitchConflict(
            f"{context.spec.name} cannot be emptied by a switch",
            why="this Pinot is older than 1.0 and refuses a replacement by nothing",
            hint="drop the table's segments by hand, or keep one file",
        )
    smallest = min(staying, key=lambda o: (o.tar_bytes, o.segment))
    ordinal = max((row.ordinal for row in plan.rows), default=-1) + 1
    name = segment_name(context.spec.name, plan.session, plan.attempt, ordinal, 0)
    sources = tuple(sorted((*switch.segments_from, smallest.segment)))
    renamed = replace(smallest, segment=name)
    return replace(switch, segments_from=sources, segments_to=(renamed,), carried=smallest.segment)


def needs_placeholder(context: TriggerContext, switch: Switch) -> bool:
    """Whether a switch removes only, and this Pinot takes none that does."""
    return not switch.segments_to and not versions.takes_empty_outputs(context.pinot_version)


def renamed_files(files: tuple[PublishedFile, ...], switch: Switch) -> tuple[PublishedFile, ...]:
    """The published rows with the carried segment under its new name."""
    if not switch.carried:
        return files
    (new,) = switch.segments_to
    return tuple(
        replace(f, outputs=tuple(new if o.segment == switch.carried else o for o in f.outputs)) for f in files
    )
