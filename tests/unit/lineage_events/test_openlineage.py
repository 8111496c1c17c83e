"""Sessions as OpenLineage events, held to what the client itself accepts and to OpenLineage's rules."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from openlineage.client.event_v2 import RunEvent
from openlineage.client.serde import Serde

from pinot_assets.core.json_object import JsonObject
from pinot_assets.lineage_events.openlineage import (
    MOST_FOLDERS,
    MOST_LOCATIONS,
    SESSION_FACET,
    DatasetPlace,
    by_folder,
    dataset_of,
    events,
)
from pinot_assets.session.values.state import Mode, ObjectRef, Outcome, Session, State
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Output
from pinot_assets.source import Fingerprint

CREATED, DONE = 1_700_000_000_123, 1_700_000_060_000
PLACE = DatasetPlace(
    "jobs", "pinot://controller:9000", "t", (("v", "STRING"), ("n", "INT[]")), read_as_is=True
)
SESSION = Session(
    "cp2-bbbbbb",
    2,
    Mode.SYNC,
    "f",
    CREATED,
    ObjectRef("sessions/cp2-bbbbbb/plan-0", "0" * 64),
    state=State.DONE,
    outcome=Outcome.PUBLISHED,
    attempt_started_ms=CREATED + 5,
    done_ms=DONE,
    lineage_entry_id="e2",
    retry_count=1,
)


def file(uri: str, session: str, rows: int = 10, version: str = "v1") -> PublishedFile:
    name = f"t__{session}_0_{sum(uri.encode()) % 97}_0"
    output = Output(name, 1, rows, "u", 500, "h", "m")
    return PublishedFile(uri, Fingerprint(100, 1), "h", rows, 1, session, (output,), version=version)


def snapshot(*files: PublishedFile, parent: SnapshotRef | None = None) -> Snapshot:
    return Snapshot(2, "t_OFFLINE", "cp2-bbbbbb", "SYNC", "e2", parent, "", "", DONE - 1000, files)


OLD = file("s3://in/a/1.csv", "cp1-aaaaaa")
NEW = file("s3://in/a/2.csv", "cp2-bbbbbb", 20), file("s3://in/b%20b/3.csv", "cp2-bbbbbb", 30)
NOW = snapshot(OLD, *NEW, parent=SnapshotRef("snapshots/1", "x"))
BEFORE = snapshot(OLD)


def values(event: RunEvent) -> JsonObject:
    """As it is sent."""
    found: JsonObject = json.loads(Serde.to_json(event))
    return found


def told(
    session: Session = SESSION, now: Snapshot | None = NOW, before: Snapshot | None = BEFORE
) -> list[Any]:
    return [values(event) for event in events(PLACE, session, now, before)]


def test_a_session_that_published_has_a_start_and_an_end_of_one_run() -> None:
    start, end = told()
    assert [start["eventType"], end["eventType"]] == ["START", "COMPLETE"]
    assert start["eventTime"] == "2023-11-14T22:13:20.123+00:00"
    assert end["eventTime"] == "2023-11-14T22:14:20.000+00:00"
    assert start["run"]["runId"] == end["run"]["runId"]
    for event in (start, end):
        assert (event["job"]["namespace"], event["job"]["name"]) == ("jobs", "t")
        assert event["producer"] == "urn:pinot-assets"
        assert event["job"]["facets"]["jobType"]["processingType"] == "BATCH"


def test_the_same_session_gives_the_same_events_and_another_one_another_run() -> None:
    assert told() == told()
    other = told(replace(SESSION, id="cp2-cccccc"))
    assert other[0]["run"]["runId"] != told()[0]["run"]["runId"]


def test_the_files_that_it_read_by_folder_and_no_others() -> None:
    _, end = told()
    first, second = end["inputs"]
    assert [(i["namespace"], i["name"]) for i in (first, second)] == [("s3://in", "a"), ("s3://in", "b b")]
    statistics = first["inputFacets"]["inputStatistics"]
    assert [statistics[name] for name in ("rowCount", "size", "fileCount")] == [21, 100, 1]
    assert first["inputFacets"]["subset"]["inputCondition"] == {
        "type": "location",
        "locations": ["s3://in/a/2.csv"],
    }
    assert first["facets"]["schema"]["fields"] == [
        {"name": "v", "type": "STRING", "fields": []},
        {"name": "n", "type": "INT[]", "fields": []},
    ]
    assert first["facets"]["version"]["datasetVersion"] != second["facets"]["version"]["datasetVersion"]


def test_another_version_of_a_file_is_another_version_of_its_folder() -> None:
    rewritten = snapshot(replace(NEW[0], version="v2"))
    one, other = (
        told(now=each)[1]["inputs"][0]["facets"]["version"] for each in (snapshot(NEW[0]), rewritten)
    )
    assert one["datasetVersion"] != other["datasetVersion"]


def test_transforms_hide_what_columns_the_files_have() -> None:
    _, end = events(replace(PLACE, read_as_is=False), SESSION, NOW, BEFORE)
    assert all("schema" not in one["facets"] for one in values(end)["inputs"])


def test_the_table_with_what_was_written_and_what_it_holds_now() -> None:
    (output,) = told()[1]["outputs"]
    assert (output["namespace"], output["name"]) == ("pinot://controller:9000", "t")
    written = output["outputFacets"]["outputStatistics"]
    assert [written[name] for name in ("rowCount", "size", "fileCount")] == [50, 1000, 2]
    whole = output["facets"]["dataQualityMetrics"]
    assert [whole[name] for name in ("rowCount", "bytes", "fileCount")] == [60, 1500, 3]
    assert output["facets"]["version"]["datasetVersion"] == "cp2-bbbbbb"
    assert [field["name"] for field in output["facets"]["schema"]["fields"]] == ["v", "n"]
    assert "lifecycleStateChange" not in output["facets"]


def test_our_own_facet_says_what_openlineage_has_no_word_for() -> None:
    facet = told()[1]["run"]["facets"][SESSION_FACET]
    assert {name: facet[name] for name in facet if not name.startswith("_")} == {
        "session": "cp2-bbbbbb",
        "mode": "SYNC",
        "outcome": "PUBLISHED",
        "retryCount": 1,
        "lineageEntry": "e2",
        "audit": "",
        "filesAdded": 2,
        "filesRewritten": 0,
        "filesRemoved": 0,
    }
    assert facet["_schemaURL"] == "urn:pinot-assets:openlineage:session-run-facet:1"


def test_what_changed_is_not_told_where_the_snapshot_before_is_not_kept_any_more() -> None:
    assert "filesAdded" not in told(before=None)[1]["run"]["facets"][SESSION_FACET]
    first = told(now=snapshot(*NEW), before=None)[1]["run"]["facets"][SESSION_FACET]
    assert first["filesAdded"] == 2


@pytest.mark.parametrize(
    ("mode", "outcome", "files", "change"),
    [
        (Mode.SWAP, Outcome.PUBLISHED, NEW, "OVERWRITE"),
        (Mode.ROLLBACK, Outcome.PUBLISHED, NEW, "OVERWRITE"),
        (Mode.SYNC, Outcome.PUBLISHED, (), "TRUNCATE"),
        (Mode.SWAP, Outcome.NOOP, NEW, None),
        (Mode.APPEND, Outcome.PUBLISHED, NEW, None),
    ],
)
def test_what_became_of_the_table(mode: Mode, outcome: Outcome, files: Any, change: str | None) -> None:
    end = told(replace(SESSION, mode=mode, outcome=outcome), snapshot(*files))[1]
    facet = end["outputs"][0]["facets"].get("lifecycleStateChange", {})
    assert facet.get("lifecycleStateChange") == change


def test_a_rollback_is_a_job_of_its_own_and_reads_no_file() -> None:
    way = replace(snapshot(OLD), audit={"way": "revert"})
    end = told(replace(SESSION, mode=Mode.ROLLBACK), way, NOW)[1]
    assert end["job"]["name"] == "t.rollback"
    assert end["inputs"] == []
    facet = end["run"]["facets"][SESSION_FACET]
    assert (facet["wayBack"], facet["filesRemoved"]) == ("revert", 2)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome.OPEN, "RUNNING"),
        (Outcome.CLEARED, "ABORT"),
        (Outcome.ABANDONED_RETRIES, "FAIL"),
        (Outcome.ABANDONED_CONFIG, "FAIL"),
        (Outcome.ABANDONED_AUDIT, "FAIL"),
    ],
)
def test_a_session_that_published_nothing(outcome: Outcome, expected: str) -> None:
    """One that may be retried is still running: a run of OpenLineage's ends once."""
    done_ms = 0 if outcome is Outcome.OPEN else DONE
    session = replace(SESSION, outcome=outcome, done_ms=done_ms, last_error="2 files failed")
    _, end = told(session, None, None)
    assert end["eventType"] == expected
    assert end["run"]["facets"]["errorMessage"]["message"] == "2 files failed"
    assert (end["inputs"], end["outputs"]) == ([], [])
    assert end["eventTime"] == (
        "2023-11-14T22:14:20.000+00:00" if done_ms else "2023-11-14T22:13:20.128+00:00"
    )


def test_a_million_files_are_told_by_a_bounded_number_of_folders_and_names() -> None:
    many = [file(f"s3://in/y={n % 7}/d={n % 500}/h={n % 3}/{n}.csv", "cp2-bbbbbb") for n in range(5000)]
    folders = by_folder(many)
    assert len(folders) <= MOST_FOLDERS
    assert sum(map(len, folders.values())) == 5000
    _, end = told(now=snapshot(*many))
    statistics = [one["inputFacets"]["inputStatistics"]["fileCount"] for one in end["inputs"]]
    named = [len(one["inputFacets"]["subset"]["inputCondition"]["locations"]) for one in end["inputs"]]
    assert sum(statistics) == 5000
    assert sum(named) <= MOST_LOCATIONS


def test_folders_at_different_depths_are_folded_from_below() -> None:
    shallow = file("s3://in/top.csv", "cp2-bbbbbb")
    deep = [file(f"s3://in/a/{n}/x.csv", "cp2-bbbbbb") for n in range(MOST_FOLDERS + 1)]
    assert {folder: len(files) for folder, files in by_folder([shallow, *deep]).items()} == {
        "s3://in": 1,
        "s3://in/a": MOST_FOLDERS + 1,
    }


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("s3://bucket/a/b", ("s3://bucket", "a/b")),
        ("s3://bucket", ("s3://bucket", "/")),
        ("gs://bucket/a", ("gs://bucket", "a")),
        ("abfss://box@account.dfs.core.windows.net/a", ("abfss://box@account.dfs.core.windows.net", "a")),
        ("file:///data/in%20here", ("file", "/data/in here")),
    ],
)
def test_names_of_datasets(uri: str, expected: tuple[str, str]) -> None:
    assert dataset_of(uri) == expected
