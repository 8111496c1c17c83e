"""One fresh REALTIME table in a fake, or in a real Pinot 0.11.0 that consumes from Kafka.

Two partitions, two replicas, a peer scheme; 500 rows make a segment. A fake's table and a real one have the
same face (`fakes.realtime.flowing.FakeClicks`, `fakes.realtime.kafka_table.Clicks`): `send`, `store_away`,
`look`, `until`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fakes.realtime.flowing import FakeClicks, fake_clicks
from fakes.realtime.kafka_table import Clicks

OLD_FAKE = pytest.param("0.11.0", id="fake of 0.11.0")
FAKE = pytest.param("1.5.1", id="fake of 1.5.1")
REAL = pytest.param(None, id="0.11.0", marks=pytest.mark.integration)


def _subject(request: pytest.FixtureRequest) -> Iterator[FakeClicks | Clicks]:
    if request.param is None:
        yield request.getfixturevalue("clicks")
        return
    with fake_clicks(request.param) as clicks:
        yield clicks


lab = pytest.fixture(_subject, params=[OLD_FAKE, FAKE, REAL], name="lab")
"""Every subject."""
old_lab = pytest.fixture(_subject, params=[OLD_FAKE, REAL], name="old_lab")
"""Those of 0.11.0."""
