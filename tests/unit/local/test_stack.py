"""`up` makes true what is not, `down` stops what was started, and neither touches anything else."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from fakes.apache_site import apache_site, files_of, packed
from fakes.toy_stack import Toy, set_pinot, write_distribution

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import LocalStackError
from pinot_assets.local import stack
from pinot_assets.local.stack import StartProgress
from pinot_assets.settings.local_stack import load_record, load_state

ALL = {"zookeeper", "controller", "broker-1", "broker-2", "server-1", "server-2"}
Executable = Callable[[str, str], Path]


def states(toy: Any) -> dict[str, str]:
    return {part.name: part.state for part in toy.stack().status()}


def kill(toy: Any, *names: str) -> None:
    for name in names:
        os.kill(toy.pids()[name], signal.SIGKILL)
    deadline = time.monotonic() + 10
    while set(names) & set(toy.pids()) and time.monotonic() < deadline:
        time.sleep(0.02)


def rewrite(home: Path, change: Callable[[JsonObject], None]) -> None:
    record = json.loads((home / "state.json").read_text())
    change(record)
    (home / "state.json").write_text(json.dumps(record))


def test_up_starts_all_and_says_where_it_is(toy: Any) -> None:
    state = toy.stack().up()
    assert set(toy.pids()) == ALL
    assert state == load_state(toy.home)
    assert state.pinot_version == "1.2.3"
    assert states(toy) == dict.fromkeys(ALL, "ready") | {"kafka": "stopped", "s3": "stopped"}


def test_nothing_starts_before_what_it_needs_is_ready(toy: Any) -> None:
    toy.lacks = {"zookeeper": ["an answer"] * 3, "controller": ["health"] * 3}
    toy.stack().up()
    assert toy.order.index("ready zookeeper") < toy.order.index("start controller")
    for name in ALL - {"zookeeper", "controller"}:
        assert toy.order.index("ready controller") < toy.order.index(f"start {name}")


def test_a_second_up_finds_the_first(toy: Any) -> None:
    first = toy.stack().up()
    pids = toy.pids()
    toy.order.clear()
    assert toy.stack().up() == first
    assert toy.pids() == pids
    assert not [step for step in toy.order if step.startswith("start")]


def test_up_repairs_only_what_is_dead_with_the_ports_it_had(toy: Any) -> None:
    first = toy.stack().up()
    before = toy.pids()
    kill(toy, "controller", "zookeeper")
    assert states(toy)["controller"] == "dead"
    assert toy.stack().up() == first
    changed = {name for name, pid in toy.pids().items() if before[name] != pid}
    assert changed == {"controller", "zookeeper"}


def test_an_optional_part_once_asked_for_is_repaired_like_the_others(toy: Any) -> None:
    assert toy.stack().up().s3_endpoint is None
    assert toy.stack().up(s3=True).s3_endpoint is not None
    kill(toy, "s3")
    assert toy.stack().up().s3_endpoint is not None
    assert states(toy)["s3"] == "ready"
    assert states(toy)["kafka"] == "stopped"


def test_servers_learn_of_the_deep_store_when_they_start_and_keep_it(toy: Any) -> None:
    toy.stack().up()
    with pytest.raises(LocalStackError, match="server-1 and server-2 run without a segment store"):
        toy.stack().up(segment_store=True)
    toy.stack().down()
    toy.stack().up(segment_store=True)
    assert toy.stack().up(segment_store=True) == toy.stack().up()
    record = load_record(toy.home)
    assert record is not None
    assert record.segment_store


def test_down_stops_all_in_order_and_keeps_data_and_ports(toy: Any) -> None:
    first = toy.stack().up(kafka=True, s3=True)
    pids = toy.pids()
    (toy.home / "data" / "controller" / "segment").write_text("kept")
    toy.reported.clear()
    toy.stack().down()
    assert not [pid for pid in pids.values() if psutil.pid_exists(pid) and _runs(pid)]
    stopped = [line.split()[0] for line in toy.reported]
    assert stopped[-1] == "zookeeper"
    assert stopped.index("server-2") < stopped.index("broker-1") < stopped.index("controller")
    assert stopped.index("controller") < stopped.index("kafka")
    assert load_state(toy.home) is None
    assert (toy.home / "data" / "controller" / "segment").read_text() == "kept"
    assert toy.stack().up(kafka=True, s3=True) == first


def _runs(pid: int) -> bool:
    return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_purge_deletes_what_the_stack_wrote_and_nothing_else(toy: Any) -> None:
    toy.stack().up()
    (toy.home / "notes.txt").write_text("mine")
    files = toy.home / "data" / "flights"  # where tables/flights.yaml looks for its input
    files.mkdir(parents=True)
    toy.stack().purge()
    assert sorted(path.name for path in toy.home.iterdir()) == ["data", "notes.txt"]
    assert list((toy.home / "data").iterdir()) == [files]


def test_down_without_a_stack_does_nothing(toy: Any) -> None:
    toy.stack().down()
    assert not toy.home.exists()


def test_down_never_stops_a_process_of_another(toy: Any) -> None:
    toy.stack().up()
    kill(toy, "server-1")
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as foreign:
        try:
            # The pid of the dead server went to another process, which has started later.
            rewrite(toy.home, lambda record: record["processes"]["server-1"].update(pid=foreign.pid))
            toy.stack().down()
            assert foreign.poll() is None
        finally:
            foreign.kill()


def test_a_process_whose_start_was_not_written_down_is_found_again(toy: Any) -> None:
    toy.stack().up()
    pids = toy.pids()
    rewrite(toy.home, lambda record: record["processes"].pop("broker-1"))  # as if killed in between
    toy.stack().up()
    assert toy.pids() == pids
    rewrite(toy.home, lambda record: record["processes"].pop("broker-1"))
    toy.stack().down()
    assert not _runs(pids["broker-1"]) if psutil.pid_exists(pids["broker-1"]) else True


def test_an_interrupted_up_leaves_nothing_unrecorded(toy: Any) -> None:
    def interrupt(doing: str) -> None:
        if doing.startswith("waiting for controller"):
            raise KeyboardInterrupt

    toy.lacks = {"controller": ["health"] * 100}
    with pytest.raises(KeyboardInterrupt):
        stack.Stack(toy.home, progress=StartProgress(doing=interrupt)).up()
    record = load_record(toy.home)
    assert record is not None
    assert {name: process.pid for name, process in record.processes.items()} == toy.pids()
    assert toy.pids()
    toy.stack().down()
    assert not toy.pids()


def test_a_part_that_ends_shows_its_log_and_the_rest_goes_on(toy: Any) -> None:
    toy.dies = {"controller"}
    with pytest.raises(LocalStackError, match="controller did not start") as raised:
        toy.stack().up()
    assert "cannot bind" in str(raised.value)
    assert str(toy.home / "logs" / "controller.log") in str(raised.value)
    assert states(toy)["zookeeper"] == "ready"
    toy.dies.clear()
    toy.stack().up()
    assert set(toy.pids()) == ALL


def test_a_part_that_never_gets_ready_is_given_up(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack, "_PATIENCE", 0.5)
    toy.lacks = {"broker-1": ["its tenant"] * 1000}
    with pytest.raises(
        LocalStackError, match="broker-1 did not start: it was not ready after 0 s: its tenant"
    ):
        toy.stack().up()
    assert states(toy)["broker-1"] == "starting"


def test_a_taken_port_of_a_new_stack_is_replaced(toy: Any) -> None:
    toy.dies = {"zookeeper"}
    with pytest.raises(LocalStackError):
        toy.stack().up()
    toy.dies.clear()
    record = load_record(toy.home)
    assert record is not None
    port = record.ports["zookeeper"]["client"]
    with socket.create_server(("127.0.0.1", port)):
        assert toy.stack().up().zookeeper != f"127.0.0.1:{port}"


def test_a_taken_port_of_a_stack_with_data_is_an_error_that_names_its_holder(toy: Any) -> None:
    port = int(toy.stack().up().zookeeper.split(":")[1])
    toy.stack().down()
    with socket.create_server(("127.0.0.1", port)):
        with pytest.raises(LocalStackError, match=f"uses port {port} of zookeeper") as raised:
            toy.stack().up()
        assert str(os.getpid()) in raised.value.what
        assert "--purge" in str(raised.value.hint)


def test_a_running_stack_is_not_repaired_with_another_version(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy.stack().up()
    kill(toy, "server-1")
    set_pinot(tmp_path / "pinot-1.3.0", monkeypatch)
    with pytest.raises(LocalStackError, match=r"is Pinot 1\.2\.3, not 1\.3\.0"):
        toy.stack().up()
    toy.stack().down()
    assert toy.stack().up().pinot_version == "1.3.0"


def test_a_release_that_was_named_stays_until_the_data_are_deleted(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PINOT_HOME")
    for version in ("1.5.1", "1.4.0"):
        write_distribution(toy.home / "cache" / "pinot" / f"apache-pinot-{version}-bin", version)
    assert toy.stack().up(pinot="1.5.1").pinot_version == "1.5.1"
    kill(toy, "server-1")
    assert toy.stack().up().pinot_version == "1.5.1"
    assert set(toy.pids()) == ALL
    toy.stack().down()
    assert toy.stack().up().pinot_version == "1.5.1"
    assert toy.stack().up(pinot="1.5.1").pinot_version == "1.5.1"
    with pytest.raises(LocalStackError, match=r"is Pinot 1\.5\.1, and not of --pinot 1\.4\.0") as raised:
        toy.stack().up(pinot="1.4.0")
    assert "local down" in str(raised.value.hint)
    toy.stack().down()
    assert toy.stack().up(pinot="1.4.0").pinot_version == "1.4.0"
    toy.stack().purge()
    record = load_record(toy.home)
    assert record is None


def test_a_release_is_fetched_from_the_sites_before_anything_starts(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PINOT_HOME")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    progress = StartProgress(done=toy.reported.append)
    with apache_site() as site:
        own = stack.Stack(toy.home, cache=toy.home / "cache", progress=progress, sites=site.sites)
        with pytest.raises(LocalStackError, match=r"there is no Pinot 1\.5\.1"):
            own.up(pinot="1.5.1")
        assert not toy.pids()
        record = load_record(toy.home)
        assert record is None, "what cannot be had is not remembered"
        site.publish("1.5.1", packed("1.5.1", files_of("1.5.1")))
        assert own.up(pinot="1.5.1").pinot_version == "1.5.1"
    assert toy.reported[0] == "fetching Pinot 1.5.1 from Apache's sites (about 1 GB, once per user)"


def test_pinot_home_and_a_release_are_two_pinots(toy: Toy, tmp_path: Path) -> None:
    with pytest.raises(LocalStackError, match=r"--pinot 1\.5\.1 and PINOT_HOME name two Pinots") as raised:
        toy.stack().up(pinot="1.5.1")
    assert str(tmp_path / "pinot-1.2.3") in str(raised.value.why)
    assert not toy.pids()


def test_pinot_home_goes_before_a_release_that_was_named_earlier(
    toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PINOT_HOME")
    write_distribution(toy.home / "cache" / "pinot" / "apache-pinot-1.5.1-bin", "1.5.1")
    toy.stack().up(pinot="1.5.1")
    set_pinot(tmp_path / "pinot-1.3.0", monkeypatch)
    kill(toy, "server-1")
    with pytest.raises(LocalStackError, match=r"is Pinot 1\.5\.1, not 1\.3\.0"):
        toy.stack().up()
    toy.stack().down()
    assert toy.stack().up().pinot_version == "1.3.0"
    record = load_record(toy.home)
    assert record is not None
    assert record.pinot_release == ""


def test_a_java_that_is_too_old_for_this_pinot_is_named_before_anything_starts(
    toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_pinot(tmp_path / "pinot-1.6.0-SNAPSHOT", monkeypatch, java=25)
    with pytest.raises(LocalStackError, match=r"Pinot 1\.6\.0-SNAPSHOT needs Java 25 or newer") as raised:
        toy.stack().up()
    assert "is version 17" in str(raised.value.why)
    assert not toy.pids()


@pytest.mark.parametrize(
    ("variable", "match"), [("JAVA_HOME", "has no Java"), ("PINOT_HOME", "has no Apache Pinot")]
)
def test_what_is_missing_is_told_before_anything_starts(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, match: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv(variable, str(tmp_path / "gone"))
        with pytest.raises(LocalStackError, match=match):
            toy.stack().up()
    assert not toy.pids()


def test_a_full_disk(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack, "MINIMUM_FREE_BYTES", 10**18)
    with pytest.raises(LocalStackError, match="too little disk space") as raised:
        toy.stack().up()
    assert "PINOT_ASSETS_HOME" in str(raised.value.hint)
    assert not toy.pids()


def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LocalStackError, match="cannot be used") as raised:
        stack.Stack(tmp_path / "file" / "home").up()
    assert "PINOT_ASSETS_HOME" in str(raised.value.hint)


def test_two_ups_at_once_start_one_stack(toy: Any) -> None:
    import threading

    errors: list[BaseException] = []

    def up() -> None:
        try:
            toy.stack().up()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=up) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(step for step in toy.order if step.startswith("start")) == sorted(f"start {n}" for n in ALL)


def test_each_part_has_a_folder_of_its_own_for_temporary_files(toy: Toy) -> None:
    toy.stack().up()
    for name, pid in toy.pids().items():
        assert f"-Djava.io.tmpdir={toy.home / 'tmp' / name}" in psutil.Process(pid).cmdline()
        (toy.home / "tmp" / name / "left").touch()
    kill(toy, "controller")
    toy.stack().up()
    assert {path.parent.name for path in toy.home.glob("tmp/*/left")} == ALL - {"controller"}
    toy.stack().purge()
    assert not (toy.home / "tmp").exists()
