"""The record of a stack: whole, private, and honest about what is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from pinot_assets.errors import LocalStackError
from pinot_assets.settings.local_stack import ProcessRecord, Record, load_record, load_state, save_record

PORTS = {
    "zookeeper": {"client": 1},
    "controller": {"http": 2},
    "broker-1": {"http": 3},
    "broker-2": {"http": 4},
    "server-1": {"netty": 5, "admin": 6, "grpc": 7},
    "server-2": {"netty": 8, "admin": 9, "grpc": 10},
    "kafka": {"client": 11, "quorum": 12},
    "s3": {"http": 13},
}


def started(*names: str) -> Record:
    return Record(
        pinot_version="0.11.0",
        ports=PORTS,
        processes={name: ProcessRecord(pid=1, create_time=1.5) for name in names},
    )


def test_a_record_comes_back_as_saved_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    record = started("controller")
    save_record(tmp_path / "home", record)
    assert load_record(tmp_path / "home") == record
    assert (tmp_path / "home" / "state.json").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["state.json"]


def test_no_stack_is_none(tmp_path: Path) -> None:
    assert load_state(tmp_path) is None
    save_record(tmp_path, started())  # stopped: it keeps its ports
    assert load_state(tmp_path) is None


def test_the_addresses_of_a_started_stack(tmp_path: Path) -> None:
    save_record(tmp_path, started("controller", "kafka"))
    state = load_state(tmp_path)
    assert state is not None
    assert state.cluster == "pinot"
    assert state.zookeeper == "127.0.0.1:1"
    assert state.controller_url == "http://127.0.0.1:2"
    assert state.broker_urls == ["http://127.0.0.1:3", "http://127.0.0.1:4"]
    assert state.server_admin_urls == ["http://127.0.0.1:6", "http://127.0.0.1:9"]
    assert state.server_grpc == ["127.0.0.1:7", "127.0.0.1:10"]
    assert state.kafka_bootstrap == "127.0.0.1:11"
    assert (state.s3_endpoint, state.s3_access_key, state.s3_secret_key) == (None, None, None)


def test_the_secret_is_usable_but_not_shown(tmp_path: Path) -> None:
    record = started("s3")
    save_record(tmp_path, record)
    state = load_state(tmp_path)
    assert state is not None
    assert state.s3_secret_key == record.s3_secret_key
    assert record.s3_secret_key not in repr(state)
    assert record.s3_secret_key not in repr(record)


def test_a_damaged_record_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"stack": ')
    with pytest.raises(LocalStackError, match="cannot be read") as raised:
        load_state(tmp_path)
    assert str(tmp_path / "state.json") in raised.value.what
