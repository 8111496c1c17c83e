"""When a session with trouble that passes by itself is tried again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pinot_assets import errors
from pinot_assets.errors import (
    BuildError,
    ListingFailed,
    PinotAssetsError,
    SettingError,
    SourceError,
    StoreConflict,
)
from pinot_assets.session.values.state import Mode, ObjectRef, Session
from pinot_assets.session.values.trouble import again_ms, aged, causes, has_lasted, may_pass, passes, since_ms
from pinot_assets.snapshot.receipt import Failure

MINUTE = 60_000
T0 = 1_700_000_000_000
SESSION = Session("cp1-aaaaaa", 1, Mode.SYNC, "f", T0, ObjectRef("k", "0"), trouble_since_ms=T0)


def failed(*codes: str) -> list[Failure]:
    return [Failure(f"F{n}", n, 0, code, "") for n, code in enumerate(codes)]


def test_it_is_tried_again_after_twice_as_long_up_to_a_quarter_of_an_hour() -> None:
    at, waits = T0, []
    for _ in range(8):
        following = again_ms(replace(SESSION, attempt_started_ms=at))
        waits.append((following - at) // MINUTE)
        at = following
    assert waits == [1, 2, 4, 8, 15, 15, 15, 15]


def test_the_first_wait_begins_with_the_failure_not_with_a_long_build() -> None:
    assert again_ms(replace(SESSION, attempt_started_ms=T0 - 600 * MINUTE)) == T0 + MINUTE


def test_of_an_older_driver_the_last_attempt_tells() -> None:
    old = replace(SESSION, trouble_since_ms=0, attempt_started_ms=T0 + 5)
    assert since_ms(old) == T0 + 5
    assert again_ms(old) == T0 + 5 + MINUTE
    assert not has_lasted(old.trouble_since_ms, T0 + 600 * MINUTE)


def test_it_lasts_after_an_hour() -> None:
    assert not has_lasted(SESSION.trouble_since_ms, T0 + 60 * MINUTE - 1)
    assert has_lasted(SESSION.trouble_since_ms, T0 + 60 * MINUTE)


def test_one_failure_that_does_not_pass_is_enough() -> None:
    assert passes(failed("VANISHED", "STORE", "CHANGED_DURING_READ", "OUT_OF_MEMORY"))
    assert not passes(failed("VANISHED", "UNREADABLE"))
    assert not passes(failed("of a newer release"))
    assert not passes(())
    assert causes(failed("STORE", "VANISHED", "STORE")) == "2 STORE, 1 VANISHED"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (SourceError(""), True),
        (ListingFailed(""), True),
        (SettingError(""), False),
        (StoreConflict(""), False),
        (BuildError(""), False),
    ],
)
def test_a_store_that_does_not_answer_may_pass(error: PinotAssetsError, expected: bool) -> None:
    assert may_pass(error) is expected


def test_each_error_of_a_store_is_classed_on_purpose() -> None:
    """What ends a build and may pass spends no retry and is tried again: a new class has to be put here."""
    passing = {"SourceError", "ListingFailed", "SourceChanged", "StreamUnreadable"}
    staying = {"SettingError", "StoreConflict", "TooLarge"}
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    found = {kind.__name__: kind for kind in kinds if issubclass(kind, SourceError)}
    assert found.keys() == passing | staying
    assert {name for name, kind in found.items() if may_pass(kind(""))} == passing
    others = [kind for kind in kinds if issubclass(kind, PinotAssetsError) and kind not in found.values()]
    assert not [kind for kind in others if may_pass(kind(""))]


def test_an_error_that_is_met_at_every_try_says_for_how_long() -> None:
    lost = ListingFailed("no listing", why="it is gone", hint="bring it back")
    assert aged(lost, T0, T0) == str(lost)
    assert aged(lost, T0, T0 + 72 * MINUTE) == (
        "no listing: it is gone; for 1.2 h, since 2023-11-14 22:13:20 UTC\n  → bring it back"
    )
    assert aged(SourceError("away"), T0, T0 + MINUTE) == "away; for 1 min, since 2023-11-14 22:13:20 UTC"


def test_trouble_lasts_after_an_hour() -> None:
    assert not has_lasted(T0, T0 + 60 * MINUTE - 1)
    assert has_lasted(T0, T0 + 60 * MINUTE)
    assert not has_lasted(0, T0)
