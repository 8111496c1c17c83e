"""Read table specs from `tables/*.yaml`, and report everything that is wrong with the files left out.

A new table spec is only written if no other table of its folder would be left out because of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Final

from pinot_assets.core.files import write_new
from pinot_assets.errors import SpecError
from pinot_assets.table_spec.tables.file_check import FileCheck
from pinot_assets.table_spec.tables.specs import (
    EITHER,
    NO_SPECS,
    AnyTableSpec,
    LeftOut,
    RealtimeTableSpec,
    Tables,
    TableSpec,
    asset_name,
    in_file_order,
    spec_error,
)
from pinot_assets.table_spec.yaml.document import Note, Problem, canonical_json
from pinot_assets.table_spec.yaml.policy_file import FOLDER_POLICY, policy_notes, policy_of

_ENDINGS: Final = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class SpecsRead:
    """What was read from some files.

    :ivar specs: of the files without problems, in the order of the files.
    :ivar left_out: the files with problems.
    :ivar notes: what is worth knowing about any of the files, in the order of files and lines.
    """

    specs: tuple[AnyTableSpec, ...]
    left_out: tuple[LeftOut, ...]
    notes: tuple[Note, ...]

    @property
    def problems(self) -> list[Problem]:
        """The problems of all files that are left out, by file and line."""
        return in_file_order(problem for one in self.left_out for problem in one.problems)


def read_tables(directory: Path) -> Tables:
    """Return the table specs of a directory. Wrong files are in `left_out` and do not affect other tables.

    :raises SpecError: there is no such directory.
    """
    if not directory.is_dir():
        raise spec_error([_no_directory(directory)])
    reading = read_files(_files_of(directory))
    return Tables(reading.specs, reading.left_out)


def load_tables(directory: Path) -> Tables:
    """Return all table specs of a directory, or none of them.

    :raises SpecError: something is wrong with one or more of them; the text lists every problem.
    """
    specs, problems, _ = check_tables(directory)
    if problems:
        raise spec_error(problems)
    return Tables(specs)


def load_table(file: Path) -> TableSpec:
    """Return the spec of one OFFLINE table.

    :raises SpecError: it has problems, and the text lists all of them, or it is of a REALTIME table.
    """
    spec = load_any_table(file)
    if isinstance(spec, RealtimeTableSpec):
        raise SpecError(f"{file} is the spec of a REALTIME table", hint="no files are pushed to it")
    return spec


def load_any_table(file: Path) -> AnyTableSpec:
    """Return the spec of one table, OFFLINE or REALTIME.

    :raises SpecError: it has problems; the text lists all of them.
    """
    reading = read_files([file])
    for one in reading.left_out:
        raise one.error
    (spec,) = reading.specs
    return spec


def check_tables(directory: Path) -> tuple[list[AnyTableSpec], list[Problem], list[Note]]:
    """Check all `*.yaml` and `*.yml` of a directory, without its sub-directories.

    :returns: the specs without problems, then all problems and all notes in the order of files and lines.
    """
    if not directory.is_dir():
        return [], [_no_directory(directory)], []
    return check_files(_files_of(directory))


def check_files(files: Iterable[Path]) -> tuple[list[AnyTableSpec], list[Problem], list[Note]]:
    """Check these files as one set; returns the same as `check_tables`.

    :raises SpecError: a policy file cannot be used.
    """
    reading = read_files(files)
    return [*reading.specs], reading.problems, [*reading.notes]


def check_named(
    names: Iterable[str], directory: Path
) -> tuple[list[AnyTableSpec], list[Problem], list[Note]]:
    """Check the named tables as one set, or the whole directory if none is named; returns as `check_tables`.

    :param names: tables of the directory, or paths of files, or of folders of files.
    :raises SpecError: there is no such table or folder, or a policy file cannot be used.
    """
    read = cache(read_tables)
    files = dict.fromkeys(file for name in names for file in _files_named(name, directory, read))
    return check_files(files) if files else check_tables(directory)


def read_files(files: Iterable[Path]) -> SpecsRead:
    """Read these files as one set. If two files describe one table, both are left out.

    :raises SpecError: a policy file cannot be used.
    """
    return read_named({file: file.stem for file in files})


def read_named(files: Mapping[Path, str]) -> SpecsRead:
    """Read files whose names may differ from their tables' names, as one set.

    :param files: each file with the name that its table has if the file does not say one.
    """
    specs: list[AnyTableSpec] = []
    wrong: list[LeftOut] = []
    notes: list[Note] = []
    policies = cache(policy_of)
    for folder in dict.fromkeys(file.parent for file in files):
        policies(folder)  # raises if the policy file is wrong, before any problem of the specs is reported
        notes += policy_notes(folder)
    for file, name in files.items():
        check = FileCheck(file, policies(file.parent), name)
        spec = check.run()
        notes += check.notes
        if spec is not None:
            specs.append(spec)
        else:
            wrong.append(LeftOut(file, check.name, check.kinds, tuple(in_file_order(check.problems))))
    wrong = [_narrowed(one, specs) for one in wrong]
    clashes: dict[Path, list[Problem]] = {}
    for file, problem in [*_clashes(specs, wrong), *_torn_hybrids(specs)]:
        clashes.setdefault(file, []).append(problem)
    wrong = [replace(one, problems=(*one.problems, *clashes.pop(one.file, ()))) for one in wrong]
    good = tuple(spec for spec in specs if spec.path not in clashes)
    for spec in specs:
        if spec.path in clashes:
            problems = tuple(in_file_order(clashes[spec.path]))
            wrong.append(LeftOut(spec.path, spec.name, frozenset((spec.kind,)), problems))
    return SpecsRead(good, tuple(sorted(wrong, key=lambda one: one.file)), tuple(sorted(set(notes))))


def displaced_by(written: Path, target: Path) -> list[Path]:
    """Return the good table files that would be left out if `written` were called `target`.

    :param written: the new file, which has another name for now.
    :param target: its future path, in the folder of the other files.
    :raises SpecError: a policy file cannot be used.
    """
    if target.suffix not in _ENDINGS:
        return []  # no loader reads a file with this ending
    there = {file: file.stem for file in _files_of(target.parent)}
    left = {spec.path for spec in read_named({**there, written: target.stem}).specs}
    return [spec.path for spec in read_named(there).specs if spec.path not in left]


def _files_of(directory: Path) -> list[Path]:
    return sorted(p for p in directory.iterdir() if p.suffix in _ENDINGS and p.name != FOLDER_POLICY)


def _files_named(name: str, directory: Path, read: Callable[[Path], Tables]) -> list[Path]:
    path = Path(name)
    if path.name == FOLDER_POLICY:
        return []  # a shell's *.yaml names it, too
    if path.suffix in _ENDINGS or path.is_file():
        return [path]
    try:  # look for a table before a folder: the table's data may lie in a folder of the same name
        specs, wrong = read(directory).sort_out([name])
    except SpecError:
        if not path.is_dir():
            raise
        if not (files := _files_of(path)):
            raise SpecError(
                f"there is no *.yaml in {name}", hint="name a table, a file, or a folder of table specs"
            ) from None
        return files
    return [*(spec.path for spec in specs), *(one.file for one in wrong)]


def _no_directory(directory: Path) -> Problem:
    reason = "is not a directory" if directory.exists() else "does not exist"
    return Problem(directory, 1, "", reason, NO_SPECS)


def _narrowed(one: LeftOut, specs: list[AnyTableSpec]) -> LeftOut:
    """Drop from a file of unknown kind the kinds that a good file already has: most likely it is the other
    half of a hybrid table, and it must not stop the half that is good."""
    if one.kinds != EITHER:
        return one
    taken = {spec.asset_name for spec in specs}
    return replace(one, kinds=frozenset(kind for kind in EITHER if asset_name(one.name, kind) not in taken))


def _clashes(specs: list[AnyTableSpec], wrong: list[LeftOut]) -> Iterator[tuple[Path, Problem]]:
    """Yield a problem for files about one table, or about tables whose assets would have the same name.

    A file with problems counts for each kind that it may be: a person has to decide which of the
    files describes the table.
    """
    claims: dict[str, dict[Path, str]] = {}
    for spec in specs:
        claims.setdefault(spec.asset_name, {})[spec.path] = spec.name
    for one in wrong:
        for kind in one.kinds:
            claims.setdefault(asset_name(one.name, kind), {})[one.file] = one.name
    for same in claims.values():
        if len(same) == 1 or not any(spec.path in same for spec in specs):
            continue
        for file, name in same.items():
            others = ", ".join(str(other) for other in same if other != file)
            yield file, Problem(file, 1, "table.tableName", f"{name} clashes with {others}", "rename one")


def _torn_hybrids(specs: list[AnyTableSpec]) -> Iterator[tuple[Path, Problem]]:
    """Yield a problem for both halves of a hybrid table if their schemas differ: Pinot has one for both."""
    offline = {spec.name: spec for spec in specs if isinstance(spec, TableSpec)}
    for spec in specs:
        half = offline.get(spec.name)
        if half is None or half is spec:
            continue
        if canonical_json(spec.schema_json) != canonical_json(half.schema_json):
            reason = f"is not that of {half.path}, and both halves of a hybrid table have one"
            problem = Problem(spec.path, 1, "schema", reason, "let both name the same schemaFile:")
            yield spec.path, problem
            yield half.path, problem


def write_new_spec(target: Path, text: str) -> None:
    """Write a table spec into a folder of table specs, completely or not at all.

    :raises SpecError: it would be read as the folder's policy, or would make the loader leave out a table.
    :raises FileExistsError: the file exists; it is not changed.
    :raises OSError: it cannot be written; then no file is left.
    """
    if target.name == FOLDER_POLICY:
        raise SpecError(
            f"a table spec cannot be written to {target}",
            why=f"{FOLDER_POLICY} is the policy of its folder, without which no table spec there is read",
            hint="give the table another name, or write a file of another name with tableName: in it",
        )
    write_new(target, text, partial(_refuse_to_displace, target))


def _refuse_to_displace(target: Path, written: Path) -> None:
    if lost := displaced_by(written, target):
        raise SpecError(
            f"{target} is not written",
            why=f"the table of {', '.join(map(str, lost))} would then be left out: there would be two "
            "files about one table, or two halves of a hybrid table with two schemas",
            hint="edit the file that exists, give another name, or write into another folder and "
            "merge the two",
        )
