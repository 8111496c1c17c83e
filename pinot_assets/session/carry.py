"""Removing files on a Pinot before 1.0, which refuses a replacement by nothing.

One published segment that stays goes along under a new name: it is among the sources, and its renamed copy is
the output. Queries see the same rows of it before and after.
"""

from __future__ import annotations

from dataclasses import replace

from pinot_assets.build.order import segment_name
from pinot_assets.errors import SwitchConflict
from pinot_assets.session.plan import Plan
from pinot_assets.session.run import Run
from pinot_assets.session.staging import Switch
from pinot_assets.snapshot.manifest import PublishedFile, Snapshot


def carry_one(run: Run, plan: Plan, current: Snapshot, switch: Switch, visible: frozenset[str]) -> Switch:
    """The same switch with the smallest segment that stays carried along.

    :param visible: every visible segment of the table; another cannot be a source.
    :raises SwitchConflict: no segment stays: this Pinot cannot switch to an empty table.
    """
    free = visible - set(switch.segments_from)
    staying = [output for name, output in current.segments.items() if name in free]
    if not staying:
        raise SwitchConflict(
            f"{run.spec.name} cannot be emptied by a switch",
            why="this Pinot is older than 1.0 and refuses a replacement by nothing",
            hint="drop the table's segments by hand, or keep one file",
        )
    smallest = min(staying, key=lambda o: (o.tar_bytes, o.segment))
    ordinal = max((row.ordinal for row in plan.rows), default=-1) + 1
    name = segment_name(run.spec.name, plan.session, plan.attempt, ordinal, 0)
    output = run.edges.staging.put_renamed(smallest, name)
    sources = tuple(sorted((*switch.segments_from, smallest.segment)))
    return replace(switch, segments_from=sources, segments_to=(output,), carried=smallest.segment)


def renamed_files(files: tuple[PublishedFile, ...], switch: Switch) -> tuple[PublishedFile, ...]:
    """The published rows with the carried segment under its new name."""
    if not switch.carried:
        return files
    (new,) = switch.segments_to
    return tuple(
        replace(f, outputs=tuple(new if o.segment == switch.carried else o for o in f.outputs)) for f in files
    )
