from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.session.decide.next_plan import is_empty, new_plan, reconcile, unchanged
from pinot_assets.session.decide.retries import Next, next_step_of_session
from pinot_assets.session.stores.plan_parquet import plan_from_parquet, plan_to_parquet
from pinot_assets.session.values.hold import NO_HOLD, Hold, without_held
from pinot_assets.session.values.plan import (
    Changes,
    Plan,
    Row,
    RowStatus,
    published_files,
    segments_from,
    segments_to,
    with_receipts,
)
from pinot_assets.session.values.state import Mode
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Fingerprint, Output, Receipt, SourceFile

ALL = [Mode.APPEND, Mode.SYNC, Mode.SWAP]
BUILD, DONE, GONE = RowStatus.BUILD, RowStatus.DONE, RowStatus.GONE


def version(n: int) -> Fingerprint:
    return Fingerprint(size=10 + n, mtime_us=n)


def file(uri: str, n: int = 1) -> SourceFile:
    return SourceFile(uri, version(n))


def changes(
    listed: Mapping[str, int],
    *,
    new: Sequence[str] = (),
    rewritten: Sequence[str] = (),
    deleted: Sequence[str] = (),
    touched: Sequence[str] = (),
) -> Changes:
    files = {uri: file(uri, n) for uri, n in listed.items()}
    return Changes(
        new=tuple(files[u] for u in new),
        rewritten=tuple(files[u] for u in rewritten),
        deleted=tuple(deleted),
        touched={u: files[u].fingerprint for u in touched},
        listed=files,
        listing_digest="digest",
    )


def output(segment: str) -> Output:
    return Output(segment, 1, 3, f"file:///{segment}", 9, "sha", f"file:///{segment}.meta")


def receipt(
    uri: str, ordinal: int, n: int = 1, *, segments: Sequence[str] = ("s",), attempt: int = 0
) -> Receipt:
    names = tuple(output(f"{uri}.{n}.{s}") for s in segments)
    return Receipt(uri, ordinal, attempt, version(n), f"sha-{uri}-{n}", 3 * len(names), 0, names, 0.1, "w/1")


def found(*receipts: Receipt) -> dict[int, tuple[str, Receipt]]:
    return {r.ordinal: (f"files/{r.uri}-{r.attempt}", r) for r in receipts}


def snapshot(*files: PublishedFile) -> Snapshot:
    return Snapshot(1, "t_OFFLINE", "cp1-0", "SYNC", "e", None, "d", "f", 0, files)


def published(uri: str, n: int = 1, session: str = "cp1-0") -> PublishedFile:
    return PublishedFile.from_receipt(receipt(uri, 0, n), session)


def statuses(plan: Plan) -> dict[str, RowStatus]:
    return {row.uri: row.status for row in plan.rows}


# --- the first plan ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "uris", "removals"),
    [(Mode.APPEND, "bc", ()), (Mode.SYNC, "bc", ("x",)), (Mode.SWAP, "abcd", ())],
)
def test_a_new_plan_has_the_work_set_of_its_mode(mode: Mode, uris: str, removals: tuple[str, ...]) -> None:
    seen = changes({"d": 1, "a": 1, "c": 2, "b": 1}, new="b", rewritten="c", deleted="x", touched="d")
    plan = new_plan("cp7-0", mode, seen)
    assert [(r.uri, r.ordinal, r.status) for r in plan.rows] == [(u, n, BUILD) for n, u in enumerate(uris)]
    assert [r.planned for r in plan.rows] == [seen.listed[u].fingerprint for u in uris]
    assert plan.removals == removals
    assert plan.touched == {"d": version(1)}
    assert (plan.attempt, plan.session, plan.listing_digest) == (0, "cp7-0", "digest")


def test_a_plan_is_empty_without_anything_to_do_or_to_remember() -> None:
    assert is_empty(new_plan("cp1-0", Mode.SYNC, changes({"a": 1})))
    assert is_empty(new_plan("cp1-0", Mode.APPEND, changes({"a": 1}, deleted="x")))
    assert not is_empty(new_plan("cp1-0", Mode.SYNC, changes({"a": 1}, deleted="x")))
    assert not is_empty(new_plan("cp1-0", Mode.APPEND, changes({"a": 1}, touched="a")))
    assert not is_empty(new_plan("cp1-0", Mode.APPEND, changes({"a": 1}, new="a")))


# --- the table of docs/design/session.md#continuing-an-open-session -----------------------------


@pytest.fixture(params=ALL)
def plan(request: pytest.FixtureRequest) -> Plan:
    """The first file is done, the second is not."""
    first = new_plan("cp1-0", request.param, changes({"a": 1, "b": 1}, new="ab"))
    return with_receipts(first, found(receipt("a", 0)))


def test_done_and_listed_in_the_same_version_is_kept(plan: Plan) -> None:
    after = reconcile(plan, changes({"a": 1, "b": 1}, new="ab"), found(receipt("a", 0)))
    assert after.rows[0] == plan.rows[0]
    assert after.attempt == 1


def test_done_and_listed_in_another_version_is_kept(plan: Plan) -> None:
    after = reconcile(plan, changes({"a": 2, "b": 1}, new="ab"), found(receipt("a", 0)))
    assert after.rows[0] == plan.rows[0]
    assert [r.uri for r in after.rows] == ["a", "b"]


def test_done_and_not_listed_is_dropped(plan: Plan) -> None:
    after = reconcile(plan, changes({"b": 1}, new="b"), found(receipt("a", 0)))
    assert statuses(after) == {"a": GONE, "b": BUILD}
    assert after.rows[0].receipt == ""
    assert segments_to(after, {}) == ()


def test_not_built_is_built_in_the_version_that_is_listed_now(plan: Plan) -> None:
    for n in (1, 2):
        after = reconcile(plan, changes({"a": 1, "b": n}, new="ab"), found(receipt("a", 0)))
        assert (after.rows[1].status, after.rows[1].planned) == (BUILD, version(n))


def test_not_built_and_not_listed_is_forgotten(plan: Plan) -> None:
    after = reconcile(plan, changes({"a": 1}, new="a"), found(receipt("a", 0)))
    assert statuses(after) == {"a": DONE, "b": GONE}


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.SYNC])
def test_not_built_and_as_published_again_is_forgotten(mode: Mode) -> None:
    first = new_plan("cp1-0", mode, changes({"a": 2, "b": 1}, new="b", rewritten="a"))
    after = reconcile(first, changes({"a": 1, "b": 1}, new="b"), {})
    assert statuses(after) == {"a": GONE, "b": BUILD}


def test_swap_builds_a_file_that_is_as_published_too() -> None:
    first = new_plan("cp1-0", Mode.SWAP, changes({"a": 2}, rewritten="a"))
    assert statuses(reconcile(first, changes({"a": 1}), {})) == {"a": BUILD}


def test_not_in_the_plan_is_built_under_a_fresh_ordinal(plan: Plan) -> None:
    after = reconcile(plan, changes({"a": 1, "b": 1, "c": 1, "0": 1}, new=["a", "b", "c", "0"]), {})
    assert [(r.uri, r.ordinal) for r in after.rows] == [("a", 0), ("b", 1), ("0", 2), ("c", 3)]


def test_unchanged_files_join_a_swap_only(plan: Plan) -> None:
    after = reconcile(plan, changes({"a": 1, "b": 1, "old": 1}, new="ab"), {})
    assert ("old" in statuses(after)) is (plan.mode is Mode.SWAP)


def test_a_file_that_left_the_source_joins_the_removals_of_a_sync(plan: Plan) -> None:
    after = reconcile(plan, changes({"a": 1, "b": 1}, new="ab", deleted=["q", "p"]), {})
    assert after.removals == (("p", "q") if plan.mode is Mode.SYNC else ())


def test_a_file_that_returns_gets_a_new_ordinal(plan: Plan) -> None:
    gone = reconcile(plan, changes({"b": 1}, new="b"), {})
    back = reconcile(gone, changes({"a": 1, "b": 1}, new="ab"), found(receipt("a", 0)))
    assert [(r.uri, r.ordinal, r.status) for r in back.rows] == [
        ("a", 0, GONE),
        ("b", 1, BUILD),
        ("a", 2, BUILD),
    ]


def test_a_receipt_that_is_not_valid_any_more_is_built_again(plan: Plan) -> None:
    after = reconcile(plan, changes({"a": 1, "b": 1}, new="ab"), {})
    # The receipt that is not to be taken up again stays named (R14).
    assert (after.rows[0].status, after.rows[0].receipt) == (BUILD, "files/a-0")


def test_r12_what_was_read_counts_not_what_was_planned(plan: Plan) -> None:
    """R12: the file changed between listing and reading."""
    taken = with_receipts(plan, found(receipt("a", 0, 5), receipt("b", 1, 7)))
    assert taken.rows[0] == plan.rows[0]  # an accepted receipt is never exchanged (R11)
    assert (taken.rows[1].status, taken.rows[1].planned) == (DONE, version(7))
    assert taken.attempt == plan.attempt


def test_counts_are_by_status(plan: Plan) -> None:
    after = reconcile(plan, changes({"b": 1, "c": 1, "d": 1}, new="bcd"), found(receipt("b", 1)))
    expected = {"files": 3, "done": 1, "failed": 1, "pending": 1, "gone": 1, "removals": 0}
    assert after.counts(failed=1) == expected


# --- decide --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failed", "same_config", "retry_count", "max_retries", "expected"),
    [
        (False, True, 0, 0, Next.CONTINUE),
        (False, True, 9, 0, Next.CONTINUE),
        (True, True, 0, 0, Next.ABANDON_RETRIES),
        (True, True, 0, 1, Next.RETRY),
        (True, True, 1, 1, Next.ABANDON_RETRIES),
        (True, True, 3, 2, Next.ABANDON_RETRIES),
        (True, True, 2, 3, Next.RETRY),
        (True, False, 0, 9, Next.ABANDON_CONFIG),
        (False, False, 0, 9, Next.ABANDON_CONFIG),
    ],
)
def test_only_a_failure_spends_a_retry(
    failed: bool, same_config: bool, retry_count: int, max_retries: int, expected: Next
) -> None:
    assert (
        next_step_of_session(
            failed=failed, same_config=same_config, retry_count=retry_count, max_retries=max_retries
        )
        is expected
    )


# --- the switch ----------------------------------------------------------------------------------


def test_segments_to_are_those_of_the_accepted_receipts_in_their_order() -> None:
    plan = with_receipts(
        new_plan("cp1-0", Mode.APPEND, changes({"a": 1, "b": 1, "c": 1}, new="abc")),
        found(receipt("b", 1, segments=("x", "y")), receipt("a", 0)),
    )
    receipts = {0: receipt("a", 0), 1: receipt("b", 1, segments=("x", "y")), 2: receipt("c", 2)}
    assert [o.segment for o in segments_to(plan, receipts)] == ["a.1.s", "b.1.x", "b.1.y"]


def test_segments_from_by_mode() -> None:
    current = snapshot(published("a"), published("b"), published("q"))
    visible = frozenset({"a.1.s", "b.1.s", "q.1.s", "foreign"})
    seen = changes({"a": 2, "b": 1}, rewritten="a", deleted="q")
    for mode, expected in [
        (Mode.APPEND, ()),
        (Mode.SYNC, ("a.1.s", "q.1.s")),
        (Mode.SWAP, ("a.1.s", "b.1.s", "foreign", "q.1.s")),
    ]:
        plan = new_plan("cp2-0", mode, seen)
        done = with_receipts(plan, found(*(receipt(r.uri, r.ordinal, 2) for r in plan.rows)))
        assert segments_from(done, current, visible) == expected


def test_a_file_that_is_not_built_supersedes_nothing() -> None:
    plan = new_plan("cp2-0", Mode.SYNC, changes({"a": 2}, rewritten="a"))
    assert segments_from(plan, snapshot(published("a")), frozenset({"a.1.s"})) == ()


def test_r05_a_source_that_is_not_visible_is_not_replaced() -> None:
    """R5."""
    plan = new_plan("cp2-0", Mode.SYNC, changes({}, deleted="ab"))
    assert segments_from(plan, snapshot(published("a"), published("b")), frozenset({"b.1.s"})) == ("b.1.s",)


def test_every_older_version_of_a_file_is_superseded_after_append() -> None:
    plan = new_plan("cp2-0", Mode.SYNC, changes({}, deleted="a"))
    current = snapshot(published("a", 1), published("a", 2))
    assert segments_from(plan, current, frozenset({"a.1.s", "a.2.s"})) == ("a.1.s", "a.2.s")


def test_without_a_ledger_only_swap_replaces() -> None:
    for mode in (Mode.APPEND, Mode.SYNC):
        assert segments_from(new_plan("cp1-0", mode, changes({})), None, frozenset({"x"})) == ()
    assert segments_from(new_plan("cp1-0", Mode.SWAP, changes({})), None, frozenset({"x"})) == ("x",)


# --- the next snapshot ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (Mode.APPEND, ["a1", "a2", "b1", "q1"]),
        (Mode.SYNC, ["a2", "b1"]),
        (Mode.SWAP, ["a2", "b1"]),
    ],
)
def test_the_ledger_after_a_session(mode: Mode, expected: list[str]) -> None:
    current = snapshot(published("a"), published("b"), published("q"))
    plan = new_plan("cp2-0", mode, changes({"a": 2, "b": 1}, rewritten="a", deleted="q"))
    receipts = {r.ordinal: receipt(r.uri, r.ordinal, r.planned.mtime_us) for r in plan.rows}
    files = published_files(with_receipts(plan, found(*receipts.values())), receipts, current)
    assert [f"{f.uri}{f.fingerprint.mtime_us}" for f in files] == expected
    assert snapshot(*files).ledger["a"].fingerprint == version(2)


def test_a_touched_file_is_remembered_with_its_segments() -> None:
    current = snapshot(published("a", 1), published("a", 2), published("b"))
    plan = new_plan("cp2-0", Mode.APPEND, changes({"a": 9, "b": 1}, touched="a"))
    older, newest, other = published_files(plan, {}, current)
    assert (older, other) == (current.files[0], current.files[2])
    assert newest == replace(current.files[1], fingerprint=version(9))


# --- holds ---------------------------------------------------------------------------------------


def test_held_versions_and_removals_are_left_out() -> None:
    seen = changes({"n": 1, "m": 1, "r": 2, "s": 2}, new="nm", rewritten="rs", deleted="xy")
    hold = Hold(files={"n": version(1).token, "r": version(2).token, "s": version(1).token}, removals=("x",))
    free = without_held(seen, hold)
    assert [f.uri for f in free.new] == ["m"]
    assert [f.uri for f in free.rewritten] == ["s"]
    assert free.deleted == ("y",)
    assert free.listed == seen.listed
    assert without_held(seen, NO_HOLD) == seen


# --- Parquet -------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VERSIONS = st.builds(
    Fingerprint,
    size=st.integers(0, 2**62),
    mtime_us=st.integers(-(2**62), 2**62),
    etag=st.none() | TEXTS,
    version_id=st.none() | TEXTS,
)
ROWS = st.builds(
    Row,
    uri=TEXTS,
    ordinal=st.integers(0, 2**40),
    planned=VERSIONS,
    status=st.sampled_from(RowStatus),
    receipt=TEXTS,
)


@settings(deadline=None)
@given(
    st.builds(
        Plan,
        session=TEXTS,
        attempt=st.integers(0, 2**31),
        mode=st.sampled_from(Mode),
        rows=st.lists(ROWS, max_size=4).map(tuple),
        removals=st.lists(TEXTS, max_size=4).map(tuple),
        touched=st.dictionaries(TEXTS, VERSIONS, max_size=4),
        listing_digest=TEXTS,
    )
)
def test_a_plan_survives_parquet(plan: Plan) -> None:
    data = plan_to_parquet(plan)
    back = plan_from_parquet(data)
    assert back == plan
    assert [r.planned.version_id for r in back.rows] == [r.planned.version_id for r in plan.rows]
    assert plan_to_parquet(plan) == data


# --- an assertion that failed ----------------------------------------------------------------------


@pytest.mark.parametrize("mode", ALL)
def test_of_rows_that_did_not_pass_a_rewritten_file_alone_is_built_again(mode: Mode) -> None:
    seen = changes({"a": 1, "b": 1, "c": 1, "d": 1}, new="abcd")
    built = found(*(receipt(uri, n) for n, uri in enumerate("abcd")))
    done = with_receipts(new_plan("cp7-0", mode, seen), built)
    later = changes({"a": 1, "b": 2, "d": 3}, new="abd")  # c was deleted
    kept = unchanged(done, later, built)
    assert {r.uri for _, r in kept.values()} == {"a", "c"}
    plan = reconcile(done, later, kept)
    assert statuses(plan) == {"a": DONE, "b": BUILD, "c": GONE, "d": BUILD}
    assert [r.planned for r in plan.to_build] == [version(2), version(3)]


def test_a_version_id_that_only_a_head_tells_makes_no_other_version() -> None:
    """A listing of a versioned bucket does not tell it: every file would be built again at every trigger."""
    seen = changes({"a": 1}, new="a")
    one = receipt("a", 0)
    built = found(replace(one, read=replace(one.read, version_id="Xy7")))
    done = with_receipts(new_plan("cp7-0", Mode.SYNC, seen), built)
    assert unchanged(done, seen, built) == built


def test_a_file_that_is_back_to_its_published_version_goes_with_its_rows() -> None:
    seen = changes({"a": 2}, rewritten="a")
    built = found(receipt("a", 0, 2))
    done = with_receipts(new_plan("cp7-0", Mode.SYNC, seen), built)
    back = changes({"a": 3}, touched="a")  # the same bytes, another time
    plan = reconcile(done, back, unchanged(done, back, built))
    assert (statuses(plan), plan.touched) == ({"a": GONE}, {"a": version(3)})
