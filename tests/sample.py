"""Which tests `make test` takes of those that are many of one kind; `make test-all` takes them all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest


def beyond_sample(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Return what is left out: of the tests of a module that are marked `one_in(n)`, all but every nth.

    A test that is named on its own is always the first of its module, and so is never left out.
    """
    seen = Counter[tuple[str, int]]()
    left_out = set()
    for item in items:
        marker = item.get_closest_marker("one_in")
        if marker is None:
            continue
        module, each = item.nodeid.partition("::")[0], marker.args[0]
        if seen[module, each] % each:
            left_out.add(item)
        seen[module, each] += 1
    return left_out
