"""What the keys of an ingestion block must not say together, one small rule each.

The reasons for the refusals stand in the rules. Source: docs/tables.md#keys-of-fileingestion,
docs/design/session.md#segment-names and #modes-and-kinds-of-push; edge cases E2, E16 and E17.

What a block reaches (variables, directories, endpoints, the queue) is judged by the policy;
`pinot_assets.source` asks the same questions again where a place is opened.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pinot_assets.core.policy import Policy, PolicyRefusal
from pinot_assets.errors import BuildError, SourceError, SpecError
from pinot_assets.source import resolve_env
from pinot_assets.source.policy import refused_by_spark, refused_place, refused_queue, refused_variables
from pinot_assets.source.settings.names import IN_NEED, KNOWN, incomplete_settings, unknown_settings
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
from pinot_assets.table_spec.yaml.environment import missing_variables
from pinot_assets.table_spec.yaml.values import is_within, normalise_location


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a rule may know of the rest of the spec.

    :ivar base: directory that relative paths start from.
    :ivar is_refresh: whether the table's segmentIngestionType is REFRESH.
    :ivar has_transforms: whether the table has transformConfigs or a filterConfig.
    :ivar columns: names of the schema's columns.
    :ivar policy: what the spec may reach.
    """

    base: Path
    is_refresh: bool
    has_transforms: bool
    columns: frozenset[str]
    policy: Policy


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """A problem (`fix` may be given) or a note at one key."""

    key: str
    text: str
    fix: str | None = None
    is_note: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """What a rule judges.

    :ivar spec: the block as values; broken keys hold defaults or stand-ins.
    :ivar around: the rest of the table spec.
    :ivar written: keys that the author wrote.
    """

    spec: FileIngestion
    around: Surroundings
    written: frozenset[str]


RuleCheck = Callable[[Case], Iterator[RuleFinding]]


@dataclass(frozen=True, slots=True)
class IngestionRule:
    """One check and the keys that it looks at."""

    keys: frozenset[str]
    check: RuleCheck


RULES: list[IngestionRule] = []


def _rule(*keys: str) -> Callable[[RuleCheck], RuleCheck]:
    def register(check: RuleCheck) -> RuleCheck:
        RULES.append(IngestionRule(frozenset(keys), check))
        return check

    return register


_PLACES: Final = ("inputDirURI", "output.segment.dir.uri")
_PUSH_KEYS = ("consistentPushEnabled", "consistentPushSwapEnabled", "enableAtomicUpload", "ingestionMode")


@_rule(*_PUSH_KEYS)
def _plain_shows_file_by_file(case: Case) -> Iterator[RuleFinding]:
    if case.spec.push_kind == "plain":
        key = "consistentPushEnabled" if "consistentPushEnabled" in case.written else ""
        text = (
            "a plain push: queries see each file as soon as it is pushed, one after the other;"
            ' consistentPushEnabled: "true" shows them all together'
        )
        yield RuleFinding(key, text, is_note=True)


@_rule(*_PUSH_KEYS)
def _atomic_upload_has_limits(case: Case) -> Iterator[RuleFinding]:
    """Edge case E16."""
    if not case.spec.atomic_upload or case.spec.push_kind == "atomic":
        return
    if case.spec.push_kind == "consistent":
        text = "has no effect: consistent push goes further"
    else:
        text = "has no effect in append mode: it is a switch of ingestionMode: sync"
    yield RuleFinding("enableAtomicUpload", text, is_note=True)


@_rule("consistentPushMaxRetries", *_PUSH_KEYS)
def _retries_need_a_session(case: Case) -> Iterator[RuleFinding]:
    if case.spec.max_retries and case.spec.push_kind != "consistent":
        again = (
            "a run that failed starts over"
            if case.spec.push_kind == "atomic"
            else "failed files are tried again"
        )
        text = f"has no effect without consistent push: {again} at the next trigger"
        yield RuleFinding("consistentPushMaxRetries", text, is_note=True)


@_rule("ingestionMode", "consistentPushSwapEnabled")
def _swap_wins(case: Case) -> Iterator[RuleFinding]:
    if case.spec.consistent_push_swap and "ingestionMode" in case.written:
        yield RuleFinding(
            "ingestionMode", "has no effect: consistentPushSwapEnabled replaces the whole table", is_note=True
        )


@_rule("ingestionMode", "consistentPushSwapEnabled")
def _replacing_needs_refresh(case: Case) -> Iterator[RuleFinding]:
    if case.spec.mode != "append" and not case.around.is_refresh:
        yield RuleFinding(
            "consistentPushSwapEnabled" if case.spec.mode == "swap" else "ingestionMode",
            f"{case.spec.mode} mode needs a REFRESH table: elsewhere Pinot deletes what is replaced at once,"
            " and there would be no way back",
            "write segmentIngestionType: REFRESH in table.ingestionConfig.batchIngestionConfig",
        )


@_rule("sensorRetries", "consistentPushMaxRetries")
def _sensor_retries_need_retries(case: Case) -> Iterator[RuleFinding]:
    if case.spec.sensor_retries and case.spec.retries == 0:
        yield RuleFinding(
            "sensorRetries",
            "has no effect: the table has no retries (consistentPushMaxRetries)",
            is_note=True,
        )


@_rule("clearConsistentPushState")
def _clear_is_an_edge(case: Case) -> Iterator[RuleFinding]:
    if case.spec.clear_state:
        yield RuleFinding(
            "clearConsistentPushState",
            "is applied once; set it to false before it can be applied again",
            is_note=True,
        )


@_rule("skipFileIfFailToInitReader")
def _skipping_is_explicit(case: Case) -> Iterator[RuleFinding]:
    if case.spec.skip_unreadable:
        text = "files that cannot be read are left out of what is published, until they change"
        yield RuleFinding("skipFileIfFailToInitReader", text, is_note=True)


@_rule("schedule", "scheduleTimezone")
def _timezone_needs_schedule(case: Case) -> Iterator[RuleFinding]:
    if case.spec.schedule is None and "scheduleTimezone" in case.written:
        yield RuleFinding("scheduleTimezone", "has no effect without a schedule", is_note=True)


@_rule("desiredSegmentSize")
def _size_is_above_nothing(case: Case) -> Iterator[RuleFinding]:
    if case.spec.desired_segment_bytes == 0:
        yield RuleFinding("desiredSegmentSize", "is not above 0")


@_rule("inputFormat")
def _avro_needs_its_extra(case: Case) -> Iterator[RuleFinding]:
    if case.spec.input_format == "avro" and importlib.util.find_spec("datafusion") is None:
        text = 'needs pip install "pinot-assets[avro]" where Spark\'s executors run; here it is missing'
        yield RuleFinding("inputFormat", text, is_note=True)


@_rule("onBadRow", "maxBadRows")
def _limit_needs_quarantine(case: Case) -> Iterator[RuleFinding]:
    if case.spec.on_bad_row == "fail" and "maxBadRows" in case.written:
        yield RuleFinding("maxBadRows", "has no effect without onBadRow: quarantine", is_note=True)
    if case.spec.on_bad_row == "quarantine":
        text = f"rows that cannot be read are put aside, up to {case.spec.max_bad_rows} of each file"
        yield RuleFinding("onBadRow", text, is_note=True)


@_rule("inputFormat", *(f"{READER_PROP}.{name}" for name in sorted(SINGLE_CHARACTER)))
def _reader_settings_are_known(case: Case) -> Iterator[RuleFinding]:
    keys = sorted(key for key in case.written if key.startswith(f"{READER_PROP}."))
    if not keys:
        return
    if case.spec.input_format != "csv":
        for key in keys:
            yield RuleFinding(key, f"has no use with inputFormat {case.spec.input_format}", is_note=True)
        return
    from pinot_assets.ingest.contract.csv_settings import CsvSettings  # here, since it brings Spark along

    try:
        settings = CsvSettings.from_reader(case.spec.reader)
    except BuildError as error:
        named = f"{READER_PROP}.{error.what.partition(' ')[0]}"
        yield RuleFinding(named if named in keys else keys[0], str(error.what), error.hint)
        return
    if settings.header is not None:
        yield from _header_names_columns(case, [name.strip() for name in settings.header])


def _header_names_columns(case: Case, names: list[str]) -> Iterator[RuleFinding]:
    """What the readers would refuse each file for: Arrow's look at the table's columns alone."""
    from pinot_assets.ingest.contract.csv_settings import twice  # here, since it brings Spark along

    by_spark = reads_by_spark(case)
    looked_at = [name for name in names if by_spark or name in case.around.columns]
    key = f"{READER_PROP}.header"
    if again := twice(looked_at):
        yield RuleFinding(key, f"names {', '.join(again)} twice", "give each column a name of its own")
    elif case.around.columns and not looked_at:
        yield RuleFinding(
            key, "names none of the table's columns", "write the schema's names, in the files' order"
        )


@_rule("engine", "filter")
def _sql_needs_spark(case: Case) -> Iterator[RuleFinding]:
    needs = _sql_keys(case)
    if case.spec.engine == "arrow" and "engine" in case.written:
        for key in needs:
            yield RuleFinding(key, "is Spark SQL, which engine: arrow cannot do", "write engine: spark")
        if case.around.has_transforms:
            text = "cannot do the transformConfigs and filterConfig of the table, which are Spark's work"
            yield RuleFinding("engine", text, "write engine: spark, or leave engine out")
    elif reads_by_spark(case):
        text = (
            "files are read by Spark: csv, json (one object a line), parquet and orc need nothing else,"
            " s3 needs hadoop-aws"
        )
        if case.spec.input_format == "avro":
            text = (
                "files are read by Spark, and the run fails unless spark-avro is on its class path: set"
                " spark.jars.packages to org.apache.spark:spark-avro_<Scala>:<Spark>; s3 needs hadoop-aws"
            )
        yield RuleFinding(needs[0] if needs else "engine", text, is_note=True)


@_rule("inputDirURI", "engine", "filter")
def _spark_reads_disk_and_s3(case: Case) -> Iterator[RuleFinding]:
    location = case.spec.input_dir_uri
    if not reads_by_spark(case) or _is_unknown(location, case):
        return
    scheme = resolve_env(location, case.around.policy).partition(":")[0].lower()
    if scheme in ("gs", "abfs", "abfss"):
        yield RuleFinding(
            "inputDirURI",
            f"lies on {scheme}, which Spark's own readers are not set up for: transforms, filter,"
            " engine: spark, and Pinot's transformConfigs and filterConfig need them",
            "put the files on s3 or a shared disk, or make the columns upstream",
        )


def _sql_keys(case: Case) -> list[str]:
    return [key for key in sorted(case.written) if key == "filter" or key.startswith(f"{TRANSFORMS}.")]


def reads_by_spark(case: Case) -> bool:
    """Whether Spark's own readers read the files, as SQL needs it."""
    return bool(_sql_keys(case)) or case.spec.engine == "spark" or case.around.has_transforms


@_rule(*_PLACES)
def _staging_is_apart(case: Case) -> Iterator[RuleFinding]:
    places = {}
    for key, text in (
        ("inputDirURI", case.spec.input_dir_uri),
        ("output.segment.dir.uri", case.spec.staging_uri),
    ):
        if _is_unknown(text, case):
            continue  # a note or a refusal says so, and whoever runs it looks again
        try:
            places[key] = normalise_location(resolve_env(text, case.around.policy), case.around.base)
        except SourceError as error:
            yield RuleFinding(key, error.why or error.what, error.hint)
    if len(places) == 2:
        yield from _apart(*places.values())


def _is_unknown(text: str, case: Case) -> bool:
    """Whether it refers to a variable that is not set here, or that the spec may not read."""
    return bool(missing_variables(text)) or any(refused_variables(text, case.around.policy))


_STORES: Final = ("s3:", "s3a:", "s3n:", "gs:", "abfs:", "abfss:")


@_rule(*_PLACES)
def _props_are_for_stores(case: Case) -> Iterator[RuleFinding]:
    locations = {INPUT_PROP: case.spec.input_dir_uri, OUTPUT_PROP: case.spec.staging_uri}
    for key in sorted(case.written):
        for family, location in locations.items():
            is_local = "${" not in location and not location.lower().startswith(_STORES)
            if key.startswith(f"{family}.") and is_local:
                yield RuleFinding(key, "has no use with a local directory", is_note=True)


@_rule(*_PLACES)
def _props_are_those_of_the_store(case: Case) -> Iterator[RuleFinding]:
    """Opening the place would refuse it at each run."""
    for family, scheme, props in _stores(case):
        for name in unknown_settings(scheme, props):
            fix = did_you_mean(name, KNOWN[scheme]) or f"those are {', '.join(KNOWN[scheme])}"
            yield RuleFinding(f"{family}.{name}", f"is no setting of {scheme}", fix)


@_rule(*_PLACES, *(f"{family}.{name}" for family in (INPUT_PROP, OUTPUT_PROP) for name in IN_NEED))
def _credentials_are_whole(case: Case) -> Iterator[RuleFinding]:
    """As above, of half a pair of keys. Of a part that is refused, another rule tells."""
    for family, scheme, props in _stores(case):
        for name, lacking in incomplete_settings(scheme, props):
            keys = " and ".join(f"{family}.{other}" for other in lacking)
            text = f"has no use without {' and '.join(lacking)}"
            yield RuleFinding(f"{family}.{name}", text, f"write {keys} as well, or leave all of them out")


def _stores(case: Case) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """The buckets that are known here: family of their settings, scheme, settings by name."""
    spec = case.spec
    for family, location, props in (
        (INPUT_PROP, spec.input_dir_uri, spec.input_props),
        (OUTPUT_PROP, spec.staging_uri, spec.output_props),
    ):
        root = None if _is_unknown(location, case) else _root_of(location, case)
        if root is not None and root.scheme != "file":
            yield family, root.scheme, props


def _root_of(location: str, case: Case) -> Root | None:
    """The place, None where another rule says that it is none."""
    try:
        return parse_root(normalise_location(resolve_env(location, case.around.policy), case.around.base))
    except SourceError:
        return None


@_rule("inputDirURI")
def _local_input_is_there(case: Case) -> Iterator[RuleFinding]:
    """No problem: it may be mounted later, or on the machines that read it alone. A run fails without it."""
    location = case.spec.input_dir_uri
    root = None if _is_unknown(location, case) else _root_of(location, case)
    if root is None or root.scheme != "file" or case.around.policy.refuses_data(root.path):
        return
    if not os.path.lexists(root.path):
        text = f"{root.path} does not exist on this machine, and a run fails until it does"
    elif not os.path.isdir(root.path):
        text = f"{root.path} is no folder on this machine, and a run fails until it is one"
    else:
        return
    yield RuleFinding("inputDirURI", text, is_note=True)


@_rule("notificationQueue", "sweepSeconds", "inputDirURI")
def _hints_are_of_s3(case: Case) -> Iterator[RuleFinding]:
    queue = case.spec.notification_queue
    if queue is None and "sweepSeconds" in case.written:
        yield RuleFinding("sweepSeconds", "has no effect without notificationQueue", is_note=True)
    if queue is not None and not case.spec.input_dir_uri.lower().startswith(("s3:", "s3a:", "s3n:", "${")):
        yield RuleFinding(
            "notificationQueue", "is for buckets of S3 alone: nobody else sends to SQS", "remove it"
        )


def check_apart(input_uri: str, staging_uri: str) -> None:
    """Make sure that neither directory lies in the other.

    :param input_uri: normalised.
    :param staging_uri: normalised.
    :raises SpecError: one does.
    """
    for finding in _apart(input_uri, staging_uri):
        raise SpecError(f"{finding.key} {finding.text}", hint=finding.fix)


def _apart(input_uri: str, staging_uri: str) -> Iterator[RuleFinding]:
    if is_within(staging_uri, input_uri):
        text = "lies inside inputDirURI, so its objects would be taken for input"
    elif is_within(input_uri, staging_uri):
        text = "contains inputDirURI, and what lies in the staging area may be deleted"
    else:
        return
    yield RuleFinding("output.segment.dir.uri", text, "name a directory of its own")


_QUEUE: Final = "notificationQueue"


def policy_findings(case: Case, broken: Collection[str]) -> Iterator[RuleFinding]:
    """Everything that the policy refuses of a block.

    :param broken: keys that something else is wrong with, which are not judged.
    """
    spec = case.spec
    yield from _of_place(case, broken, "inputDirURI", spec.input_dir_uri, INPUT_PROP, spec.input_props)
    yield from _of_place(
        case, broken, "output.segment.dir.uri", spec.staging_uri, OUTPUT_PROP, spec.output_props
    )
    if spec.notification_queue is not None and _QUEUE not in broken:
        yield from _of_queue(case.around.policy, spec.notification_queue, spec.input_props)


def _of_place(
    case: Case, broken: Collection[str], key: str, text: str, family: str, props: Mapping[str, str]
) -> Iterator[RuleFinding]:
    if key in broken:
        return
    policy = case.around.policy
    refused = [_finding(key, refusal) for refusal in refused_variables(text, policy)]
    yield from refused
    root = None if refused else _root(case, text)
    if root is None:  # where it lies is not known here; what the settings name is
        for name, value in props.items():
            for refusal in refused_variables(value, policy):
                yield _finding(f"{family}.{name}", refusal)
        return
    of_place = [*refused_place(root, props, policy)]
    for name, refusal in of_place:
        yield _finding(f"{family}.{name}" if name else key, refusal)
    if family == INPUT_PROP and not of_place and reads_by_spark(case):
        for refusal in refused_by_spark(root, props, policy):
            yield _finding(key, refusal)


def _of_queue(policy: Policy, url: str, props: Mapping[str, str]) -> Iterator[RuleFinding]:
    refused = [_finding(_QUEUE, refusal) for refusal in refused_variables(url, policy)]
    yield from refused
    try:
        resolved = resolve_env(url, policy)
    except SourceError:
        return
    for refusal in refused_queue(resolved, props, policy):
        yield _finding(_QUEUE, refusal)


def _root(case: Case, text: str) -> Root | None:
    try:
        return parse_root(normalise_location(resolve_env(text, case.around.policy), case.around.base))
    except SourceError:
        return None  # a variable is not set here, or the place is none, which another rule says


def _finding(key: str, refusal: PolicyRefusal) -> RuleFinding:
    return RuleFinding(key, refusal.reason, refusal.fix)
