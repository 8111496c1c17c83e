"""REALTIME tables in all kinds of trouble, as values: by hand for examples, by hypothesis for properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from fakes.changed import changed
from hypothesis import strategies as st

from pinot_assets.realtime.model.settings import ClusterSettings, RealtimeSettings
from pinot_assets.realtime.model.state import (
    LlcSegment,
    Pause,
    PauseReason,
    RealtimeState,
    Replica,
    SegmentStatus,
    Server,
    StreamPartition,
    TmpUpload,
)
from pinot_assets.realtime.repair.model import Means, Memory, Step, StepKind, Try

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
    status: SegmentStatus | None,
    at: tuple[Replica, ...],
    url: str | None = None,
    *,
    partition: int = 0,
    sequence: int = 0,
    modified_ms: int | None = OLD,
    size_bytes: int | None = 1_000,
) -> LlcSegment:
    """A segment of 100 rows, whose offsets follow from its sequence."""
    ended = status is not SegmentStatus.IN_PROGRESS
    return LlcSegment(
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


def consuming(partition: int = 0, sequence: int = 1, **states: str) -> LlcSegment:
    """The segment that is read now: on both servers, unless told otherwise."""
    at = replicas(**(states or {"a": "CONSUMING", "b": "CONSUMING"}))
    return segment(SegmentStatus.IN_PROGRESS, at, partition=partition, sequence=sequence)


def table(
    *segments: LlcSegment,
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

AGES = (5_000, 60_000, 299_999, 300_000, 3_600_000)
VERSIONS = ("1.5.1", "1.5.1", "1.4.0", "1.3.0", "1.2.0", "0.11.0")
Trouble = Callable[[Random, RealtimeState], RealtimeState]


def hurt_tables() -> st.SearchStrategy[RealtimeState]:
    """A healthy table that some troubles have come over.

    From a seed: drawing every choice would take a hundred times as long, and what is rare is what matters.
    """
    return st.integers(0, 2**48).map(lambda seed: hurt_table(Random(seed)))


def tried_tables() -> st.SearchStrategy[tuple[RealtimeState, Memory]]:
    """The same, and what was tried before."""

    def made(seed: int) -> tuple[RealtimeState, Memory]:
        random = Random(seed)
        state = hurt_table(random)
        return state, _tried(random, state)

    return st.integers(0, 2**48).map(made)


def hurt_table(random: Random) -> RealtimeState:
    """One table with up to eight troubles, which tend to meet in one segment or server."""
    state = _healthy(random)
    for _ in range(random.randint(1, 8)):
        state = random.choice(TROUBLES)(random, state)
    return state


def _healthy(random: Random) -> RealtimeState:
    names = random.choice([("a", "b"), ("a", "b"), ("a", "b", "c"), ("a",)])
    segments = []
    for partition in range(random.randint(1, 2)):
        length = random.randint(1, 2)
        at = replicas(**dict.fromkeys(names, "ONLINE"))
        for sequence in range(length):
            size = random.choice([0, 1_000, 5_000])
            url = random.choice(["s3://d/t/x", "", ""])
            segments.append(
                segment(SegmentStatus.DONE, at, url, partition=partition, sequence=sequence, size_bytes=size)
            )
        segments.append(consuming(partition, length, **dict.fromkeys(names, "CONSUMING")))
    mode = random.choice(["", "", "", "dedup", "partial"])
    settings = RealtimeSettings(
        len(names),
        peer_scheme=random.choice(["http", "http", None]),
        pauseless=random.random() < 0.6,
        upsert="PARTIAL" if mode == "partial" else None,
        dedup=mode == "dedup",
        recovery_always=random.random() < 0.3,
        completion_mode=random.choice(["DEFAULT", "DOWNLOAD"]),
    )
    cluster = ClusterSettings(
        random.choice(VERSIONS),
        error_auto_reset=random.random() < 0.8,
        deep_store_upload_retry=random.random() < 0.5,
    )
    made = table(*segments, settings=settings, cluster=cluster, servers=tuple(map(server, SERVERS)))
    held = {partition: StreamPartition(partition, 0, 1_000) for partition in made.latest()}
    return replace(made, stream=held)


def _of_server(random: Random, state: RealtimeState) -> RealtimeState:
    """It is dead, switched off, starting, just back, gone, or nobody knows its address."""
    name = random.choice(SERVERS)
    if name not in state.servers:
        return state
    kinds: list[dict[str, object]] = [
        {"alive": False},
        {"alive": False},
        {"enabled": False},
        {"ready": False},
        {"ready": None},
        {"since_ms": NOW - 10_000},
        {"since_ms": None},
        {"admin_url": None},
    ]
    servers = {**state.servers, name: replace(state.servers[name], **random.choice(kinds))}  # type: ignore[arg-type]
    if random.random() < 0.1:
        del servers[name]
    return replace(state, servers=servers)


def _of_replica(random: Random, state: RealtimeState) -> RealtimeState:
    """Not loaded, in ERROR, still in memory, a message pending; or not wanted any more."""
    chosen = _recent(random, state)
    if not chosen.replicas:
        return state
    number = random.randrange(len(chosen.replicas))
    old = chosen.replicas[number]
    new = random.choice(
        [
            replace(old, external="ERROR"),
            replace(old, external="ERROR"),
            replace(old, external="OFFLINE"),
            replace(old, external=None),
            replace(old, external="CONSUMING"),
            replace(old, external="ONLINE"),
            replace(old, pending=True),
            replace(old, ideal="OFFLINE"),
            replace(old, ideal=None),
        ]
    )
    at = (*chosen.replicas[:number], new, *chosen.replicas[number + 1 :])
    return _changed(state, chosen, replace(chosen, replicas=at))


def _of_commit(random: Random, state: RealtimeState) -> RealtimeState:
    """COMMITTING, for long or not; on all of its servers, or on none."""
    chosen = _recent(random, state)
    external = random.choice(["ONLINE", "ONLINE", "ERROR", "ERROR", "OFFLINE", "CONSUMING"])
    at = tuple(
        replace(r, ideal=random.choice(["ONLINE", r.ideal]), external=external) for r in chosen.replicas
    )
    end = str(int(chosen.start_offset or 0) + 100)
    committing = replace(chosen, status=SegmentStatus.COMMITTING, url=None, end_offset=end, replicas=at)
    return _changed(state, chosen, committing)


def _of_disk(random: Random, state: RealtimeState) -> RealtimeState:
    """Committed past the deep store, and in ERROR on all of its servers."""
    chosen = _recent(random, state)
    at = tuple(replace(r, ideal="ONLINE", external="ERROR") for r in chosen.replicas)
    end = str(int(chosen.start_offset or 0) + 100)
    return _changed(
        state, chosen, replace(chosen, status=SegmentStatus.DONE, url="", end_offset=end, replicas=at)
    )


def _of_node(random: Random, state: RealtimeState) -> RealtimeState:
    """Younger, of unknown age, gone, without a status or URL, without its place in the ideal state."""
    chosen = _recent(random, state)
    ages: list[dict[str, object]] = [{"modified_ms": NOW - age} for age in AGES]
    kinds: list[dict[str, object]] = [
        *ages,
        {"modified_ms": None},
        {"stored": False},
        {"status": None},
        {"status": SegmentStatus.UPLOADED, "end_offset": "100"},
        {"url": None},
        {"url": ""},
        {"url": f"s3://d/t/{chosen.name}.tmp.1"},
        {"replicas": ()},
    ]
    return _changed(state, chosen, changed(chosen, random.choice(kinds)))


def _of_partition(random: Random, state: RealtimeState) -> RealtimeState:
    """Its last segment is missing, all replicas have stopped, or the stream no longer has everything."""
    partition = random.choice(sorted(state.latest()))
    newest = state.latest()[partition]
    match random.randrange(5):
        case 0 if len(state.segments) > 1:
            return replace(state, segments=tuple(s for s in state.segments if s is not newest))
        case 1:
            at = tuple(replace(r, ideal="OFFLINE", external="OFFLINE") for r in newest.replicas)
            return _changed(state, newest, replace(newest, replicas=at))
        case 2:
            earliest = random.choice([50, 150, 900])
            return replace(
                state, stream={**state.stream, partition: StreamPartition(partition, earliest, 1_000)}
            )
        case 3:
            return replace(state, stream={p: held for p, held in state.stream.items() if p != partition})
        case _:
            return replace(state, stream={**state.stream, 7: StreamPartition(7, 0, 5)})


def _of_the_rest(random: Random, state: RealtimeState) -> RealtimeState:
    """Left-overs, a pause, an old list."""
    name = random.choice(state.segments).name
    match random.randrange(4):
        case 0:
            upload = TmpUpload(f"{name}.tmp.1", 10, random.choice([OLD - 1, NOW - 5_000]))
            return replace(state, tmp_uploads=(*state.tmp_uploads, upload))
        case 1:
            return replace(state, committing_listed=state.committing_listed | {name})
        case 2 if random.random() < 0.3:
            return replace(state, pause=Pause(PauseReason.ADMINISTRATIVE))
        case _:
            return state


TROUBLES: tuple[Trouble, ...] = (
    *[_of_replica] * 4,
    *[_of_server] * 2,
    *[_of_commit] * 2,
    *[_of_node] * 2,
    _of_disk,
    _of_partition,
    _of_the_rest,
)


def _recent(random: Random, state: RealtimeState) -> LlcSegment:
    """Often the same one."""
    return random.choice([*state.segments, state.segments[0], state.segments[0]])


def _changed(state: RealtimeState, old: LlcSegment, new: LlcSegment) -> RealtimeState:
    return replace(state, segments=tuple(new if s is old else s for s in state.segments))


def _tried(random: Random, state: RealtimeState) -> Memory:
    tried = {}
    for one in state.segments:
        kind = random.choice(
            [None, None, None, StepKind.UPLOAD, StepKind.FINISH, StepKind.REINGEST, StepKind.VALIDATE]
        )
        if kind is not None:
            at = NOW - random.choice([1_000, 100_000, 10_000_000])
            means = Means.VALIDATION if kind is StepKind.VALIDATE else Means.CONTROLLER
            segments = () if kind is StepKind.VALIDATE else (one.name,)
            tried[f"{kind} {one.name}"] = Try(kind, means, at, at + 360_000, random.randint(1, 5), segments)
        if random.random() < 0.3:
            for replica in one.replicas:
                reset = Step(StepKind.RESET, Means.CONTROLLER_RESET, "", (one.name,), replica.server)
                at = NOW - random.choice([1_000, 10_000_000])
                tried[reset.key] = Try(reset.kind, reset.means, at, at + 360_000, 1, reset.segments)
    return Memory(tried)
