"""All checks together: those that cannot be made say so."""

from __future__ import annotations

from dataclasses import replace

from fakes.realtime.memory import FakeRealtime

from pinot_assets.realtime.health.all_checks import CHECKS, examine_state
from pinot_assets.realtime.model.settings import ClusterSettings, RealtimeSettings
from pinot_assets.realtime.model.state import RealtimeState


def healthy() -> FakeRealtime:
    pinot = FakeRealtime()
    pinot.segment(0, 0)
    pinot.segment(0, 1, "IN_PROGRESS", start=100, end=200)
    return pinot


def test_a_healthy_table_passes_them_all() -> None:
    state = replace(healthy().look(), unread={})
    assert [answer.name for answer in examine_state(state) if not answer.passed] == []


def test_each_check_has_a_name_of_its_own_and_numbers_that_stay() -> None:
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    state = replace(healthy().look(), unread={})
    pinot = healthy()
    pinot.kill("Server_host1_8098")
    pinot.segment(0, 0, url="")
    other = replace(pinot.look(), unread={})
    for well, hurt in zip(examine_state(state), examine_state(other), strict=True):
        assert (well.name, set(well.numbers)) == (hurt.name, set(hurt.numbers))


def test_what_could_not_be_read_is_not_known_and_never_well() -> None:
    pinot = healthy()
    pinot.away |= {"/tables/clicks_REALTIME/consumingSegmentsInfo"}
    answers = {answer.name: answer for answer in examine_state(pinot.look())}
    assert not answers["consumption_lag"].known
    assert "refused" in answers["consumption_lag"].message
    assert not answers["tmp_uploads"].known
    assert answers["replicas"].passed


def test_an_empty_table_and_a_check_that_breaks() -> None:
    state = RealtimeState("t_REALTIME", 0, RealtimeSettings(replication=1), ClusterSettings())
    by_name = {answer.name: answer for answer in examine_state(state)}
    assert not by_name["answers"].known
    assert all(answer.passed for name, answer in by_name.items() if name not in ("answers", "consumption"))
    broken = replace(state, segments=(None,))  # type: ignore[arg-type]
    assert "fault of the check itself" in examine_state(broken)[0].next_step
