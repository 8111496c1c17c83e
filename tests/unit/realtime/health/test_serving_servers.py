"""Servers that are dead, disabled or STARTING, and uploads that were left behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.realtime.memory import MINUTE_MS, NOW_MS, S1, S2, FakeRealtime

from pinot_assets.core.check_result import Severity
from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.realtime.health.serving import servers, tmp_uploads
from pinot_assets.source import open_store


def test_all_serve() -> None:
    assert (servers(FakeRealtime().look()).passed, servers(FakeRealtime().look()).found) == (True, 2)


def test_a_dead_server_since_when() -> None:
    pinot = FakeRealtime()
    pinot.kill(S2, ago_ms=90_000)
    answer = servers(pinot.look())
    assert answer.severity is Severity.ERROR
    assert f"{S2} (for 90 s)" in answer.message


def test_one_that_is_starting_is_given_its_time() -> None:
    pinot = FakeRealtime()
    pinot.servers[S2].ready = False
    pinot.servers[S2].live_since = NOW_MS - MINUTE_MS
    assert servers(pinot.look()).severity is Severity.WARN
    pinot.servers[S2].live_since = NOW_MS - 11 * MINUTE_MS
    assert servers(pinot.look()).severity is Severity.ERROR


def test_all_starting_while_a_segment_is_committing() -> None:
    pinot = FakeRealtime()
    pinot.segment(status="COMMITTING", states={})
    for server in pinot.servers.values():
        server.ready = False
        server.live_since = NOW_MS - MINUTE_MS
    answer = servers(pinot.look())
    assert answer.severity is Severity.ERROR
    assert "they may wait for a COMMITTING segment that no server has, 600 s for each" in answer.message
    assert "pauseless.download.timeoutSeconds" in answer.next_step


def test_disabled_and_silent_ones() -> None:
    pinot = FakeRealtime()
    pinot.servers[S1].enabled = False
    pinot.servers[S2].ready = None
    answer = servers(pinot.look())
    assert answer.severity is Severity.WARN
    assert f"1 server is disabled: {S1}" in answer.message
    assert f"not known whether they serve: {S2}" in answer.message


def test_uploads_that_were_left_behind(tmp_path: Path) -> None:
    folder = tmp_path / "clicks"
    folder.mkdir()
    (folder / "clicks__0__0__20260202T0240Z").write_bytes(b"whole")
    (folder / "clicks__0__1__20260202T0240Z.tmp.12-34").write_bytes(b"half")
    pinot = FakeRealtime()
    pinot.now_ms = int((folder / "clicks__0__1__20260202T0240Z.tmp.12-34").stat().st_mtime * 1000) + 1000
    store = open_store(str(tmp_path), {}, UNLIMITED)
    assert tmp_uploads(pinot.look(store)).message == "no upload was left behind; 1 upload has not ended"
    pinot.now_ms += 61 * MINUTE_MS
    answer = tmp_uploads(pinot.look(store))
    assert (answer.passed, answer.found) == (False, 1)
    assert answer.numbers["tmp_uploads_bytes"] == 4
    assert "clicks__0__1" in answer.message
    assert "by hand" in answer.next_step
    pinot.segment(0, 1)
    assert "repair" in tmp_uploads(pinot.look(store)).next_step


def test_an_upload_that_a_segment_names_is_no_orphan(tmp_path: Path) -> None:
    pinot = FakeRealtime()
    file = tmp_path / "clicks" / "clicks__0__0__20260202T0240Zb9f485c9-eb33-4259-9670-52232d4df2b3"
    file.parent.mkdir()
    file.write_bytes(b"whole")
    pinot.now_ms = int(file.stat().st_mtime * 1000) + 61 * MINUTE_MS
    name = pinot.segment(url=file.as_uri())
    store = open_store(str(tmp_path), {}, UNLIMITED)
    assert len(pinot.look(store).tmp_uploads) == 1
    assert tmp_uploads(pinot.look(store)).passed
    pinot.nodes[name].fields["segment.download.url"] = ""
    assert not tmp_uploads(pinot.look(store)).passed


@pytest.mark.parametrize("store", [None, "/nowhere/at/all"])
def test_a_deep_store_that_cannot_be_read(store: str | None) -> None:
    state = FakeRealtime().look(open_store(store, {}, UNLIMITED) if store else None)
    assert (state.tmp_uploads, "tmp_uploads" in state.unread) == ((), True)
