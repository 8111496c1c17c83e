"""The hash of a plan: the same for the same world, and one that tells what is another."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PlanOutdated
from pinot_assets.session.plan_report.planned_run import PARTS, SHORTEST, PlanBasis

VALUES: JsonObject = {name: [name, 1] for name in PARTS}


def basis(**changed: Any) -> PlanBasis:
    return PlanBasis.of(**VALUES | changed)


def refusal(now: PlanBasis, wanted: str) -> str:
    with pytest.raises(PlanOutdated) as refused:
        now.require("t", wanted)
    return str(refused.value)


def test_equal_worlds_have_equal_hashes_whatever_the_order_of_their_keys() -> None:
    assert basis(spec={"a": 1, "b": 2}).hash == basis(spec={"b": 2, "a": 1}).hash
    assert re.fullmatch("[0-9a-f]{40}", basis().hash)


@pytest.mark.parametrize("part", PARTS)
def test_every_part_changes_the_first_digits(part: str) -> None:
    """Eight are enough to run a plan, so what it rests on must be in them."""
    assert basis(**{part: "another"}).hash[:SHORTEST] != basis().hash[:SHORTEST]


@pytest.mark.parametrize("length", [8, 9, 16, 20, 39, 40])
def test_the_first_digits_are_enough(length: int) -> None:
    now = basis()
    now.require("t", now.hash[:length])
    now.require("t", f" {now.hash[:length].upper()}\n")


@pytest.mark.parametrize("wanted", ["", "0123456", "xyzxyzxyz", "0" * 41, "../../etc"])
def test_what_is_no_hash_runs_nothing(wanted: str) -> None:
    assert "is not the hash of a plan" in refusal(basis(), wanted)


@pytest.mark.parametrize("part", PARTS)
def test_all_digits_tell_what_changed(part: str) -> None:
    said = refusal(basis(**{part: "another"}), basis().hash)
    assert f"changed since then: {PARTS[part]}\n" in said
    assert "`pinot-assets plan t` shows" in said


def test_several_changes_are_all_told() -> None:
    said = refusal(basis(files=[], hold=[]), basis().hash)
    assert f"{PARTS['files']}; {PARTS['hold']}" in said


def test_few_digits_cannot_tell_what_changed() -> None:
    assert "all 40 digits of the hash would show what" in refusal(basis(files=[]), basis().hash[:12])


def test_a_hash_of_something_else_is_told_apart() -> None:
    assert "another table's, or mistyped" in refusal(basis(), "0" * 40)
    mistyped = basis().hash[::-1][:16] + basis().hash[16:]
    assert "another table's, or mistyped" in refusal(basis(), mistyped)
