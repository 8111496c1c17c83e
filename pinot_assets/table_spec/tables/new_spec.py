"""A table spec that a command writes: it takes no other table of its folder with it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pinot_assets.core.files import write_new
from pinot_assets.errors import SpecError
from pinot_assets.table_spec.tables.load import displaced_by
from pinot_assets.table_spec.yaml.policy_file import FOLDER_POLICY


def write_new_spec(target: Path, text: str) -> None:
    """Write a table spec into a folder of them, whole or not at all.

    :raises SpecError: it would be taken for the folder's policy, or would keep another table from being used.
    :raises FileExistsError: it is there; it stays as it is.
    :raises OSError: it cannot be written; then there is none.
    """
    if target.name == FOLDER_POLICY:
        raise SpecError(
            f"a table spec cannot be written to {target}",
            why=f"{FOLDER_POLICY} is the policy of its folder, without which no table spec there is read",
            hint="name the table otherwise, or write a file of another name and say tableName: in it",
        )
    write_new(target, text, partial(_refuse_to_displace, target))


def _refuse_to_displace(target: Path, written: Path) -> None:
    lost = displaced_by(written, target)
    if lost:
        raise SpecError(
            f"{target} is not written",
            why=f"the table of {', '.join(map(str, lost))} would be left out beside it: two files about one "
            "table, or two halves of a hybrid table with two schemas, are of no use",
            hint="edit what is there, give another name, or write it into another folder and merge the two",
        )
