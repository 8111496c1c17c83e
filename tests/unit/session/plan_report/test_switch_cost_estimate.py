"""What is estimated never looks like what was counted."""

from __future__ import annotations

from pinot_assets.session.plan_report.switch_cost import Estimate, at_least, cost_of_files


def test_files_that_are_built_are_known() -> None:
    assert cost_of_files(7, 0, 0, None) == Estimate(7)
    assert Estimate(7).exact


def test_files_to_read_are_estimated_from_the_ledger() -> None:
    found = cost_of_files(7, 1000, 2, 0.02)
    assert (found.total, found.known, found.exact) == (27, 7, False)
    assert not cost_of_files(7, 10, 1, 0.0).exact  # an estimate of nothing is one


def test_without_a_ledger_nothing_is_guessed() -> None:
    found = cost_of_files(7, 1000, 2, None)
    assert (found.total, found.known, found.exact) == (None, 7, False)
    assert found == at_least(7)


def test_sums_keep_what_they_are() -> None:
    assert cost_of_files(7, 1000, 2, 0.02).plus(3).times(2) == Estimate(20, 40, exact=False)
    assert at_least(7).plus(3).times(2) == at_least(20)
