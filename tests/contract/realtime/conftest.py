"""One fresh REALTIME table in a fake, or in a real Pinot that consumes from Kafka.

Two partitions, two replicas, a peer scheme; 500 rows make a segment. A fake's table and a real one have the
same face (`fakes.realtime.flowing.FakeClicks`, `fakes.realtime.kafka_table.Clicks`): `send`, `store_away`,
`look`, `until`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.realtime.flowing import FakeClicks, fake_clicks
from fakes.realtime.kafka_table import Clicks

from pinot_assets.local.pinot_build import jars_of, read_build
from pinot_assets.pinot.versions import release

OLD_FAKE = pytest.param("0.11.0", id="fake of 0.11.0")
FAKE = pytest.param("1.5.1", id="fake of 1.5.1")
# 0.11.0, or the Pinot that PINOT_HOME names.
HOME = os.environ.get("PINOT_HOME")
REAL = pytest.param(None, id="PINOT_HOME" if HOME else "0.11.0", marks=pytest.mark.integration)
REAL_ONE_IS_OLD = HOME is None or release(read_build(jars_of(Path(HOME))).version) < release("1.0")


def _subject(request: pytest.FixtureRequest) -> Iterator[FakeClicks | Clicks]:
    if request.param is None:
        yield request.getfixturevalue("clicks")
        return
    with fake_clicks(request.param) as clicks:
        yield clicks


lab = pytest.fixture(_subject, params=[OLD_FAKE, FAKE, REAL], name="lab")
"""Every subject."""
old_lab = pytest.fixture(_subject, params=[OLD_FAKE, *([REAL] if REAL_ONE_IS_OLD else [])], name="old_lab")
"""Those before 1.0; what came later is shown in `tests/integration/realtime`."""
