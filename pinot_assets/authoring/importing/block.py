"""Turn the settings of another ingestion into a `fileIngestion` block, key by key, and into a table spec with
comments.

References to the environment replace secrets; their values are written nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from functools import partial
from typing import Final

from pinot_assets.authoring.importing.relative_path import is_relative
from pinot_assets.authoring.importing.settings_found import (
    FILE_INGESTION,
    Disposition,
    FoundSettings,
    ImportNote,
    dropped,
)
from pinot_assets.core.json_object import JsonMapping, JsonObject, JsonValue
from pinot_assets.pinot.table_config import is_refresh
from pinot_assets.source.settings import is_reference
from pinot_assets.table_spec.blocks.ingestion import KNOWN_KEYS, UNUSED_KEYS, family_of
from pinot_assets.table_spec.yaml.values import is_secret_key, is_secret_value, variable_for
from pinot_assets.table_spec.yaml.writer import dumped


class Secrets:
    """The secrets of one spec. Different values never share a variable; equal values of one kind do.

    :param notes: gets a line for each secret.
    :param taken: variables that the config refers to already; their values are not known here.
    :ivar variables: the variables to set, in the order in which the secrets were found.
    """

    def __init__(self, notes: list[ImportNote], taken: Set[str] = frozenset()) -> None:
        self._notes = notes
        self._taken = taken
        self._values: dict[str, str] = {}

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables that must be set."""
        return tuple(self._values)

    def taken_out(self, value: JsonValue, path: str = "", key: str = "") -> JsonValue:
        """Return the JSON value with references in place of literal secrets, and note each of them.

        :param path: path of the value, for people.
        :param key: the key of the value.
        """
        if isinstance(value, dict):
            return {
                name: self.taken_out(inner, f"{path}.{name}" if path else name, name)
                for name, inner in value.items()
            }
        if isinstance(value, list):
            return [self.taken_out(inner, f"{path}[{n}]", key) for n, inner in enumerate(value)]
        if not isinstance(value, str) or not value or is_reference(value):
            return value
        if not is_secret_key(key) and not is_secret_value(value):
            return value
        name = self._variable(variable_for(key) if key else "SECRET", value)
        why = f"a secret is never written; set it in the environment as {name}"
        self._notes.append(ImportNote(Disposition.CHANGED, path, why))
        return f"${{{name}}}"

    def _variable(self, preferred: str, value: str) -> str:
        name, number = preferred, 1
        while name in self._taken or self._values.setdefault(name, value) != value:
            number += 1
            name = f"{preferred}_{number}"
        return name


added: Final = partial(ImportNote, Disposition.ADDED)

STAGING: Final = "output.segment.dir.uri"
SWAP: Final = "consistentPushSwapEnabled"
_ROOT: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:(?://[^/]*)?)?")
"""The part of a location before the path."""
_REFERENCE: Final = re.compile(r"\$\{[^}]*\}/*")
_RELATIVE: Final = (
    "the path is relative: Pinot counts it from the folder in which its process started, and a "
    "table spec from its own folder. Write the absolute path, or import a job's spec from the folder "
    "where the job is started"
)
_ROWS_TWICE: Final = (
    "what is in the table stays, so after the first run the table has the rows of the same files "
    'twice. Make the table REFRESH and set this to "true" for that run, or begin with an empty '
    "table"
)
_FIRST_RUN: Final = (
    "for the first run only, which replaces what is in the table: without it the table would have "
    "every row twice. Remove it afterwards"
)
_NAMES: Final = ("segmentNameGenerator", "segment.name.", "append.uuid", "exclude.")
_INSTEAD: Final = {
    "outputDirURI": f"segments are staged in {STAGING}, outside of Pinot's own data",
    "overwriteOutput": "a staged segment is never overwritten",
    "push.attempts": "the push repeats every request that may be repeated",
    "push.parallelism": "the push chooses its batches by what Pinot accepts",
    "push.retry.interval.millis": "the push repeats every request that may be repeated",
    "push.segmentUriPrefix": "servers download segments from the staging area",
    "push.segmentUriSuffix": "servers download segments from the staging area",
    "fail.on.empty.segment": "a file without rows makes no segment",
    "batchSegmentUpload": "segments are sent in batches if Pinot accepts them",
    "retryCount": "the session has its own, see `pinot-assets session show`",
    "state": "the session has its own, see `pinot-assets session show`",
    "tableConfigs": "it belongs to one run of a task",
    "tableConfigsURI": "it belongs to one run of a task",
    "schema": "it is written beside the table",
    "schemaURI": "the schema is written beside the table",
}


def block_of(ingestion: FoundSettings, notes: list[ImportNote], secrets: Secrets) -> JsonObject:
    """Return the `fileIngestion` block.

    :param notes: gets a line for each key.
    :param secrets: gets the secrets of the block.
    """
    block: JsonObject = {}
    for key, value in ingestion.settings.items():
        if (why := _no_use(key, value)) is not None:
            notes.append(dropped(key, why))
            continue
        block[key] = secrets.taken_out(value, key, key)
        notes.append(ImportNote(Disposition.CARRIED, key))
        if key == "inputDirURI" and is_relative(str(value)):
            notes.append(ImportNote(Disposition.TO_DO, key, _RELATIVE))
    if STAGING not in block and isinstance(location := block.get("inputDirURI"), str):
        block[STAGING], where = _staging(location)
        notes.append(added(STAGING, f"where segments are staged and snapshots are kept; {where}"))
    if ingestion.kind != FILE_INGESTION:
        block |= _consistent(ingestion.table, notes)
    return block | _first_run(ingestion.table, block, notes)


def _staging(location: str) -> tuple[str, str]:
    """Return a staging area beside the files, and what the user has to do about it."""
    of_environment, where = "${PINOT_ASSETS_STAGING}", "set it in the environment as PINOT_ASSETS_STAGING"
    if _REFERENCE.fullmatch(location):  # only the environment knows the folder: nothing can be beside it
        return of_environment, where
    # A bucket, a container, a disk: `s3://lake-pinot-staging` beside `s3://lake` may belong to anybody.
    if not _ROOT.sub("", location).strip("/."):
        return (
            of_environment,
            f"{location} is a whole bucket or disk, so no folder beside it is certain to be yours: {where}",
        )
    return f"{location.rstrip('/')}-pinot-staging", "choose another place if you like"


def _first_run(table: JsonMapping, block: JsonMapping, notes: list[ImportNote]) -> dict[str, str]:
    """Return a setting that replaces the table's present segments, which hold the same rows as ours."""
    if str(block.get(SWAP, "")).lower() == "true":
        return {}
    if not is_refresh(table):
        notes.append(ImportNote(Disposition.TO_DO, SWAP, _ROWS_TWICE))
        return {}
    notes.append(added(SWAP, _FIRST_RUN))
    return {SWAP: "true"}


def _consistent(table: JsonMapping, notes: list[ImportNote]) -> dict[str, str]:
    """Return settings that upstream's ingestion lacks: it shows each segment as soon as it is pushed."""
    mode, kind = ("sync", "REFRESH") if is_refresh(table) else ("append", "APPEND")
    notes += [
        added("consistentPushEnabled", "all files of a run become visible at one instant"),
        added("consistentPushMaxRetries", "a session that failed keeps what it built"),
        added("ingestionMode", f"{mode}, because the table is {kind}"),
    ]
    return {"consistentPushEnabled": "true", "consistentPushMaxRetries": "3", "ingestionMode": mode}


def _no_use(key: str, value: object) -> str | None:
    """Why a key is left out; None if it is carried."""
    if value is None or isinstance(value, dict | list):
        return "it is not a single value"
    if key == "push.mode" and str(value).upper() not in ("TAR", "METADATA"):
        return "a run chooses what works: TAR or METADATA"
    if key in KNOWN_KEYS or family_of(key) is not None:
        return None
    if key.startswith(_NAMES):
        return "the session names its segments"
    return _INSTEAD.get(key) or UNUSED_KEYS.get(key, "pinot-assets does not know it")


def imported_spec(
    origin: str, schema: JsonMapping, table: JsonMapping, block: JsonMapping, notes: Iterable[ImportNote]
) -> str:
    """Return the whole YAML.

    :param origin: what it was made from, for people.
    """
    lines = [f"# {_plain(str(note))}" for note in notes if note.fate is not Disposition.CARRIED]
    return "\n".join(
        [
            f"# Written by `pinot-assets tables import` from {_plain(origin)}.",
            *lines,
            dumped({"schema": dict(schema)}),
            dumped({"table": dict(table)}),
            dumped({"fileIngestion": dict(block)}),
        ]
    )


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
