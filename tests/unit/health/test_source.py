"""The snapshot beside the listing: missing, stale, extra, held."""

from __future__ import annotations

from fakes.looked import looked

from pinot_assets.core.check_result import HOUR_MS, CheckResult, Severity, unknown
from pinot_assets.health import source
from pinot_assets.health.readings import SourceDifference, difference
from pinot_assets.health.source import NAME, Lasting, lasts, seen_again
from pinot_assets.session.values.hold import NO_HOLD, Hold
from pinot_assets.snapshot.receipt import Fingerprint
from pinot_assets.source import Inventory, SourceFile
from pinot_assets.source.readiness import Readiness, Unready

V1, V2 = Fingerprint(1, 1), Fingerprint(1, 2)


def snapshot_equals_source(found: SourceDifference, mode: str = "sync") -> CheckResult:
    return source.snapshot_equals_source(looked(mode=mode, difference=found))


def listed(*unready: str, **versions: Fingerprint) -> Readiness:
    """A judged listing; what is `unready` is new if it is not among the versions, else being rewritten."""
    files = {f"s/{name}": SourceFile(f"s/{name}", version) for name, version in versions.items()}
    inventory = Inventory(files, 0, "")
    told = [Unready(f"s/{name}", "is 1 s old") for name in unready]
    waiting = tuple(u for u in told if u.uri in files)
    return Readiness(inventory, inventory, tuple(u for u in told if u not in waiting), waiting)


def test_equal() -> None:
    answer = snapshot_equals_source(difference({"s/a": V1}, listed(a=V1), NO_HOLD))
    assert (answer.passed, answer.expected, answer.found) == (True, 1, 1)


def test_missing_stale_and_extra_are_named_and_counted() -> None:
    found = difference({"s/old": V1, "s/same": V1, "s/gone": V1}, listed(old=V2, same=V1, new=V1), NO_HOLD)
    answer = snapshot_equals_source(found)
    assert (answer.passed, answer.severity) == (False, Severity.WARN)
    assert (answer.expected, answer.found) == (3, 1)
    assert answer.message == "1 missing (new); 1 stale (old); 1 extra (gone)"
    assert "pinot-assets run t" in answer.next_step
    assert answer.numbers == {
        "files_missing": 1,
        "files_stale": 1,
        "files_extra": 1,
        "files_held": 0,
        "files_unready": 0,
    }


def test_what_is_still_being_written_is_not_missing_yet() -> None:
    found = difference({"s/a": V1}, listed("new", "a", a=V2), NO_HOLD)
    assert (found.missing, found.stale, found.extra, found.unready) == ((), (), (), 2)
    assert snapshot_equals_source(found).passed


def test_append_never_takes_rows_away_so_a_deleted_file_is_no_fault() -> None:
    found = difference({"s/gone": V1}, listed(), NO_HOLD)
    answer = snapshot_equals_source(found, "append")
    assert answer.passed
    assert answer.numbers["files_extra"] == 1


def test_what_a_rollback_holds_back_is_told_with_the_way_to_let_it_in() -> None:
    hold = Hold(files={"s/a": V2.token, "s/new": V1.token}, removals=("s/gone",))
    found = difference({"s/a": V1, "s/gone": V1}, listed(a=V2, new=V1), hold)
    assert (found.missing, found.stale, found.extra, found.held) == ((), (), (), 3)
    answer = snapshot_equals_source(found)
    assert not answer.passed
    assert "3 held back by a rollback" in answer.message
    assert "pinot-assets resume t" in answer.next_step


def test_a_held_file_that_changed_since_waits_like_any_other() -> None:
    hold = Hold(files={"s/a": V2.token}, removals=())
    found = difference({"s/a": V1}, listed(a=Fingerprint(1, 3)), hold)
    assert (found.stale, found.held) == (("s/a",), 0)


T0 = 1_700_000_000_000


def test_what_is_not_known_is_an_error_after_an_hour_and_says_since_when() -> None:
    answer = unknown(NAME, "no listing", "bring it back")
    assert lasts(answer, T0, T0 + HOUR_MS - 1) == answer
    lasting = lasts(answer, T0, T0 + HOUR_MS)
    assert (lasting.passed, lasting.known, lasting.severity) == (False, False, Severity.ERROR)
    assert isinstance(lasting, Lasting)
    assert lasting.since_ms == T0
    assert lasting.message == "not known: no listing; for 1.0 h, since 2023-11-14 22:13:20 UTC"
    assert lasting.next_step.startswith("remove the cause (bring it back); ")


def test_what_is_known_stays_as_it_is_however_long_it_was_not() -> None:
    answer = snapshot_equals_source(difference({}, listed(a=V1), NO_HOLD))
    assert lasts(answer, T0, T0 + 9 * HOUR_MS) == answer


def test_the_end_of_it_passes_and_has_no_numbers() -> None:
    answer = seen_again(T0, T0 + 50 * HOUR_MS, "1 new; launched")
    assert (answer.passed, answer.known) == (True, False)
    assert answer.message == (
        "the table could be read again at 2023-11-17 00:13:20 UTC, after 2.1 days: 1 new; launched"
    )
