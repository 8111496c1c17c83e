"""Tables that cannot be used, in Dagster: for the code location of this project and for those of others."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

import dagster as dg

from pinot_assets.assets.left_out import left_out_asset, left_out_check
from pinot_assets.errors import PinotAssetsError
from pinot_assets.printable import visible
from pinot_assets.sensors import left_out_sensor
from pinot_assets.table_spec import AnyTableSpec, LeftOut, Problem
from pinot_assets.table_spec.blocks.pinot_json import OFFLINE_SUFFIX, REALTIME_SUFFIX
from pinot_assets.table_spec.tables.specs import asset_name

_LOG = logging.getLogger(__name__)


def build_left_out_definitions(left_out: Iterable[LeftOut], taken: Collection[str] = ()) -> dg.Definitions:
    """An asset for each table that is left out, red and with what is wrong; also told in the log.

    :param taken: names of assets that other tables have.
    """
    by_name: dict[str, list[LeftOut]] = {}
    for one in left_out:
        _LOG.error("left out: %s", visible(one.in_one_line))
        by_name.setdefault(_asset_name(one), []).append(one)
    by_name = dict(_renamed(by_name, taken))
    return dg.Definitions(
        assets=[left_out_asset(name, files) for name, files in by_name.items()],
        asset_checks=[left_out_check(name, files) for name, files in by_name.items()],
        sensors=[left_out_sensor(name, files) for name, files in by_name.items()],
    )


def in_place_of(own: LeftOut, left_out: Iterable[LeftOut], taken: Collection[str]) -> dg.Definitions:
    """What one file adds to those of `left_out`, where each is loaded by itself: of several files about one
    table the first shows what is wrong with all of them.

    :param taken: names of assets that other tables have.
    """
    same = [one for one in left_out if _asset_name(one) == _asset_name(own)]
    return build_left_out_definitions(same, taken) if same[0] == own else dg.Definitions()


def built_or_left_out(spec: AnyTableSpec, build: Callable[[], dg.Definitions]) -> dg.Definitions | LeftOut:
    """What `build` makes of a spec; where Dagster does not take it, why the table is left out."""
    try:
        return build()
    except Exception as error:
        if isinstance(error, PinotAssetsError):
            why = error.in_one_line
        elif isinstance(error, dg.DagsterError):
            why = str(error).partition("\n")[0]
        else:  # its text may quote a secret
            place = traceback.extract_tb(error.__traceback__)[-1]
            why = f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"
        problem = Problem(spec.path, 1, "", f"cannot be shown in Dagster: {why}")
        kind = spec.name_with_type.removeprefix(spec.name)
        return LeftOut(spec.path, spec.name, frozenset((kind,)), (problem,))


def _asset_name(one: LeftOut) -> str:
    """As the table's own would be."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", one.name)
    return asset_name(name, REALTIME_SUFFIX if one.kinds == {REALTIME_SUFFIX} else OFFLINE_SUFFIX)


def _renamed(
    by_name: Mapping[str, list[LeftOut]], taken: Collection[str]
) -> Iterator[tuple[str, list[LeftOut]]]:
    """Each under its own name, or under another one where that belongs to another table."""
    used = {*taken, *by_name}
    for name, files in by_name.items():
        free = name
        while name in taken and free in used:
            free += "_left_out"
        used.add(free)
        yield free, files
