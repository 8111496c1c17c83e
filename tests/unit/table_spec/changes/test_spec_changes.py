"""Every kind of change of a spec has the verdict that the committed list names."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import pytest
from oracle.spec_change_kinds import KINDS, Kind

from pinot_assets.table_spec.changes.recipe import Recipe
from pinot_assets.table_spec.changes.spec_changes import SpecChange, Verdict, spec_changes, worst_verdict
from pinot_assets.table_spec.yaml.document import canonical_json


def keys(changes: tuple[SpecChange, ...]) -> list[str]:
    return [f"{change.column}: {change.setting}" for change in changes]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_each_kind_has_its_verdict(kind: Kind) -> None:
    changes = spec_changes(kind.before.recipe, kind.after.recipe, "1.5")
    assert sorted(keys(changes)) == sorted(kind.changes)
    assert worst_verdict(changes) == kind.verdict
    assert worst_verdict(spec_changes(kind.before.recipe, kind.after.recipe)) == kind.before_1_1
    for change in changes:
        assert change.before != change.now
        assert change.why
        assert not change.why.endswith(".")


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_fingerprints_tell_what_changed(kind: Kind) -> None:
    before, after = kind.before.recipe, kind.after.recipe
    assert (before.read == after.read) is (before.read_fingerprint == after.read_fingerprint)
    assert (before.write == after.write) is (before.write_fingerprint == after.write_fingerprint)
    assert (before == after) is not bool(kind.changes)


def test_the_list_has_enough_of_each_verdict() -> None:
    assert len(KINDS) >= 60
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    counts = Counter(kind.verdict for kind in KINDS)
    assert all(counts[verdict] >= 8 for verdict in Verdict)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_each_disagreement_with_pinot_has_its_reason(kind: Kind) -> None:
    assert bool(kind.disagrees) is ((kind.verdict == Verdict.RELOAD) is not kind.reloads)


def test_a_change_back_is_a_change_of_the_same_settings() -> None:
    recipes = [side.recipe for kind in KINDS for side in (kind.before, kind.after)]
    for one, other in itertools.combinations(recipes, 2):
        assert keys(spec_changes(one, other)) == keys(spec_changes(other, one))


def test_a_stored_recipe_is_the_same_recipe() -> None:
    for kind in KINDS:
        recipe = kind.after.recipe
        stored = Recipe(*(json.loads(canonical_json(part)) for part in (recipe.read, recipe.write)))
        assert stored == recipe
        assert spec_changes(recipe, stored) == ()
