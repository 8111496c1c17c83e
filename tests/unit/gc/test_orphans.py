"""What nothing needs any more, and what must stay."""

from __future__ import annotations

from dataclasses import replace

from fakes.stores.memory import new_memory

from pinot_assets.gc.bad_rows import BadRowRetention
from pinot_assets.gc.orphans import OrphanKind, TableFacts, orphans_of
from pinot_assets.pinot.lineage import Lineage, LineageEntry, LineageState
from pinot_assets.session.detect.listing import KeptParts
from pinot_assets.session.stores.staging import Reach
from pinot_assets.session.stores.stored_snapshots import SnapshotHeader
from pinot_assets.session.values.state import Mode, ObjectRef, Session
from pinot_assets.snapshot.manifest import SnapshotRef
from pinot_assets.source import Fingerprint

HOUR_MS = 3_600_000
OLD, NOW, NEXT = (f"t__cp{n}-{'abc'[n - 1] * 6}_0_0_0" for n in (1, 2, 3))
HASH = "0" * 64
PLAN = ObjectRef("sessions/cp3-cccccc/plan-0", HASH)
OPEN = Session("cp3-cccccc", 3, Mode.SYNC, "f", 0, PLAN)
KEPT = Reach(
    frozenset({f"snapshots/2-{HASH}.json", f"snapshots/2-{HASH}.parquet"}),
    frozenset({NOW}),
    frozenset({"cp2-bbbbbb"}),
)


def staged(*keys: str) -> dict[str, Fingerprint]:
    return {key: Fingerprint(10, HOUR_MS * 1000) for key in keys}


def tars(*names: str) -> dict[str, Fingerprint]:
    return staged(*(f"segments/{n}{end}" for n in names for end in (".tar.gz", ".metadata.tar.gz")))


FACTS = TableFacts(
    table="t",
    nodes=("cp1", "cp2"),
    session=None,
    hold="",
    ledger=frozenset({NOW}),
    kept=KEPT,
    expired=(),
    segments=frozenset({NOW}),
    lineage=Lineage(),
    shadow="",
    staged=tars(NOW) | staged(*KEPT.objects, "sessions/cp2-bbbbbb/plan-0-x.parquet"),
    bad_rows=BadRowRetention(30, "", frozenset()),
    packs=frozenset(),
    now_ms=4 * HOUR_MS,
    here_ms=5 * HOUR_MS,
)


def found(**changes: object) -> list[tuple[OrphanKind, str]]:
    return [(o.kind, o.name) for o in orphans_of(replace(FACTS, **changes))]  # type: ignore[arg-type]


def test_member_lists_and_rows_that_no_kept_pack_needs() -> None:
    ours = [f"{folder}/{digit * 64}.parquet" for folder in ("packs", "rows") for digit in "ab"]
    strange = ["packs/x.parquet", "rows/readme"]
    there = FACTS.staged | staged(*ours, *strange)
    of_packs = [(OrphanKind.PACK, ours[1]), (OrphanKind.PACK, ours[3])]
    assert found(staged=there, packs=frozenset({ours[0], ours[2]})) == of_packs
    assert found(staged=there, packs=None) == []


def entry(state: LineageState, segments_from: set[str], segments_to: set[str]) -> LineageEntry:
    return LineageEntry(state, frozenset(segments_from), frozenset(segments_to), state, 2 * HOUR_MS)


def test_a_table_in_order_has_none() -> None:
    assert found() == []


def test_a_visible_segment_that_no_snapshot_knows_is_for_the_next_trigger_however_young() -> None:
    (orphan,) = orphans_of(replace(FACTS, segments=frozenset({OLD, NOW, "by_hand", "u__cp1-aaaaaa_0_0_0"})))
    assert (orphan.kind, orphan.name, orphan.age_ms) == (OrphanKind.STRAY, OLD, None)


def test_an_open_session_may_have_made_it_visible() -> None:
    assert found(segments=frozenset({NOW, NEXT}), session=OPEN) == []


def test_without_a_ledger_no_segment_is_judged() -> None:
    assert found(ledger=None, segments=frozenset({OLD, NOW}), kept=None) == []


def test_what_a_taken_back_switch_left_in_pinot_goes_with_the_age_of_its_entry() -> None:
    lineage = Lineage((entry(LineageState.REVERTED, {NOW}, {NEXT, "foreign"}),))
    (orphan,) = orphans_of(replace(FACTS, segments=frozenset({NOW, NEXT, "foreign"}), lineage=lineage))
    assert (orphan.kind, orphan.name, orphan.age_ms) == (OrphanKind.SEGMENT, NEXT, 3 * HOUR_MS)


def test_a_hidden_segment_stays_that_an_entry_a_snapshot_or_the_open_session_may_need() -> None:
    taken_back = entry(LineageState.REVERTED, {NOW}, {NEXT})
    there = frozenset({NOW, NEXT})
    for state in (LineageState.IN_PROGRESS, LineageState.COMPLETED):
        for names in ({NEXT}, set[str]()), (set[str](), {NEXT}):
            live = Lineage((taken_back, entry(state, *names)))
            hidden = found(segments=there, lineage=live)
            assert (OrphanKind.SEGMENT, NEXT) not in hidden
    lineage = Lineage((taken_back,))
    assert found(segments=there, lineage=lineage, session=OPEN) == []
    known = replace(KEPT, segments=frozenset({NOW, NEXT}))
    assert found(segments=there, lineage=lineage, kept=known) == []
    assert found(segments=there, lineage=lineage, kept=None) == []


def test_a_shadow_table_that_an_audit_left() -> None:
    assert found(shadow="t_audit_shadow") == [(OrphanKind.SHADOW, "t_audit_shadow")]


def test_session_nodes_beyond_the_newest_two_go_but_for_the_open_one() -> None:
    nodes = ("cp1", "cp2", "cp3", "cp4")
    assert found(nodes=nodes) == [(OrphanKind.NODE, "cp1"), (OrphanKind.NODE, "cp2")]
    assert (OrphanKind.NODE, "cp1") not in found(nodes=nodes, session=replace(OPEN, id="cp1-aaaaaa", seq=1))


def test_tars_that_neither_a_kept_snapshot_nor_the_open_session_names() -> None:
    there = FACTS.staged | tars(OLD, NEXT)
    names = [(OrphanKind.TAR, key) for key in sorted(tars(OLD))]
    assert found(staged=there, session=OPEN, segments=frozenset({NOW})) == names
    assert len(found(staged=there)) == 4


def test_what_is_not_provably_ours_stays() -> None:
    strange = staged(
        "segments/notes.txt",
        "segments/u__cp1-aaaaaa_0_0_0.tar.gz",
        "segments/by_hand.tar.gz",
        "sessions/mine/plan-0",
        "snapshots/readme.md",
        "backup.zip",
    )
    assert found(staged=FACTS.staged | strange) == []


def test_old_snapshots_and_rows_that_no_header_names() -> None:
    header = f"snapshots/1-{HASH}.json"
    rows = f"snapshots/1-{'1' * 64}.parquet"
    expired = (SnapshotHeader(SnapshotRef(header, HASH), 1, 0),)
    there = FACTS.staged | staged(header, rows)
    assert found(staged=there, expired=expired) == [(OrphanKind.SNAPSHOT, header), (OrphanKind.ROWS, rows)]


def test_rows_that_a_kept_snapshot_shares_stay() -> None:
    """A driver that died in its last step left a second header of the same rows."""
    header = f"snapshots/2-{'1' * 64}.json"
    expired = (SnapshotHeader(SnapshotRef(header, "1" * 64), 2, 0),)
    assert found(staged=FACTS.staged | staged(header), expired=expired) == [(OrphanKind.SNAPSHOT, header)]


def test_objects_of_sessions_that_nothing_comes_from() -> None:
    gone = "sessions/cp0-eeeeee/files/x.json"
    kept = "sessions/cp1-aaaaaa/files/x.json"  # its node is still there
    opened = "sessions/cp3-cccccc/plan-0-x.parquet"
    there = FACTS.staged | staged(gone, kept, opened)
    assert found(staged=there, session=OPEN) == [(OrphanKind.SESSION, gone)]
    assert found(staged=there, session=OPEN, hold="sessions/cp0-eeeeee/hold-x.json") == []


ASIDE = f"sessions/cp2-bbbbbb/bad-rows/{'a' * 16}-{'b' * 12}-0.parquet"
PUBLISHED = BadRowRetention(30, "", frozenset({f"{'a' * 16}-{'b' * 12}"}))


def test_rows_put_aside_go_when_their_days_are_over_though_their_session_is_kept() -> None:
    there = FACTS.staged | staged(ASIDE)
    assert found(staged=there, bad_rows=PUBLISHED) == []
    late = 31 * 24 * HOUR_MS
    (orphan,) = orphans_of(replace(FACTS, staged=there, bad_rows=PUBLISHED, now_ms=late))
    assert (orphan.kind, orphan.name, orphan.is_due) == (OrphanKind.BAD_ROWS, ASIDE, True)
    assert orphan.may_go(grace_ms=99 * late)
    opened = replace(PUBLISHED, open_session="cp2-bbbbbb")
    assert found(staged=there, bad_rows=opened, now_ms=late) == []
    assert found(staged=there, bad_rows=PUBLISHED, now_ms=late, kept=None) == []


def test_rows_put_aside_go_with_their_file_after_the_grace_time() -> None:
    there = FACTS.staged | staged(ASIDE)
    (orphan,) = orphans_of(replace(FACTS, staged=there))
    assert (orphan.kind, orphan.name, orphan.is_due) == (OrphanKind.BAD_ROWS, ASIDE, False)
    assert not orphan.may_go(4 * HOUR_MS)
    assert orphan.may_go(3 * HOUR_MS)


def test_where_nobody_knows_what_the_snapshots_need_nothing_that_is_staged_goes() -> None:
    part = f"listings/part-{'1' * 32}.arrow"
    probe = f".pinot-assets-probe-{'a' * 32}"
    litter = staged("sessions/cp0-eeeeee/plan-0", f"snapshots/1-{HASH}.parquet", part, probe)
    assert found(staged=tars(OLD, NEXT) | litter, kept=None, now_ms=99 * HOUR_MS) == []


def test_a_part_of_a_listing_goes_when_no_sweep_took_it_away_for_a_day() -> None:
    part = KeptParts(new_memory()).put(b"").key
    there = FACTS.staged | staged(part, "listings/mine.arrow")
    assert found(staged=there) == []
    late = 25 * HOUR_MS + 1
    assert found(staged=there, now_ms=late) == [(OrphanKind.LISTING, part)]
    goes_on = {f"listings/part-{'1' * 32}.arrow": Fingerprint(10, 2 * HOUR_MS * 1000)}
    assert found(staged=there | goes_on, now_ms=late) == []


def test_what_a_dead_probe_left() -> None:
    probe = f".pinot-assets-probe-{'a' * 32}"
    assert found(staged=FACTS.staged | staged(probe)) == [(OrphanKind.PROBE, probe)]
