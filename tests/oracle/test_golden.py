"""What our writer makes for servers of 1.6 is what Pinot's own builder made, by its hashes.

The builder of 1.6 is in no package registry as a whole; `make oracle-1.6` asks one that was compiled here.
"""

from __future__ import annotations

import pytest
from oracle import golden
from oracle.seeded_tables import seeded_table

GOLDEN = golden.read()


def test_the_list_has_every_table() -> None:
    assert [*GOLDEN] == [*range(golden.TABLES)]


@pytest.mark.parametrize("first", range(0, golden.TABLES, 50))
def test_tables_for_1_6_have_the_bytes_of_pinots_builder(first: int) -> None:
    seeds = range(first, first + 50)
    made = {seed: golden.hashes(golden.ours(seeded_table(seed))) for seed in seeds}
    assert made == {seed: GOLDEN[seed] for seed in seeds}
