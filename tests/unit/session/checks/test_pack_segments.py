from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import SwitchConflict
from pinot_assets.session.checks.pack_segments import expired_packs
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.snapshot.packs import PublishedPack
from pinot_assets.snapshot.receipt import Output

DAY = 86_400_000
KEPT: JsonObject = {"segmentsConfig": {"retentionTimeUnit": "DAYS", "retentionTimeValue": "7"}}


def pack(number: int, *ends_ms: int | None) -> PublishedPack:
    outputs = tuple(
        Output(f"t__cp1_{number}_{k}", 1, 1, "", 1, "", "", end_ms=end) for k, end in enumerate(ends_ms)
    )
    return PublishedPack("cp1-00000a", number, "0" * 64, 1, 1, outputs)


def context(config: JsonObject, *there: PublishedPack) -> TriggerContext:
    names = frozenset(output.segment for one in there for output in one.outputs)
    made = SimpleNamespace(
        table="t_OFFLINE",
        pinot=SimpleNamespace(all_segments=lambda table: names),
        read_table_config=lambda: config,
        clients=SimpleNamespace(now_ms=lambda: 100 * DAY),
        lease=SimpleNamespace(assert_held=lambda: None),
    )
    return cast("TriggerContext", made)


def test_packs_that_are_there_are_not_looked_at() -> None:
    assert expired_packs(context({}, pack(1, 5), pack(2, 5)), [pack(1, 5), pack(2, 5)]) == frozenset()


def test_a_pack_whose_newest_time_is_past_the_retention_has_expired() -> None:
    old = pack(1, 92 * DAY, 90 * DAY)
    assert expired_packs(context(KEPT), [old]) == {old.name}


@pytest.mark.parametrize(
    ("config", "lost"),
    [
        (KEPT, pack(1, 94 * DAY)),
        (KEPT, pack(1, 90 * DAY, 94 * DAY)),
        (KEPT, pack(1, None)),
        ({}, pack(1, 90 * DAY)),
    ],
)
def test_any_other_lost_segment_pauses_the_table_by_its_name(config: JsonObject, lost: PublishedPack) -> None:
    with pytest.raises(SwitchConflict, match="t__cp1_1_0") as paused:
        expired_packs(context(config, pack(2, 5)), [pack(2, 5), lost])
    assert "rollback" in str(paused.value.hint)
