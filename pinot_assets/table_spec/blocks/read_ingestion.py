"""Read the `fileIngestion` block into a `FileIngestion`, and find everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pydantic import ValidationError

from pinot_assets.table_spec.blocks.ingestion import (
    FAMILIES,
    KNOWN_KEYS,
    UNUSED_KEYS,
    FileIngestion,
    family_of,
    model_input,
    reader_problem,
    text_problem,
)
from pinot_assets.table_spec.blocks.ingestion_rules import Case, Surroundings, findings
from pinot_assets.table_spec.yaml.document import DocumentNode, KeyPath, Note, Problem, nearest
from pinot_assets.table_spec.yaml.values import missing_variables, reason_of

_REQUIRED: Final = {
    "inputDirURI": (
        "/unknown-input",
        "write the directory of the files, e.g. inputDirURI: s3://bucket/flights",
    ),
    "inputFormat": ("csv", "write inputFormat: csv, json or parquet"),
    "output.segment.dir.uri": (
        "/unknown-staging",
        "write a directory for built segments, e.g. output.segment.dir.uri: s3://bucket/staging/flights",
    ),
}
"""Required key → a stand-in, with which the rules can still judge the other keys, and the fix to show."""

_OF_LAYOUT: Final = ("layout", "provenanceColumn", "pack", "targetSegmentSize", "waitFor")
_NAME_GENERATOR: Final = "segmentNameGenerator."
_OWN_NAME_GENERATORS: Final = ("fixed", "inputfile")


def read_block(
    block: DocumentNode, refused: Collection[KeyPath], surroundings: Surroundings
) -> tuple[FileIngestion | None, list[Problem], list[Note]]:
    """Read one ingestion block.

    :param block: the mapping, at either of its two places.
    :param refused: paths whose values were refused as secrets and are left out.
    :param surroundings: what the rules need to know about the rest of the spec.
    :returns: the ingestion (None where there are problems), the problems and the notes.
    """
    if not isinstance(block.value, dict):
        return None, [block.problem("is not a mapping", "write its keys below it, indented")], []
    reading = _BlockReading(block)
    for key in block.value:
        if block.at(key).path in refused:
            reading.broken.add(key)
        else:
            reading.take(key)
    ingestion = reading.validate()
    reading.apply_rules(ingestion, surroundings)
    return (None if reading.problems or refused else ingestion), reading.problems, reading.notes


class _BlockReading:
    """One block while it is read: the valid texts so far, and the findings."""

    def __init__(self, block: DocumentNode) -> None:
        self.block = block
        self.texts: dict[str, str] = {}
        self.broken: set[str] = set()
        self.problems: list[Problem] = []
        self.notes: list[Note] = []

    def take(self, key: str) -> None:
        """Read one key: it has a meaning, is accepted without effect, or is unknown."""
        place = self.block.at(key)
        text = place.text()
        if key.partition(".")[0] in _OF_LAYOUT:
            name = key.removeprefix("layout.")
            block = "the block `layout`" if name == "layout" else f"`layout: {{{name}: …}}`"
            elsewhere = f"write {block} beside the ingestion block, not in it"
            self._refuse(key, "does not belong here", elsewhere)
        elif isinstance(self.block.mapping[key], dict | list):
            nested = [family for family in FAMILIES if family == key or family.startswith(f"{key}.")]
            fix = f"write flat keys, {nested[0]}.<name>: …" if nested else None
            self._refuse(key, "contains more than a single value", fix)
        elif text is None:
            self._refuse(key, "has no value", "write a value or remove the key")
        elif key in KNOWN_KEYS or family_of(key) is not None:
            if problem := text_problem(key, text):
                self._refuse(key, *problem)
            else:
                self.texts[key] = text
        elif f"{key}.".startswith(_NAME_GENERATOR) and text.replace("_", "").lower() in _OWN_NAME_GENERATORS:
            reason = (
                "would give two versions of a file the same segment name, which makes an atomic "
                "switch impossible"
            )
            self._refuse(key, reason, "remove it; the session names its segments")
        elif key in UNUSED_KEYS or f"{key}.".startswith(_NAME_GENERATOR):
            why = UNUSED_KEYS.get(key, UNUSED_KEYS["segmentNameGenerator.type"])
            self.notes.append(place.note(f"has no effect here: {why}"))
        else:
            meant = nearest(key, (*KNOWN_KEYS, *UNUSED_KEYS, *FAMILIES))
            self._refuse(key, "is not a key of FileIngestionTask", meant and f"did you mean {meant}?")
            if meant is not None and meant not in self.block.mapping:
                self.broken.add(meant)  # a misspelled key is one problem, and not missing, too

    def validate(self) -> FileIngestion:
        """Build the model; broken keys are left out, required ones replaced by stand-ins."""
        for key, (_, fix) in _REQUIRED.items():
            if key not in self.texts and key not in self.broken:
                self.broken.add(key)
                self.problems.append(self.block.problem(f"{key} is missing", fix))
        input_format = self.texts.get("inputFormat", "csv").strip().lower()
        for key, text in list(self.texts.items()):
            if reason := reader_problem(key, text, input_format):
                self._refuse(key, reason)
        try:
            return self._model()
        except ValidationError as invalid:
            for error in invalid.errors(include_input=False, include_url=False):
                self._refuse(".".join(map(str, error["loc"])), reason_of(error))
        return self._model()

    def _model(self) -> FileIngestion:
        stand_ins = {key: stand_in for key, (stand_in, _) in _REQUIRED.items()}
        return FileIngestion.model_validate(stand_ins | model_input(self.texts))

    def apply_rules(self, ingestion: FileIngestion, surroundings: Surroundings) -> None:
        """Judge the keys together, without the broken ones, and note variables that are not set here."""
        for finding in findings(Case(ingestion, surroundings, frozenset(self.texts), self.broken)):
            place = self.block.at(finding.key) if finding.key in self.block.mapping else self.block
            if finding.is_note:
                self.notes.append(place.note(finding.text))
            else:
                self.problems.append(place.problem(finding.text, finding.fix))
        for key, text in self.texts.items():
            for name in missing_variables(text):
                self.notes.append(self.block.at(key).note(f"the environment variable {name} is not set here"))

    def _refuse(self, key: str, reason: str, fix: str | None = None) -> None:
        self.broken.add(key)
        self.texts.pop(key, None)
        self.problems.append(self.block.at(key).problem(reason, fix))
