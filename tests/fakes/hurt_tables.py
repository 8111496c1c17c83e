"""REALTIME tables in all kinds of trouble, as values: by hand for examples, by hypothesis for properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from pinot_assets.realtime.repair.model import Kind, Means, Memory, Try
from pinot_assets.realtime.settings import ClusterSettings, RealtimeSettings
from pinot_assets.realtime.state import (
    Pause,
    PauseReason,
    RealtimeState,
    Replica,
    Segment,
    Server,
    Status,
    StreamPartition,
    TmpUpload,
)

NOW = 1_800_000_000_000
OLD = NOW - 3_600_000
"""When a node was written that no commit is at work on any more."""

PAUSELESS = RealtimeSettings(2, peer_scheme="http", pauseless=True)
BYPASS = RealtimeSettings(2, peer_scheme="http")
SERVERS = ("a", "b", "c")


def server(name: str, **differs: object) -> Server:
    """A server that serves, unless told otherwise."""
    usual = Server(name, alive=True, ready=True, since_ms=OLD, admin_url=f"http://{name}:8097")
    return replace(usual, **differs)  # type: ignore[arg-type]


def replicas(**states: str) -> tuple[Replica, ...]:
    """`a="ONLINE"`: wanted and loaded; `ONLINE>ERROR`: wanted, seen; a `+` at the end: message pending."""
    return tuple(_replica(name, text) for name, text in states.items())


def _replica(name: str, text: str) -> Replica:
    ideal, arrow, external = text.removesuffix("+").partition(">")
    return Replica(name, ideal or None, (external or None) if arrow else ideal, pending=text.endswith("+"))


def segment(
    status: Status | None,
    at: tuple[Replica, ...],
    url: str | None = None,
    *,
    partition: int = 0,
    sequence: int = 0,
    modified_ms: int | None = OLD,
    size_bytes: int | None = 1_000,
) -> Segment:
    """A segment of 100 rows, whose offsets follow from its sequence."""
    ended = status is not Status.IN_PROGRESS
    return Segment(
        f"t__{partition}__{sequence}__20260101T0000Z",
        partition,
        sequence,
        created_ms=modified_ms or OLD,
        status=status,
        start_offset=str(sequence * 100),
        end_offset=str(sequence * 100 + 100) if ended else None,
        url=url,
        crc="1" if url is not None else None,
        size_bytes=size_bytes if url is not None else None,
        modified_ms=modified_ms,
        replicas=at,
    )


def consuming(partition: int = 0, sequence: int = 1, **states: str) -> Segment:
    """The segment that is read now: on both servers, unless told otherwise."""
    at = replicas(**(states or {"a": "CONSUMING", "b": "CONSUMING"}))
    return segment(Status.IN_PROGRESS, at, partition=partition, sequence=sequence)


def table(
    *segments: Segment,
    settings: RealtimeSettings = PAUSELESS,
    cluster: ClusterSettings | None = None,
    servers: tuple[Server, ...] = (server("a"), server("b")),
    stream: Mapping[int, StreamPartition] | None = None,
    **differs: object,
) -> RealtimeState:
    """A table of those segments, on Pinot 1.5.1; the stream still has everything, unless told otherwise."""
    usual = RealtimeState(
        "t_REALTIME",
        NOW,
        settings,
        cluster or ClusterSettings("1.5.1"),
        segments,
        {one.name: one for one in servers},
        stream={p: StreamPartition(p, 0, 10_000) for p in {s.partition for s in segments}}
        if stream is None
        else stream,
    )
    return replace(usual, **differs)  # type: ignore[arg-type]


# --- for hypothesis ----------------------------------------------------------------------------------


def _mostly(usual: object, *rare: object) -> st.SearchStrategy[Any]:
    """Four in five times what is usual: else hardly a table had only one or two troubles."""
    return st.sampled_from([usual] * 4 * len(rare) + list(rare))


_AGES = _mostly(3_600_000, 5_000, 60_000, 299_999, 300_000, None)
_IDEALS = _mostly("ONLINE", "CONSUMING", "OFFLINE", None)
_EXTERNALS = st.sampled_from(["ONLINE", "ONLINE", "ONLINE", "ERROR", "ERROR", "OFFLINE", "CONSUMING", None])
_VERSIONS = st.sampled_from(["1.5.1", "1.5.1", "1.4.0", "1.3.0", "1.2.0", "0.11.0"])
_STATUSES = st.sampled_from(
    [Status.COMMITTING, Status.DONE, Status.DONE, Status.UPLOADED, Status.IN_PROGRESS]
)


@st.composite
def _segments(draw: st.DrawFn, partition: int, sequence: int) -> Segment:
    status = draw(_mostly(draw(_STATUSES), None))
    fixed = {Status.IN_PROGRESS: None, Status.COMMITTING: None}
    url = (
        fixed[status]
        if status in fixed
        else draw(st.sampled_from(["", "", "s3://d/t/x", "s3://d/t/x", None]))
    )
    age = draw(_AGES)
    names = draw(st.sampled_from([("a", "b"), ("a", "b"), ("b", "c"), ("a", "b", "c"), ("c",), ()]))
    wanted = draw(_IDEALS) if status is not Status.IN_PROGRESS else "CONSUMING"
    at = tuple(
        Replica(name, draw(_mostly(wanted, draw(_IDEALS))), draw(_EXTERNALS), draw(_mostly(False, True)))
        for name in names
    )
    made = segment(
        status,
        at,
        url,
        partition=partition,
        sequence=sequence,
        modified_ms=None if age is None else NOW - age,
        size_bytes=draw(st.sampled_from([0, 1_000, 5_000])),
    )
    return replace(made, stored=draw(_mostly(True, False)))


@st.composite
def hurt_tables(draw: st.DrawFn) -> RealtimeState:
    """A table that any mixture of troubles has come over."""
    segments = []
    for partition in range(draw(st.integers(1, 3))):
        length = draw(st.integers(1, 3))
        segments += [draw(_segments(partition, sequence)) for sequence in range(length)]
        if draw(_mostly(True, False)):
            segments.append(consuming(partition, length))
    servers = [
        server(
            name,
            alive=draw(_mostly(True, False)),
            enabled=draw(_mostly(True, False)),
            ready=draw(_mostly(True, None, False)),
            since_ms=draw(_mostly(OLD, NOW - 10_000, None)),
            admin_url=draw(_mostly(f"http://{name}:8097", None)),
        )
        for name in SERVERS
        if draw(_mostly(True, False))
    ]
    mode = draw(st.sampled_from(["", "", "dedup", "partial"]))
    settings = RealtimeSettings(
        2,
        peer_scheme=draw(_mostly("http", None)),
        pauseless=draw(st.booleans()),
        upsert="PARTIAL" if mode == "partial" else None,
        dedup=mode == "dedup",
        recovery_always=draw(st.booleans()),
    )
    cluster = ClusterSettings(
        draw(_VERSIONS), error_auto_reset=draw(st.booleans()), deep_store_upload_retry=draw(st.booleans())
    )
    stream = {
        partition: StreamPartition(partition, draw(_mostly(0, 150, 900)), 1_000)
        for partition in range(3)
        if draw(_mostly(True, False))
    }
    uploads = [
        TmpUpload(f"{s.name}.tmp.1", 10, draw(st.sampled_from([OLD - 1, NOW - 5_000])))
        for s in segments
        if draw(_mostly(False, True))
    ]
    return table(
        *segments,
        settings=settings,
        cluster=cluster,
        servers=tuple(servers),
        stream=stream,
        tmp_uploads=tuple(uploads),
        committing_listed=frozenset(s.name for s in segments if draw(_mostly(False, True))),
        pause=Pause(draw(_mostly(None, PauseReason.ADMINISTRATIVE))),
    )


@st.composite
def memories(draw: st.DrawFn, state: RealtimeState) -> Memory:
    """What may have been tried on that table before."""
    tried = {}
    for one in state.segments:
        kind = draw(st.sampled_from([None, None, Kind.UPLOAD, Kind.FINISH, Kind.REINGEST]))
        if kind is not None:
            at = NOW - draw(st.sampled_from([1_000, 100_000, 10_000_000]))
            tried[f"{kind} {one.name}"] = Try(
                kind, Means.CONTROLLER, at, at + 360_000, draw(st.integers(1, 5)), (one.name,)
            )
    return Memory(tried)
