from __future__ import annotations

import math
import random
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinot_assets.session.values.merges import (
    Group,
    MergeBudget,
    OpenPack,
    compaction_of,
    is_open,
    level_of,
    merges_of,
    size_of,
)

TARGET = 4**7 * 1000
ENOUGH = MergeBudget(10**18, 10**6)


def pack(name: str, size: int, read: str = "r") -> OpenPack:
    return OpenPack(name, size, read, ())


def named(groups: list[Group]) -> list[str]:
    return ["+".join(one.name or "new" for one in group) for group in groups]


@pytest.mark.parametrize(
    ("size", "level"), [(0, 0), (999, 0), (3999, 0), (4000, 1), (15_999, 1), (16_000, 2), (TARGET // 2, 6)]
)
def test_a_level_is_four_times_the_one_below(size: int, level: int) -> None:
    assert level_of(size, TARGET) == level


def test_a_pack_is_open_below_three_quarters_of_the_target() -> None:
    assert is_open(TARGET * 3 // 4 - 1, TARGET)
    assert not is_open(TARGET * 3 // 4, TARGET)


def test_two_of_one_level_merge_and_what_becomes_of_them_merges_on() -> None:
    packs = [pack("a", 7000), pack("b", 3000), pack("c", 2500), pack("", 100)]
    assert named(merges_of(packs, TARGET, ENOUGH)) == ["a+b+c"]
    assert named(merges_of([pack("a", 7000), pack("", 3000)], TARGET, ENOUGH)) == []


def test_closed_packs_and_those_read_otherwise_stay_apart() -> None:
    large = [pack("a", TARGET), pack("b", TARGET * 3 // 4)]
    assert merges_of(large, TARGET, ENOUGH) == []
    assert named(merges_of([pack("a", 10), pack("b", 10, "s"), pack("c", 10)], TARGET, ENOUGH)) == ["a+c"]


@pytest.mark.parametrize(
    ("budget", "groups"),
    [
        (MergeBudget(0, 9), []),
        (MergeBudget(5, 9), []),
        (MergeBudget(6, 9), ["b+new"]),
        (MergeBudget(6, 0), []),
        (MergeBudget(100, 1), []),
        (MergeBudget(16, 2), ["a+b+new"]),
    ],
)
def test_a_budget_ends_the_merges(budget: MergeBudget, groups: list[str]) -> None:
    packs = [pack("a", 10), pack("b", 6), pack("", 3)] if budget.bytes >= 16 else [pack("b", 6), pack("", 3)]
    assert named(merges_of(packs, TARGET, budget)) == groups


def test_a_compaction_spends_nothing_on_packs_that_stay_alone() -> None:
    packs = [*(pack(f"p{n}", 60) for n in range(3)), pack("s1", 10), pack("s2", 10)]
    assert named(compaction_of(packs, 100, MergeBudget(180, 1000))) == ["p2+s1+s2"]
    assert named(compaction_of(packs, 100, MergeBudget(70, 1000))) == ["p2+s1"]
    assert compaction_of(packs, 100, MergeBudget(0, 1000)) == []


@pytest.mark.parametrize("seed", range(20))
def test_what_is_written_again_stays_within_its_bound_and_few_packs_stay_open(seed: int) -> None:
    """L9: each session brings a pack; all that is written again for merges alone is counted."""
    drawn = random.Random(seed)
    scale = drawn.choice([1, 50, 2000, 40_000])
    published: list[int] = []
    came: list[int] = []
    written, least = 0, TARGET // 4**7
    for _ in range(400):
        size = drawn.randint(1, min(1000 * scale, TARGET))
        came.append(size)
        packs = [pack(f"p{number}", one) for number, one in enumerate(published)] + [pack("", size)]
        groups = merges_of(packs, TARGET, ENOUGH)
        merged = {one.name for group in groups for one in group}
        written += sum(one.bytes for group in groups for one in group if one.name)
        published = [one.bytes for one in packs if one.name not in merged]
        published += [size_of(group) for group in groups]
        assert sum(published) == sum(came), "every byte is in one pack"
        assert sum(is_open(one, TARGET) for one in published) <= 8
        assert max(published) < 1.5 * TARGET
    counted = sum(max(size, least) for size in came)
    usual = max(median(came), least)
    assert written <= 4 * counted * (1 + math.log(max(TARGET / usual, 1), 4))


def one_by_one(packs: list[OpenPack], target: int, budget: MergeBudget) -> list[Group]:
    """The definition of `merges_of`: the two oldest of the lowest level that has two, again and again."""
    groups: list[Group] = [(pack,) for pack in packs if is_open(pack.bytes, target)]
    bytes_left, names_left, stopped = budget.bytes, budget.names, set[Any]()
    while True:
        places: dict[Any, list[Group]] = {}
        for group in groups:
            place = (level_of(size_of(group), target), group[0].kind)
            if is_open(size_of(group), target) and place not in stopped:
                places.setdefault(place, []).append(group)
        if not (full := [place for place, of_place in places.items() if len(of_place) > 1]):
            return [group for group in groups if len(group) > 1]
        first, second = places[min(full)][:2]
        alone = [group[0] for group in (first, second) if len(group) == 1 and group[0].name]
        cost = sum(pack.bytes for pack in alone)
        if cost > bytes_left or len(alone) > names_left:
            stopped.add(min(full))
            continue
        bytes_left, names_left = bytes_left - cost, names_left - len(alone)
        groups = [(*first, *second) if group is first else group for group in groups if group is not second]


@given(
    packs=st.lists(
        st.tuples(
            st.integers(1, 2_000), st.sampled_from("ab"), st.sampled_from(["", "x", "y"]), st.booleans()
        ),
        max_size=40,
    ),
    budget=st.builds(MergeBudget, st.integers(0, 5_000), st.integers(0, 12)),
)
def test_merges_are_those_of_their_definition(
    packs: list[tuple[int, str, str, bool]], budget: MergeBudget
) -> None:
    given_packs = [
        OpenPack(f"p{n}" if published else "", size, read, (), cell)
        for n, (size, read, cell, published) in enumerate(packs)
    ]
    for target in (1_000, 20_000):
        assert merges_of(given_packs, target, budget) == one_by_one(given_packs, target, budget)
