"""`tables/*.yaml` in, table specs out, or everything that is wrong with all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from pinot_assets.errors import SpecError
from pinot_assets.pinot.table_config import has_transforms, is_refresh
from pinot_assets.spec.block import read_block
from pinot_assets.spec.dagster_block import DagsterSettings, read_dagster_block
from pinot_assets.spec.document import Document, Part, read_document
from pinot_assets.spec.literal_secret import secret_problems
from pinot_assets.spec.model import TableSpec
from pinot_assets.spec.pinot_json import (
    FILE_INGESTION_TASK,
    agreement_problems,
    raw_table_name,
    schema_problems,
    table_notes,
    table_problems,
    without_file_ingestion,
)
from pinot_assets.spec.problem import KeyPath, Note, Problem, did_you_mean
from pinot_assets.spec.rules import Surroundings
from pinot_assets.spec.writable import transform_problems, writer_findings

_BLOCK: Final = "fileIngestion"
_DAGSTER: Final = "dagster"
_FILE_FOR: Final = {"schema": "schemaFile", "table": "tableFile"}
_TOP_KEYS: Final = (*_FILE_FOR, *_FILE_FOR.values(), _BLOCK, _DAGSTER)
_NO_DIRECTORY: Final = "run this where tables/ lies, or name it with --tables or PINOT_ASSETS_TABLES"
_TASK_PATH: Final = ("task", "taskTypeConfigsMap", FILE_INGESTION_TASK)


class Tables(Mapping[str, TableSpec]):
    """The table specs of one directory by raw table name, in the order of their names."""

    def __init__(self, specs: Iterable[TableSpec]) -> None:
        self._by_name = {spec.name: spec for spec in sorted(specs, key=lambda spec: spec.name)}

    def __getitem__(self, name: str) -> TableSpec:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def choose(self, names: Iterable[str]) -> list[TableSpec]:
        """The specs of these names in their order; all of them where no name is given.

        :raises SpecError: there is no such table.
        """
        wanted = list(names) or list(self._by_name)
        for name in wanted:
            if name not in self._by_name:
                hint = did_you_mean(name, self._by_name) or f"there are: {', '.join(self._by_name) or 'none'}"
                raise SpecError(f"there is no table spec for {name}", hint=hint)
        return [self._by_name[name] for name in wanted]


def load_tables(directory: Path) -> Tables:
    """All table specs of a directory.

    :raises SpecError: anything is wrong with any of them; the text lists all of it.
    """
    specs, problems, _ = check_tables(directory)
    _raise_for(problems)
    return Tables(specs)


def load_table(file: Path) -> TableSpec:
    """One table spec.

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


def check_tables(directory: Path) -> tuple[list[TableSpec], list[Problem], list[Note]]:
    """Check all `*.yaml` and `*.yml` of a directory, its sub-directories left out.

    :returns: the specs without problems, then all problems and all notes in the order of files and lines.
    """
    if not directory.is_dir():
        return [], [Problem(directory, 1, "", "is no directory", _NO_DIRECTORY)], []
    return check_files(sorted(p for p in directory.iterdir() if p.suffix in (".yaml", ".yml")))


def check_files(files: Iterable[Path]) -> tuple[list[TableSpec], list[Problem], list[Note]]:
    """Check these files as one set; results as `check_tables`."""
    specs: list[TableSpec] = []
    problems: list[Problem] = []
    notes: list[Note] = []
    for file in files:
        check = _FileCheck(file)
        spec = check.run()
        problems += check.problems
        notes += check.notes
        if spec is not None:
            specs.append(spec)
    clashes = list(_clashes(specs))
    clashing = {problem.file for problem in clashes}
    # `key` alone would mix None and text in `fix`.
    problems = sorted({*problems, *clashes}, key=lambda p: (p.file, p.line, p.key, p.reason))
    return [spec for spec in specs if spec.path not in clashing], problems, sorted(set(notes))


def _clashes(specs: list[TableSpec]) -> Iterator[Problem]:
    """Two specs of one table, or of two tables whose assets would have one name."""
    by_asset: dict[str, list[TableSpec]] = {}
    for spec in specs:
        by_asset.setdefault(spec.asset_name, []).append(spec)
    for same in by_asset.values():
        for spec in same[1:] and same:
            others = ", ".join(str(other.path) for other in same if other is not spec)
            yield Problem(spec.path, 1, "table.tableName", f"{spec.name} clashes with {others}", "rename one")


class _FileCheck:
    """The check of one YAML file and the JSON files that it names."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.notes: list[Note] = []
        self._refused: set[KeyPath] = set()

    def run(self) -> TableSpec | None:
        """The spec, None where there are problems."""
        document = self._read(self.file)
        if document is None:
            return None
        root = Part(document, ())
        if not isinstance(root.value, dict):
            self.problems.append(root.problem("is no mapping", f"write {', '.join(_TOP_KEYS)}"))
            return None
        self._top_keys(root)
        schema, table = self._pinot_json(root, "schema"), self._pinot_json(root, "table")
        if schema is not None:
            self.problems += schema_problems(schema)
        if table is not None:
            self.problems += table_problems(table)
        are_mappings = all(part is not None and isinstance(part.value, dict) for part in (schema, table))
        if schema is None or table is None or not are_mappings:
            table_value = {}
        else:
            table_value = table.value
            self.problems += agreement_problems(schema, table)
            self.notes += table_notes(table)
        settings = DagsterSettings()
        if _DAGSTER in root.value:
            settings, found = read_dagster_block(root.at(_DAGSTER))
            self.problems += found
        block = self._block(root, table)
        if block is None:
            return None
        around = Surroundings(self.file.parent, is_refresh(table_value), has_transforms(table_value))
        ingestion, problems, notes = read_block(block, self._refused, around)
        self.problems += problems
        self.notes += notes
        if self.problems or schema is None or table is None or ingestion is None:
            return None
        self.problems += transform_problems(block, schema, ingestion.transforms)
        unwritable, left_to_server = writer_findings(schema, table, ingestion.min_server)
        self.problems += unwritable
        self.notes += left_to_server
        if self.problems:
            return None
        return TableSpec(
            name=raw_table_name(table_value["tableName"]),
            path=self.file,
            schema_json=schema.value,
            table_json=without_file_ingestion(table_value),
            ingestion=ingestion,
            dagster=settings,
            notes=tuple(self.notes),
        )

    def _read(self, file: Path) -> Document | None:
        document, problems = read_document(file)
        self.problems += problems
        if document is not None:
            found, refused = secret_problems(Part(document, ()))
            self.problems += found
            if file == self.file:
                self._refused |= refused
        return document

    def _top_keys(self, root: Part) -> None:
        for key in root.value:
            if key not in _TOP_KEYS:
                fix = did_you_mean(key, _TOP_KEYS) or f"the keys are {', '.join(_TOP_KEYS)}"
                self.problems.append(root.at(key).problem("is not a key of a table spec", fix))

    def _pinot_json(self, root: Part, key: str) -> Part | None:
        """The schema or the table config: written here, or in the file named."""
        file_key = _FILE_FOR[key]
        if key in root.value and file_key in root.value:
            self.problems.append(root.at(file_key).problem(f"stands beside {key}", "keep one of the two"))
        if key in root.value:
            return root.at(key)
        if file_key not in root.value:
            fix = f"write {key}: with the Pinot JSON below it, or {file_key}: <path>"
            self.problems.append(root.problem(f"{key} is missing", fix))
            return None
        name = root.value[file_key]
        if not isinstance(name, str) or not name or "\0" in name:
            self.problems.append(root.at(file_key).problem("is no path", "a path relative to this file"))
            return None
        other = self.file.parent / name
        if not other.is_file():
            self.problems.append(
                root.at(file_key).problem(f"{other} is no file", "a path relative to this file")
            )
            return None
        document = self._read(other)
        return None if document is None else Part(document, ())

    def _block(self, root: Part, table: Part | None) -> Part | None:
        """The ingestion block at either of its two places."""
        pasted = None
        if table is not None and _has(table.value, _TASK_PATH):
            pasted = table.at(*_TASK_PATH)
            self.notes.append(
                pasted.note("is left out of what is applied: open-source Pinot does not know this task type")
            )
        if _BLOCK not in root.value:
            if pasted is None:
                fix = f"write {_BLOCK}: with the FileIngestionTask keys below it"
                self.problems.append(root.problem(f"{_BLOCK} is missing", fix))
            return pasted
        if pasted is not None:
            reason = f"stands beside {_BLOCK}, and only one can hold"
            self.problems.append(pasted.problem(reason, "keep one of the two"))
        return root.at(_BLOCK)


def _has(value: object, steps: Iterable[str]) -> bool:
    for step in steps:
        if not isinstance(value, dict) or step not in value:
            return False
        value = value[step]
    return True
