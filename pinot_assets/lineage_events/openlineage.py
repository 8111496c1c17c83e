"""Turn receipts into OpenLineage run events: a session read these files and made that table.

A run of OpenLineage is a session, however many drivers worked on it. Its id is made from the session's id,
and its times are the stored ones. So the same session always gives the same events, and sending them twice
adds nothing. What OpenLineage has no facet for is in a facet of ours: see docs/guides/receipts.md.

Importing the OpenLineage client takes a while: import this module only where events are to be sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from urllib.parse import unquote, urlsplit

import attr
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    RunFacet,
    base_subset_dataset,
    data_quality_metrics_dataset,
    dataset_type_dataset,
    dataset_version_dataset,
    error_message_run,
    input_statistics_input_dataset,
    job_type_job,
    lifecycle_state_change_dataset,
    output_statistics_output_dataset,
    schema_dataset,
)
from openlineage.client.uuid import generate_static_uuid

from pinot_assets.core.json_object import JsonObject
from pinot_assets.session.values.state import Mode, Outcome, Session
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.provenance import snapshot_difference
from pinot_assets.snapshot.published_files import PublishedFile

MOST_FOLDERS = 100
"""Maximum of input datasets of an event: files in more folders are grouped by parent folders."""
MOST_LOCATIONS = 1000
"""Maximum of files that an event names; the statistics count all files."""

PRODUCER = "urn:pinot-assets"
SESSION_FACET = "pinotAssets_session"
SESSION_SCHEMA = "urn:pinot-assets:openlineage:session-run-facet:1"

_ENDS = {
    Outcome.PUBLISHED: RunState.COMPLETE,
    Outcome.NOOP: RunState.COMPLETE,
    Outcome.CLEARED: RunState.ABORT,
    Outcome.OPEN: RunState.RUNNING,
}


@dataclass(frozen=True, slots=True)
class DatasetPlace:
    """Names of a table and its columns for OpenLineage.

    :ivar namespace: of the jobs.
    :ivar pinot: namespace of the table: `pinot://<host>:<port>` of the controller.
    :ivar table: raw name.
    :ivar columns: name and type of each column of the table.
    :ivar read_as_is: whether the files have these columns too, as far as they are read.
    """

    namespace: str
    pinot: str
    table: str
    columns: Sequence[tuple[str, str]]
    read_as_is: bool


@attr.define
class SessionRunFacet(RunFacet):
    """The facet for what OpenLineage has no facet for. `session` is the session's id."""

    session: str
    mode: str
    outcome: str
    retryCount: int
    lineageEntry: str
    audit: str
    filesAdded: int | None = None
    filesRewritten: int | None = None
    filesRemoved: int | None = None
    wayBack: str | None = None

    @staticmethod
    def _get_schema() -> str:
        return SESSION_SCHEMA


def events(
    place: DatasetPlace, session: Session, snapshot: Snapshot | None, former: Snapshot | None
) -> Iterator[RunEvent]:
    """Yield two events of a session as it is now: its start, then its end or how far it is.

    :param snapshot: the snapshot that it published, None for none.
    :param former: the snapshot before that one, None if it is no longer kept.
    """
    name = f"{place.pinot}/{place.table}/{session.id}"
    begun = datetime.fromtimestamp(session.created_ms / 1000, UTC)
    facets: dict[str, RunFacet] = {SESSION_FACET: _session_facet(session, snapshot, former)}
    if session.last_error:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
            message=session.last_error, programmingLanguage="Python", producer=PRODUCER
        )
    run = Run(str(generate_static_uuid(begun, name.encode())), facets)
    yield RunEvent(
        eventTime=_time(session.created_ms),
        producer=PRODUCER,
        run=Run(run.runId),
        job=_job(place, session),
        eventType=RunState.START,
    )
    yield RunEvent(
        eventTime=_time(session.done_ms or session.attempt_started_ms or session.created_ms),
        producer=PRODUCER,
        run=run,
        job=_job(place, session),
        eventType=_ENDS.get(session.outcome, RunState.FAIL),
        inputs=list(inputs(place, session, snapshot)) if snapshot else [],
        outputs=[_output(place, session, snapshot)] if snapshot else [],
    )


def _job(place: DatasetPlace, session: Session) -> Job:
    job_type = job_type_job.JobTypeJobFacet(
        processingType="BATCH", integration="PINOT", jobType="SESSION", producer=PRODUCER
    )
    name = f"{place.table}.rollback" if session.mode is Mode.ROLLBACK else place.table
    return Job(place.namespace, name, {"jobType": job_type})


def _session_facet(session: Session, snapshot: Snapshot | None, former: Snapshot | None) -> SessionRunFacet:
    facet = SessionRunFacet(
        session=session.id,
        mode=session.mode.value,
        outcome=session.outcome.value or "OPEN",
        retryCount=session.retry_count,
        lineageEntry=session.lineage_entry_id,
        audit=session.audit.summary if session.audit else "",
        wayBack=str(snapshot.audit.get("way")) if snapshot and session.mode is Mode.ROLLBACK else None,
        producer=PRODUCER,
    )
    if snapshot is None or (former is None and snapshot.parent is not None):
        return facet
    changed = snapshot_difference(former or replace(snapshot, files=()), snapshot)
    return attr.evolve(
        facet,
        filesAdded=len(changed.added),
        filesRewritten=len(changed.rewritten),
        filesRemoved=len(changed.removed),
    )


# --- the files -------------------------------------------------------------------------------------


def inputs(place: DatasetPlace, session: Session, snapshot: Snapshot) -> Iterator[InputDataset]:
    """Yield one dataset for each folder of files that the session read."""
    read = [file for file in snapshot.files if file.session == session.id]
    folders = by_folder(read)
    named = max(1, MOST_LOCATIONS // max(1, len(folders)))
    for folder, files in sorted(folders.items()):
        namespace, name = dataset_of(folder)
        locations = sorted(file.uri for file in files)[:named]
        facets: JsonObject = {"version": _version(_versions(files)), "datasetType": _type("FILE")}
        if place.read_as_is:
            facets["schema"] = _schema(place)
        yield InputDataset(
            namespace,
            name,
            facets=facets,
            inputFacets={
                "inputStatistics": input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
                    rowCount=sum(file.rows + file.bad_rows for file in files),
                    size=sum(file.fingerprint.size for file in files),
                    fileCount=len(files),
                    producer=PRODUCER,
                ),
                "subset": base_subset_dataset.InputSubsetInputDatasetFacet(
                    inputCondition=base_subset_dataset.LocationSubsetCondition(locations=locations),
                    producer=PRODUCER,
                ),
            },
        )


def by_folder(files: Iterable[PublishedFile]) -> Mapping[str, Sequence[PublishedFile]]:
    """Group files by their folder's URI; while there are more than `MOST_FOLDERS`, the deepest move up."""
    folders: dict[str, list[PublishedFile]] = {}
    for file in files:
        folders.setdefault(file.uri.rpartition("/")[0], []).append(file)
    while len(folders) > MOST_FOLDERS:
        deepest = max(uri.count("/") for uri in folders)
        shorter: dict[str, list[PublishedFile]] = {}
        for folder, there in folders.items():
            up = folder.rpartition("/")[0] if folder.count("/") == deepest else folder
            shorter.setdefault(up, []).extend(there)
        folders = shorter
    return folders


def dataset_of(uri: str) -> tuple[str, str]:
    """Return OpenLineage's namespace and name of a folder: `s3://bucket` and `a/b`, or `file` and `/a/b`."""
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        return "file", unquote(parts.path) or "/"
    return f"{parts.scheme}://{parts.netloc}", unquote(parts.path).strip("/") or "/"


def _versions(files: Sequence[PublishedFile]) -> str:
    digest = hashlib.sha256()
    for uri, version in sorted((file.uri, file.version) for file in files):
        digest.update(f"{uri}\0{version}\n".encode())
    return digest.hexdigest()


# --- the table -------------------------------------------------------------------------------------


def _output(place: DatasetPlace, session: Session, snapshot: Snapshot) -> OutputDataset:
    of_files = (one.outputs for one in snapshot.files if one.session == session.id)
    of_packs = (one.outputs for one in snapshot.packs if one.session == session.id)
    written = [*chain.from_iterable(chain(of_files, of_packs))]
    segments = snapshot.segments.values()
    facets: JsonObject = {
        "schema": _schema(place),
        "datasetType": _type("TABLE"),
        "version": _version(snapshot.session),
        "dataQualityMetrics": data_quality_metrics_dataset.DataQualityMetricsDatasetFacet(
            columnMetrics={},
            rowCount=snapshot.rows,
            bytes=sum(output.tar_bytes for output in segments),
            fileCount=len(segments),
            lastUpdated=_time(snapshot.published_ms),
            producer=PRODUCER,
        ),
    }
    if (change := _change(session, snapshot)) is not None:
        facets["lifecycleStateChange"] = lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet(
            lifecycleStateChange=change, producer=PRODUCER
        )
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=sum(output.rows for output in written),
        size=sum(output.tar_bytes for output in written),
        fileCount=len(written),
        producer=PRODUCER,
    )
    return OutputDataset(
        place.pinot, place.table, facets=facets, outputFacets={"outputStatistics": statistics}
    )


def _change(
    session: Session, snapshot: Snapshot
) -> lifecycle_state_change_dataset.LifecycleStateChange | None:
    """Return how the session changed the table as a whole; None where it only grew or parts were replaced."""
    changes = lifecycle_state_change_dataset.LifecycleStateChange
    if session.outcome is Outcome.NOOP:
        return None
    if not snapshot.segments:
        return changes.TRUNCATE
    return changes.OVERWRITE if session.mode in (Mode.SWAP, Mode.ROLLBACK) else None


def _version(version: str) -> dataset_version_dataset.DatasetVersionDatasetFacet:
    return dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=version, producer=PRODUCER)


def _type(kind: str) -> dataset_type_dataset.DatasetTypeDatasetFacet:
    return dataset_type_dataset.DatasetTypeDatasetFacet(datasetType=kind, producer=PRODUCER)


def _schema(place: DatasetPlace) -> schema_dataset.SchemaDatasetFacet:
    fields = [schema_dataset.SchemaDatasetFacetFields(name, kind) for name, kind in place.columns]
    return schema_dataset.SchemaDatasetFacet(fields=fields, producer=PRODUCER)


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
