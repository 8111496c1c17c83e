"""Find the settings of an ingestion, in a table config or a job's spec, and decide what becomes of each.

Sources: StarTree's FileIngestionTask (`task.taskTypeConfigsMap`), upstream's
`SegmentGenerationAndPushTaskGenerator` (one task per entry of `batchIngestionConfig.batchConfigMaps`), and
`SegmentGenerationJobSpec`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.errors import SpecError

FILE_INGESTION: Final = "FileIngestionTask"
GENERATION: Final = "SegmentGenerationAndPushTask"


class Disposition(StrEnum):
    """What the import does with a setting."""

    CARRIED = "carried"
    CHANGED = "changed"
    DROPPED = "dropped"
    ADDED = "added"
    TO_DO = "to do"
    """The person who imports has to do it."""


@dataclass(frozen=True, slots=True)
class ImportNote:
    """One line about a setting; it never shows a value that may be a secret.

    :ivar key: where the setting was found, or where it is now if it was added.
    """

    fate: Disposition
    key: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.fate} {self.key}" + (f": {self.why}" if self.why else "")


dropped: Final = partial(ImportNote, Disposition.DROPPED)
"""Makes the note of a setting that is left out, from its key and the reason."""


def each_once(notes: Sequence[ImportNote]) -> list[ImportNote]:
    """Leave out the notes of carried settings that were also changed, or that are still to do."""
    changed = {note.key for note in notes if note.fate in (Disposition.CHANGED, Disposition.TO_DO)}
    return [note for note in notes if note.fate is not Disposition.CARRIED or note.key not in changed]


@dataclass(frozen=True, slots=True)
class FoundSettings:
    """An ingestion as another way of ingestion configures it.

    :ivar kind: its name, for people.
    :ivar settings: its flat keys.
    :ivar table: the table config without this ingestion.
    """

    kind: str
    settings: JsonObject
    table: JsonObject


def table_and_schema(document: object, notes: list[ImportNote]) -> tuple[JsonObject, JsonObject | None]:
    """Return the OFFLINE table config, and the schema if the document has one.

    :param notes: gets a line for everything else in the document.

    :param document: a table config, the controller's `{"OFFLINE": …}`, or its `TableConfigs`.
    :raises SpecError: the document is none of these.
    """
    if not isinstance(document, dict):
        raise SpecError("the file contains no table config", why="it is not a JSON object")
    for key in ("OFFLINE", "offline"):
        if isinstance(document.get(key), dict):
            schema = document.get("schema")
            for other in sorted(other for other in document.keys() - _OF_TABLES if document[other]):
                why = "a REALTIME table has a spec of its own" if other.upper() == "REALTIME" else _NOT_TAKEN
                notes.append(dropped(other, why))
            return document[key], schema if isinstance(schema, dict) else None
    if "tableName" not in document:
        raise SpecError("the file contains no OFFLINE table config", why="it has no tableName")
    return document, None


_OF_TABLES: Final = frozenset(("OFFLINE", "offline", "schema", "tableName"))
_NOT_TAKEN: Final = "only the OFFLINE table config and its schema are imported"


def in_table(config: JsonMapping, notes: list[ImportNote]) -> FoundSettings:
    """Return the ingestion of a table config.

    :param notes: gets a line for each setting that is left out.
    :raises SpecError: the table config has no ingestion.
    """
    table, task, generation, maps = _taken_out(config)
    if isinstance(task, dict):
        others = (("batchConfigMaps", maps), (GENERATION, generation))
        notes += [dropped(key, f"only {FILE_INGESTION} is imported") for key, other in others if other]
        return FoundSettings(FILE_INGESTION, task, table)
    if not maps:
        raise SpecError(
            "the table config has no ingestion to import",
            why=f"it has neither {FILE_INGESTION} nor batchConfigMaps of {GENERATION}",
            hint="name the job's spec with --job-spec, or write the spec with `pinot-assets init`",
        )
    for number in range(1, len(maps)):
        notes.append(
            dropped(
                f"batchConfigMaps[{number}]",
                "a table has one directory: write another table spec for this one",
            )
        )
    of_task = _mapping(generation)
    settings = maps[0] | {key: value for key, value in of_task.items() if key == "schedule"}
    for key in sorted(of_task.keys() - {"schedule"}):
        notes.append(dropped(f"{GENERATION}.{key}", "it configures tasks of Minions, and here Spark builds"))
    return FoundSettings(GENERATION, settings, table)


def in_job(job: object, config: JsonMapping, notes: list[ImportNote]) -> FoundSettings:
    """Return the ingestion of a job spec (`LaunchDataIngestionJob`), for a table.

    :raises SpecError: it is no job spec.
    """
    if not isinstance(job, dict) or "inputDirURI" not in job:
        raise SpecError("the file contains no spec of an ingestion job", why="it has no inputDirURI")
    settings: JsonObject = {key: job[key] for key in _AS_IT_IS if job.get(key) is not None}
    reader = _mapping(job.get("recordReaderSpec"))
    if "dataFormat" in reader:
        settings["inputFormat"] = reader["dataFormat"]
    settings |= {f"recordReader.prop.{key}": value for key, value in _mapping(reader.get("configs")).items()}
    settings |= _file_system(str(job["inputDirURI"]), job.get("pinotFSSpecs") or [], notes)
    push = _mapping(job.get("pushJobSpec"))
    settings |= {"push.mode": push["pushMode"]} if "pushMode" in push else {}
    for key in sorted(job.keys() - _LOOKED_AT):
        notes.append(dropped(key, _OF_JOBS.get(key, "it belongs to the job, which does not run any more")))
    for key, used in (("recordReaderSpec", {"dataFormat", "configs"}), ("pushJobSpec", {"pushMode"})):
        notes += _unused(key, job.get(key), used)
    table, *others = _taken_out(config)
    for key, other in zip((FILE_INGESTION, GENERATION, "batchConfigMaps"), others, strict=True):
        if other:
            notes.append(dropped(key, "the job's spec is imported, and a table has only one ingestion"))
    return FoundSettings("LaunchDataIngestionJob", settings, table)


def _file_system(location: str, specs: object, notes: list[ImportNote]) -> JsonObject:
    """Return `input.fs.prop.*` from the spec for the files' scheme, and note the other specs."""
    settings: JsonObject = {}
    store = _store_of(location.partition("://")[0] if "://" in location else "file")
    for number, spec in enumerate(specs if isinstance(specs, list) else [specs]):
        key = f"pinotFSSpecs[{number}]"
        if not isinstance(spec, dict) or _store_of(str(spec.get("scheme"))) != store or settings:
            notes.append(
                dropped(key, f"only one spec is imported, the one of the files' own scheme: {store}")
            )
            continue
        settings = {f"input.fs.prop.{name}": value for name, value in _mapping(spec.get("configs")).items()}
        notes += _unused(key, spec, {"scheme", "configs"})
    return settings


def _store_of(scheme: str) -> str:
    """Return the first name of a kind of store: `s3` for `s3a`."""
    return next((names[0] for names in _STORES if scheme.lower() in names), scheme.lower())


_STORES: Final = (("s3", "s3a", "s3n"), ("abfss", "abfs", "adl2"))


def _unused(key: str, value: object, used: Set[str]) -> Iterator[ImportNote]:
    """Yield a note for each key of a part of the job that the import does not use."""
    if value is not None and not isinstance(value, dict):
        yield dropped(key, "it is not an object")
    for name in sorted(_mapping(value).keys() - used):
        yield dropped(f"{key}.{name}", _OF_JOBS[key.partition("[")[0]])
    if "configs" in used and not isinstance(_mapping(value).get("configs") or {}, dict):
        yield dropped(f"{key}.configs", "it is not an object")


_AS_IT_IS: Final = ("inputDirURI", "includeFileNamePattern", "excludeFileNamePattern")
_LOOKED_AT: Final = frozenset((*_AS_IT_IS, "recordReaderSpec", "pinotFSSpecs", "pushJobSpec"))
_OF_JOBS: Final = {
    "executionFrameworkSpec": "Spark is configured by the environment, see docs/deploy.md",
    "jobType": "a run builds, pushes and switches",
    "outputDirURI": "segments are staged in a staging area",
    "pinotClusterSpecs": "PINOT_CONTROLLER_URL says which Pinot",
    "pinotFSSpecs": "the scheme of the URI chooses the store",
    "pushJobSpec": "a run chooses the size of a push and repeats it if needed",
    "recordReaderSpec": "the format chooses the reader",
    "searchRecursively": "directories are always searched; see includeFileNamePattern",
    "segmentNameGeneratorSpec": "the session names its segments",
    "tableSpec": "table config and schema are in the spec itself",
}


def _taken_out(config: JsonMapping) -> tuple[JsonObject, object, object, list[JsonObject]]:
    """Return the table config without its ingestion, both tasks, and the maps of the second task.

    If they stayed in the config, the controller would continue to push the same files.
    """
    table = copy.deepcopy(dict(config))
    tasks = _mapping(_mapping(table.get("task")).get("taskTypeConfigsMap"))
    batch = _mapping(_mapping(table.get("ingestionConfig")).get("batchIngestionConfig"))
    entries = batch.pop("batchConfigMaps", None)
    maps = [entry for entry in (entries if isinstance(entries, list) else ()) if isinstance(entry, dict)]
    task, generation = tasks.pop(FILE_INGESTION, None), tasks.pop(GENERATION, None)
    if not tasks:
        table.pop("task", None)
    return table, task, generation, maps


def _mapping(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}
