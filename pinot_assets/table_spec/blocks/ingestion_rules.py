"""Rules for keys of an ingestion block that must not be combined.

The text of each rule has its reason. Source: docs/tables.md#keys-of-fileingestion,
docs/design/session.md#segment-names and #modes-and-kinds-of-push; edge cases E2, E16 and E17.

The policy judges what a block reaches (variables, directories, endpoints, the queue);
`pinot_assets.source` judges it again when it opens a place.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pinot_assets.core.installation_policy import Policy, PolicyRefusal
from pinot_assets.errors import BuildError, SourceError, SpecError
from pinot_assets.ingest.contract.spark_formats import SPARK_LACKS
from pinot_assets.ingest.contract.sql_extra import INSTALL_SQL, lacks_pandas
from pinot_assets.segment.column.target import NEWEST
from pinot_assets.source import resolve_env
from pinot_assets.source.allowed_places import (
    refused_by_spark,
    refused_place,
    refused_queue,
    refused_variables,
)
from pinot_assets.source.settings import IN_NEED, KNOWN, incomplete_settings, unknown_settings
from pinot_assets.source.uris import Root, parse_root
from pinot_assets.table_spec.blocks.ingestion import (
    INPUT_PROP,
    OUTPUT_PROP,
    READER_PROP,
    SINGLE_CHARACTER,
    TRANSFORMS,
    FileIngestion,
)
from pinot_assets.table_spec.yaml.document import did_you_mean
from pinot_assets.table_spec.yaml.values import is_within, missing_variables, normalise_location

_REFRESH: Final = "write segmentIngestionType: REFRESH in table.ingestionConfig.batchIngestionConfig"
_KEPT: Final = "replacedSegmentsRetentionPeriod: 1d in table.segmentsConfig"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the rules need to know about the rest of the spec.

    :ivar base: the directory that relative paths start from.
    :ivar keeps_replaced: whether Pinot keeps for a while what a switch replaces: the table is REFRESH or says
        for how long, as every release after 1.5.1 reads it.
    :ivar has_transforms: whether the table has transformConfigs or a filterConfig.
    :ivar columns: names of the schema's columns.
    :ivar policy: what the spec may reach.
    """

    base: Path
    keeps_replaced: bool
    has_transforms: bool
    columns: frozenset[str]
    policy: Policy


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """A problem (with a fix, if one is known) or a note at one key."""

    key: str
    text: str
    fix: str | None = None
    is_note: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """A directory that the block names, with the settings that are needed to reach it."""

    key: str
    text: str
    family: str
    props: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Case:
    """One block as the rules judge it.

    :ivar spec: the block as values; broken keys hold defaults or stand-ins.
    :ivar around: the rest of the table spec.
    :ivar written: keys that the author wrote.
    :ivar broken: keys that have a problem already; no rule judges them.
    """

    spec: FileIngestion
    around: Surroundings
    written: frozenset[str]
    broken: Set[str]

    @property
    def places(self) -> tuple[_Place, _Place]:
        """The input directory and the staging area."""
        spec = self.spec
        return (
            _Place("inputDirURI", spec.input_dir_uri, INPUT_PROP, spec.input_props),
            _Place("output.segment.dir.uri", spec.staging_uri, OUTPUT_PROP, spec.output_props),
        )

    @property
    def sql_keys(self) -> list[str]:
        """The written keys that hold Spark SQL."""
        return [key for key in sorted(self.written) if key == "filter" or key.startswith(f"{TRANSFORMS}.")]

    @property
    def goes_through_spark(self) -> bool:
        """Whether the rows go through Spark SQL: expressions, and Pinot's transforms and filter, need it."""
        return bool(self.sql_keys) or self.spec.engine == "spark" or self.around.has_transforms

    @property
    def reads_by_spark(self) -> bool:
        """Whether Spark's own readers open the files. Those of formats that it lacks are read by ours."""
        return self.goes_through_spark and self.spec.input_format not in SPARK_LACKS

    def is_unknown(self, text: str) -> bool:
        """Whether the text refers to a variable that is not set here, or that the spec may not read."""
        return bool(missing_variables(text)) or any(refused_variables(text, self.around.policy))

    def location(self, text: str) -> str:
        """Return the normalised URI of a directory.

        :raises SourceError: the text is no usable directory.
        """
        return normalise_location(resolve_env(text, self.around.policy), self.around.base)

    def root(self, text: str) -> Root | None:
        """The directory; None if it is not known here, or if another rule reports that it is not usable."""
        try:
            return None if self.is_unknown(text) else parse_root(self.location(text))
        except SourceError:
            return None


def findings(case: Case) -> Iterator[RuleFinding]:
    """Yield all notes and problems of the keys together, and policy refusals; none of broken keys."""
    notes = [
        (RuleFinding(key, text, is_note=True), applies)
        for key, applies, text in (*_push_notes(case), *_other_notes(case))
    ]
    for finding, applies in (*notes, *_refusals(case)):
        if applies and case.broken.isdisjoint((finding.key, *_BESIDE.get(finding.key, ()))):
            yield finding
    for keys, check in _CHECKS:
        if case.broken.isdisjoint(keys):
            yield from check(case)
    for place in case.places:
        if place.key not in case.broken:
            yield from _refused_place(case, place)
    if case.spec.notification_queue is not None and _QUEUE not in case.broken:
        yield from _refused_queue(case, case.spec.notification_queue)


_QUEUE: Final = "notificationQueue"
_PLACES: Final = ("inputDirURI", "output.segment.dir.uri")
_STORES: Final = ("s3:", "s3a:", "s3n:", "gs:", "abfs:", "abfss:")
_IN_NEED: Final = [f"{family}.{name}" for family in (INPUT_PROP, OUTPUT_PROP) for name in IN_NEED]
_PUSH: Final = ("consistentPushEnabled", "consistentPushSwapEnabled", "enableAtomicUpload", "ingestionMode")
_BESIDE: Final = {
    **dict.fromkeys(("", "consistentPushEnabled", "enableAtomicUpload", "consistentPushMaxRetries"), _PUSH),
    "ingestionMode": ("consistentPushSwapEnabled",),
    "consistentPushSwapEnabled": ("ingestionMode",),
    "sensorRetries": ("consistentPushMaxRetries",),
    "scheduleTimezone": ("schedule",),
    "maxBadRows": ("onBadRow",),
    "badRowDaysToKeep": ("onBadRow",),
    "onBadRow": ("maxBadRows",),
    "sweepSeconds": (_QUEUE, "inputDirURI"),
    "onSpecChange": ("consistentPushSwapEnabled", "ingestionMode"),
    _QUEUE: ("sweepSeconds", "inputDirURI"),
}
"""Further keys that a rule of one line looks at; two rules of one key share them."""


def _push_notes(case: Case) -> Iterable[tuple[str, bool, str]]:
    """Return notes about the push: what is accepted but worth knowing (`enableAtomicUpload`: case E16)."""
    spec, kind = case.spec, case.spec.push_kind
    plain = (
        "a plain push: queries see each file when it is pushed, one after the other; "
        'consistentPushEnabled: "true" shows them all together'
    )
    again = "a run that failed starts over" if kind == "atomic" else "failed files are tried again"
    retries = f"has no effect without consistent push: {again} at the next trigger"
    further = "has no effect: consistent push includes it"
    of_sync = "has no effect in append mode: it is an option of ingestionMode: sync"
    swap = "has no effect: consistentPushSwapEnabled replaces the whole table"
    return (
        ("consistentPushEnabled" if "consistentPushEnabled" in case.written else "", kind == "plain", plain),
        ("enableAtomicUpload", spec.atomic_upload and kind == "consistent", further),
        ("enableAtomicUpload", spec.atomic_upload and kind == "plain", of_sync),
        ("consistentPushMaxRetries", spec.max_retries > 0 and kind != "consistent", retries),
        ("ingestionMode", spec.consistent_push_swap and "ingestionMode" in case.written, swap),
    )


def _other_notes(case: Case) -> Iterable[tuple[str, bool, str]]:
    spec, written = case.spec, case.written
    retries = "has no effect: the table has no retries (consistentPushMaxRetries)"
    clear = "is applied once; set it to false before it can be applied again"
    skip = "files that cannot be read are left out of what is published, until they change"
    lacks_avro = spec.input_format == "avro" and importlib.util.find_spec("datafusion") is None
    avro = (
        'needs pip install "pinot-assets[avro]" where Spark\'s executors run; it is missing on this machine'
    )
    limit_alone = spec.on_bad_row == "fail" and "maxBadRows" in written
    days_alone = spec.on_bad_row == "fail" and "badRowDaysToKeep" in written
    bad_rows = f"rows that cannot be read are put aside, up to {spec.max_bad_rows} of each file"
    sweep_alone = spec.notification_queue is None and "sweepSeconds" in written
    zone_alone = spec.schedule is None and "scheduleTimezone" in written
    written_of_swap = spec.mode == "swap" and "onSpecChange" in written
    too_new = tuple(int(step) for step in spec.known_target.split(".")[:2]) > NEWEST.number
    newest = (
        f"is newer than {NEWEST.release}, the newest release whose format is known here: segments are "
        f"written as for {NEWEST.release}"
    )
    return (
        ("sensorRetries", spec.sensor_retries and spec.retries == 0, retries),
        ("clearConsistentPushState", spec.clear_state, clear),
        ("skipFileIfFailToInitReader", spec.skip_unreadable, skip),
        ("scheduleTimezone", zone_alone, "has no effect without a schedule"),
        ("inputFormat", lacks_avro, avro),
        ("maxBadRows", limit_alone, "has no effect without onBadRow: quarantine"),
        ("badRowDaysToKeep", days_alone, "only counts for rows that earlier runs put aside"),
        ("onBadRow", spec.on_bad_row == "quarantine", bad_rows),
        ("sweepSeconds", sweep_alone, "has no effect without notificationQueue"),
        ("minServer" if spec.min_server else "writeFor", too_new, newest),
        ("onSpecChange", written_of_swap, "has no effect: a swap builds all files when the spec has changed"),
    )


def _refusals(case: Case) -> Iterator[tuple[RuleFinding, bool]]:
    spec = case.spec
    replacing = RuleFinding(
        "consistentPushSwapEnabled" if spec.mode == "swap" else "ingestionMode",
        f"{spec.mode} mode needs a REFRESH table: in other tables Pinot deletes at once what is "
        "replaced, so a revert would be impossible",
        f"{_REFRESH}, or, if every controller is newer than 1.5.1, {_KEPT}",
    )
    yield replacing, spec.mode != "append" and not case.around.keeps_replaced
    rebuilding = RuleFinding(
        "onSpecChange",
        "rebuild needs a REFRESH table: in other tables Pinot deletes at once what is replaced, so a revert "
        "would be impossible",
        f"write ask, or {_REFRESH}, or, if every controller is newer than 1.5.1, {_KEPT}",
    )
    rebuilds = spec.on_spec_change == "rebuild"
    yield rebuilding, rebuilds and spec.mode == "append" and not case.around.keeps_replaced
    yield RuleFinding("desiredSegmentSize", "is not above 0"), spec.desired_segment_bytes == 0
    twice = RuleFinding("minServer", "is the older name of writeFor, which is set, too", "remove minServer")
    yield twice, {"minServer", "writeFor"} <= case.written
    is_s3 = spec.input_dir_uri.lower().startswith(("s3:", "s3a:", "s3n:", "${"))
    of_s3 = RuleFinding(_QUEUE, "is only for buckets of S3: no other store sends to SQS", "remove it")
    yield of_s3, spec.notification_queue is not None and not is_s3


def _reader_settings_are_known(case: Case) -> Iterator[RuleFinding]:
    if not (keys := sorted(key for key in case.written if key.startswith(f"{READER_PROP}."))):
        return
    if case.spec.input_format != "csv":
        for key in keys:
            yield RuleFinding(key, f"has no effect with inputFormat {case.spec.input_format}", is_note=True)
        return
    # Imported here, because it loads Spark.
    from pinot_assets.ingest.contract.csv_settings import CsvSettings, twice

    try:
        header = CsvSettings.from_reader(case.spec.reader).header or ()
    except BuildError as error:
        named = f"{READER_PROP}.{error.what.partition(' ')[0]}"
        yield RuleFinding(named if named in keys else keys[0], str(error.what), error.hint)
        return
    # The readers would refuse each file because of this; Arrow's reader looks at the table's columns only.
    names = [name.strip() for name in header]
    looked_at = [name for name in names if case.reads_by_spark or name in case.around.columns]
    key = f"{READER_PROP}.header"
    if again := twice(looked_at):
        yield RuleFinding(key, f"names {', '.join(again)} twice", "give each column its own name")
    elif names and case.around.columns and not looked_at:
        fix = "write the schema's names, in the files' order"
        yield RuleFinding(key, "names none of the table's columns", fix)


def _sql_needs_spark(case: Case) -> Iterator[RuleFinding]:
    needs = case.sql_keys
    if case.spec.engine == "arrow" and "engine" in case.written:
        for key in needs:
            yield RuleFinding(key, "is Spark SQL, which engine: arrow cannot do", "write engine: spark")
        if case.around.has_transforms:
            text = "cannot compute the table's transformConfigs and filterConfig, which only Spark does"
            yield RuleFinding("engine", text, "write engine: spark, or remove engine")
    elif case.reads_by_spark:
        text = (
            "Spark reads the files: csv, json (one object a line), parquet and orc need nothing "
            "else, s3 needs hadoop-aws"
        )
        yield RuleFinding(needs[0] if needs else "engine", text, is_note=True)
    elif case.goes_through_spark:
        text = (
            f"the rows go through Spark SQL, except for small files whose transformConfigs only compute "
            f"with whole numbers; Spark has no reader of {case.spec.input_format}, so "
            "pinot-assets reads the files itself: no jar is needed, s3 included"
        )
        yield RuleFinding(needs[0] if needs else "engine", text, is_note=True)


def _sql_needs_pandas(case: Case) -> Iterator[RuleFinding]:
    """Yield a note, no problem: a run may start on another machine."""
    is_refused = case.spec.engine == "arrow" and "engine" in case.written
    if case.goes_through_spark and not is_refused and lacks_pandas():
        text = f"needs {INSTALL_SQL} where Spark's driver runs: pandas is missing on this machine"
        yield RuleFinding(case.sql_keys[0] if case.sql_keys else "engine", text, is_note=True)


def _spark_reads_disk_and_s3(case: Case) -> Iterator[RuleFinding]:
    location = case.spec.input_dir_uri
    if not case.reads_by_spark or case.is_unknown(location):
        return
    scheme = resolve_env(location, case.around.policy).partition(":")[0].lower()
    if scheme in ("gs", "abfs", "abfss"):
        yield RuleFinding(
            "inputDirURI",
            f"is on {scheme}, which Spark's own readers are not set up for: transforms, filter, "
            "engine: spark, and Pinot's transformConfigs and filterConfig need them",
            "put the files on s3 or a shared disk, or compute the columns before the files are delivered",
        )


def _staging_is_apart(case: Case) -> Iterator[RuleFinding]:
    locations = []
    for place in case.places:
        if case.is_unknown(place.text):
            continue  # a note or a refusal reports this, and a run checks the directories again
        try:
            locations.append(case.location(place.text))
        except SourceError as error:
            yield RuleFinding(place.key, error.why or error.what, error.hint)
    if len(locations) == 2:
        yield from _apart(*locations)


def _props_are_for_stores(case: Case) -> Iterator[RuleFinding]:
    for place in case.places:
        if "${" not in place.text and not place.text.lower().startswith(_STORES):
            for key in sorted(key for key in case.written if key.startswith(f"{place.family}.")):
                yield RuleFinding(key, "has no effect with a local directory", is_note=True)


def _props_are_those_of_the_store(case: Case) -> Iterator[RuleFinding]:
    """Yield settings that the store would refuse at each run. Broken parts are reported elsewhere."""
    for place in case.places:
        root = case.root(place.text)
        if root is None or root.scheme == "file":
            continue
        for name in unknown_settings(root.scheme, place.props):
            known = KNOWN[root.scheme]
            fix = did_you_mean(name, known) or f"those are {', '.join(known)}"
            yield RuleFinding(f"{place.family}.{name}", f"is not a setting of {root.scheme}", fix)
        for name, lacking in incomplete_settings(root.scheme, place.props):
            if case.broken.isdisjoint(_IN_NEED):
                keys = " and ".join(f"{place.family}.{other}" for other in lacking)
                fix = f"write {keys} as well, or remove all of them"
                yield RuleFinding(
                    f"{place.family}.{name}", f"has no effect without {' and '.join(lacking)}", fix
                )


def _local_input_is_there(case: Case) -> Iterator[RuleFinding]:
    """Yield a note, no problem: it may be mounted later, or only elsewhere. A run fails without it."""
    root = case.root(case.spec.input_dir_uri)
    if root is None or root.scheme != "file" or case.around.policy.refuses_data(root.path):
        return
    if not os.path.isdir(root.path):
        text = "is not a folder on this machine, and a run fails until it is one"
        if not os.path.lexists(root.path):
            text = "does not exist on this machine, and a run fails until it does"
        yield RuleFinding("inputDirURI", f"{root.path} {text}", is_note=True)


_CHECKS: Final[tuple[tuple[tuple[str, ...], Callable[[Case], Iterator[RuleFinding]]], ...]] = (
    (("inputFormat", *(f"{READER_PROP}.{name}" for name in SINGLE_CHARACTER)), _reader_settings_are_known),
    (("engine", "filter"), _sql_needs_spark),
    (("engine", "filter"), _sql_needs_pandas),
    (("inputDirURI", "engine", "filter"), _spark_reads_disk_and_s3),
    (_PLACES, _staging_is_apart),
    (_PLACES, _props_are_for_stores),
    (_PLACES, _props_are_those_of_the_store),
    (("inputDirURI",), _local_input_is_there),
)
"""Rules with several steps, each with the keys that it looks at."""


def check_apart(input_uri: str, staging_uri: str) -> None:
    """Refuse two directories of which one lies inside the other.

    :param input_uri: normalised.
    :param staging_uri: normalised.
    :raises SpecError: one lies inside the other.
    """
    for finding in _apart(input_uri, staging_uri):
        raise SpecError(f"{finding.key} {finding.text}", hint=finding.fix)


def _apart(input_uri: str, staging_uri: str) -> Iterator[RuleFinding]:
    if is_within(staging_uri, input_uri):
        text = "is inside inputDirURI, so its objects would be read as input"
    elif is_within(input_uri, staging_uri):
        text = "contains inputDirURI, and a run may delete what is in the staging area"
    else:
        return
    yield RuleFinding("output.segment.dir.uri", text, "name a directory of its own")


def _refused_place(case: Case, place: _Place) -> Iterator[RuleFinding]:
    policy = case.around.policy
    refused = [_finding(place.key, refusal) for refusal in refused_variables(place.text, policy)]
    yield from refused
    root = None if refused else case.root(place.text)
    if root is None:  # the place is not known here, but the variables of its settings are
        for name, value in place.props.items():
            for refusal in refused_variables(value, policy):
                yield _finding(f"{place.family}.{name}", refusal)
        return
    of_place = [*refused_place(root, place.props, policy)]
    for name, refusal in of_place:
        yield _finding(f"{place.family}.{name}" if name else place.key, refusal)
    if place.family == INPUT_PROP and not of_place and case.reads_by_spark:
        yield from (_finding(place.key, refusal) for refusal in refused_by_spark(root, place.props, policy))


def _refused_queue(case: Case, url: str) -> Iterator[RuleFinding]:
    policy = case.around.policy
    yield from (_finding(_QUEUE, refusal) for refusal in refused_variables(url, policy))
    try:
        resolved = resolve_env(url, policy)
    except SourceError:
        return
    yield from (_finding(_QUEUE, one) for one in refused_queue(resolved, case.spec.input_props, policy))


def _finding(key: str, refusal: PolicyRefusal) -> RuleFinding:
    return RuleFinding(key, refusal.reason, refusal.fix)
