"""`tables/*.yaml` in, table specs out, or everything that is wrong with all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from pinot_assets.errors import SpecError
from pinot_assets.spec.document import canonical_json
from pinot_assets.spec.file_check import FileCheck
from pinot_assets.spec.model import TableSpec
from pinot_assets.spec.pinot_json import OFFLINE_SUFFIX, REALTIME_SUFFIX
from pinot_assets.spec.policy_file import FOLDER_POLICY, policy_of
from pinot_assets.spec.problem import Note, Problem, did_you_mean
from pinot_assets.spec.realtime import AnyTableSpec, RealtimeTableSpec

NO_DIRECTORY: Final = "run this where tables/ lies, or name it with --tables or PINOT_ASSETS_TABLES"


class Tables(Mapping[str, TableSpec]):
    """The table specs of one directory by raw table name, in the order of their names.

    As a mapping it holds the OFFLINE tables, which files are pushed to.

    :ivar realtime: the REALTIME tables by raw name; a hybrid table's two halves have the same.
    """

    def __init__(self, specs: Iterable[AnyTableSpec]) -> None:
        ordered = sorted(specs, key=lambda spec: spec.name)
        self._offline = {spec.name: spec for spec in ordered if isinstance(spec, TableSpec)}
        self.realtime: Mapping[str, RealtimeTableSpec] = {
            spec.name: spec for spec in ordered if isinstance(spec, RealtimeTableSpec)
        }

    def __getitem__(self, name: str) -> TableSpec:
        return self._offline[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._offline)

    def __len__(self) -> int:
        return len(self._offline)

    def choose(self, names: Iterable[str]) -> list[TableSpec]:
        """The OFFLINE tables of these names in their order; all of them where no name is given.

        :raises SpecError: there is no such table.
        """
        wanted = list(names) or list(self._offline)
        for name in wanted:
            if name in self.realtime and name not in self._offline:
                raise SpecError(f"{name} is a REALTIME table", hint="see `pinot-assets realtime --help`")
            _refuse_absent(name, self._offline)
        return [self._offline[name] for name in wanted]

    def choose_realtime(self, name: str) -> RealtimeTableSpec:
        """The REALTIME table of that name, with or without `_REALTIME`.

        :raises SpecError: there is no such table.
        """
        raw = name.removesuffix(REALTIME_SUFFIX)
        if raw in self._offline and raw not in self.realtime:
            raise SpecError(
                f"{raw} is an OFFLINE table", hint="a REALTIME one has realtime: in place of fileIngestion:"
            )
        _refuse_absent(raw, self.realtime)
        return self.realtime[raw]

    def choose_any(self, names: Iterable[str]) -> list[AnyTableSpec]:
        """The tables of these names, of either type; a hybrid's name stands for both halves, unless it ends
        in `_OFFLINE` or `_REALTIME`. All tables where no name is given.

        :raises SpecError: there is no such table.
        """
        known = dict.fromkeys([*self._offline, *self.realtime])
        chosen: list[AnyTableSpec] = []
        for name in list(names) or sorted(known):
            halves = [
                spec
                for spec in (self._offline.get(_raw(name)), self.realtime.get(_raw(name)))
                if spec is not None and name in (spec.name, spec.name_with_type)
            ]
            if not halves:
                _refuse_absent(name, known)
            chosen += halves
        return chosen


def _raw(name: str) -> str:
    return name.removesuffix(OFFLINE_SUFFIX).removesuffix(REALTIME_SUFFIX)


def _refuse_absent(name: str, known: Iterable[str]) -> None:
    names = list(known)
    if name not in names:
        hint = did_you_mean(name, names) or f"there are: {', '.join(names) or 'none'}"
        raise SpecError(f"there is no table spec for {name}", hint=hint)


def load_tables(directory: Path) -> Tables:
    """All table specs of a directory.

    :raises SpecError: anything is wrong with any of them; the text lists all of it.
    """
    specs, problems, _ = check_tables(directory)
    _raise_for(problems)
    return Tables(specs)


def load_table(file: Path) -> TableSpec:
    """One OFFLINE table's spec.

    :raises SpecError: anything is wrong with it; the text lists all of it. Or it is a REALTIME table's.
    """
    spec = load_any_table(file)
    if isinstance(spec, RealtimeTableSpec):
        raise SpecError(f"{file} is the spec of a REALTIME table", hint="no files are pushed to it")
    return spec


def load_any_table(file: Path) -> AnyTableSpec:
    """One table's spec, OFFLINE or REALTIME.

    :raises SpecError: anything is wrong with it; the text lists all of it.
    """
    specs, problems, _ = check_files([file])
    _raise_for(problems)
    (spec,) = specs
    return spec


def _raise_for(problems: Sequence[Problem]) -> None:
    if problems:
        listed = "\n".join(f"  {problem}" for problem in problems)
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        raise SpecError(f"the table specs have {count}:\n{listed}")


def check_tables(directory: Path) -> tuple[list[AnyTableSpec], list[Problem], list[Note]]:
    """Check all `*.yaml` and `*.yml` of a directory, its sub-directories left out.

    :returns: the specs without problems, then all problems and all notes in the order of files and lines.
    """
    if not directory.is_dir():
        return [], [Problem(directory, 1, "", "is no directory", NO_DIRECTORY)], []
    found = (p for p in directory.iterdir() if p.suffix in (".yaml", ".yml") and p.name != FOLDER_POLICY)
    return check_files(sorted(found))


def check_files(files: Iterable[Path]) -> tuple[list[AnyTableSpec], list[Problem], list[Note]]:
    """Check these files as one set; results as `check_tables`.

    :raises SpecError: a policy file cannot be used.
    """
    specs: list[AnyTableSpec] = []
    problems: list[Problem] = []
    notes: list[Note] = []
    policies = cache(policy_of)
    for file in files:
        check = FileCheck(file, policies(file.parent))
        spec = check.run()
        problems += check.problems
        notes += check.notes
        if spec is not None:
            specs.append(spec)
    clashes = [*_clashes(specs), *_torn_hybrids(specs)]
    clashing = {problem.file for problem in clashes}
    # `key` alone would mix None and text in `fix`.
    problems = sorted({*problems, *clashes}, key=lambda p: (p.file, p.line, p.key, p.reason))
    return [spec for spec in specs if spec.path not in clashing], problems, sorted(set(notes))


def _clashes(specs: list[AnyTableSpec]) -> Iterator[Problem]:
    """Two specs of one table, or of two tables whose assets would have one name."""
    by_asset: dict[str, list[AnyTableSpec]] = {}
    for spec in specs:
        by_asset.setdefault(spec.asset_name, []).append(spec)
    for same in by_asset.values():
        for spec in same[1:] and same:
            others = ", ".join(str(other.path) for other in same if other is not spec)
            yield Problem(spec.path, 1, "table.tableName", f"{spec.name} clashes with {others}", "rename one")


def _torn_hybrids(specs: list[AnyTableSpec]) -> Iterator[Problem]:
    """A hybrid table whose two halves want two schemas: Pinot has one of each name."""
    offline = {spec.name: spec for spec in specs if isinstance(spec, TableSpec)}
    for spec in specs:
        half = offline.get(spec.name)
        if half is None or half is spec:
            continue
        if canonical_json(spec.schema_json) != canonical_json(half.schema_json):
            reason = f"is not that of {half.path}, and both halves of a hybrid table have one"
            yield Problem(spec.path, 1, "schema", reason, "let both name the same schemaFile:")
