"""Events reach a receiver, or a warning tells why not; whatever was named, a run goes on as without it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.monitoring.webhook import SECRET, webhook
from fakes.stores.memory import new_memory
from fakes.tables import write_table

from pinot_assets.errors import PlanOutdated, SessionHeld
from pinot_assets.lineage_events import sending
from pinot_assets.lineage_events.sending import is_configured, lineage_after, place_of, schema_columns
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.outcome import StepRecord
from pinot_assets.session.values.state import Mode, ObjectRef, Outcome, Session, State
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.source import Fingerprint

CONTROLLER = "http://controller:9000"
NOW = 1_700_000_000_000
PLAN = ObjectRef("sessions/cp2-bbbbbb/plan-0", "0" * 64)
PUBLISHED = Session(
    "cp2-bbbbbb",
    2,
    Mode.SYNC,
    "f",
    NOW - 1000,
    PLAN,
    state=State.DONE,
    outcome=Outcome.PUBLISHED,
    done_ms=NOW + 1000,
)


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No transport but the test's; the client writes into the environment, and loggers are quietened."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    environ = dict(sending.os.environ)
    levels = {name: logging.getLogger(name).level for name in ("openlineage", "urllib3.connectionpool")}
    yield
    for name in sending.os.environ.keys() - environ.keys():
        del sending.os.environ[name]
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.fixture
def driver(tmp_path: Path) -> Any:
    """One that has published."""
    staging = Staging(new_memory())
    for seq, names in ((1, "a"), (2, "ab")):
        files = tuple(
            PublishedFile(f"s3://in/{n}", Fingerprint(1, 1), "h", 5, 0, f"cp{seq}-bbbbbb", ()) for n in names
        )
        staging.put_snapshot(Snapshot(seq, "t", f"cp{seq}-bbbbbb", "SYNC", "", None, "", "", NOW, files))
    store = SimpleNamespace(sessions=lambda: [replace(PUBLISHED, seq=1, done_ms=NOW - 1), PUBLISHED])
    return SimpleNamespace(
        spec=write_table(tmp_path, "t"),
        clients=SimpleNamespace(now_ms=lambda: NOW, staging=staging, store=store),
        steps={"publish": StepRecord(1.0, None)},
    )


def tell(driver: Any) -> list[str]:
    """What is warned of, after a run."""
    warnings: list[str] = []
    with lineage_after(driver, CONTROLLER, warnings.append):
        pass
    return warnings


def test_a_receiver_hears_of_the_sessions_of_this_run(driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with webhook() as hook:
        monkeypatch.setenv("OPENLINEAGE_URL", hook.url.partition("/services")[0])
        monkeypatch.setenv("OPENLINEAGE_ENDPOINT", f"services/{SECRET}")
        monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "prod")
        assert tell(driver) == []
        start, end = hook.posted
    assert [start["eventType"], end["eventType"]] == ["START", "COMPLETE"]
    assert end["job"]["namespace"] == "prod"
    assert end["inputs"][0]["inputFacets"]["inputStatistics"]["fileCount"] == 2
    facet = end["run"]["facets"]["pinotAssets_session"]
    assert (facet["session"], facet["filesAdded"]) == ("cp2-bbbbbb", 1)


def test_nothing_is_sent_where_no_transport_is_named(driver: Any, capsys: pytest.CaptureFixture[str]) -> None:
    driver.clients.store.sessions = None  # not even asked
    assert tell(driver) == []
    assert capsys.readouterr() == ("", "")


def test_a_transport_named_in_half_prints_nothing(
    driver: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The client would fall back to printing its events."""
    monkeypatch.setenv("OPENLINEAGE__TAGS__JOB", '{"team": "x"}')
    assert tell(driver) == []
    assert capsys.readouterr() == ("", "")


def test_a_receiver_that_refuses_is_a_warning_without_its_address(
    driver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with webhook() as hook:
        hook.statuses = [401, 401]
        monkeypatch.setenv("OPENLINEAGE_URL", hook.url.partition("/services")[0])
        monkeypatch.setenv("OPENLINEAGE_ENDPOINT", f"services/{SECRET}")
        (warning,) = tell(driver)
    assert warning == "warning: the OpenLineage events of this run were not sent: HTTPError, status 401"


def test_a_receiver_that_hangs_is_not_waited_for(driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(sending, "SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        (warning,) = tell(driver)
    assert warning.endswith("were not sent: it has not answered within 0.2 s")


def test_a_client_that_is_set_up_wrongly_is_a_warning(driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "carrier.Pigeon")
    (warning,) = tell(driver)
    assert warning.startswith("warning: the OpenLineage events of this run were not sent: ")


def test_an_error_of_the_run_stays_its_error(driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with webhook() as hook:
        monkeypatch.setenv("OPENLINEAGE_URL", hook.url.partition("/services")[0])
        monkeypatch.setenv("OPENLINEAGE_ENDPOINT", f"services/{SECRET}")
        with pytest.raises(ZeroDivisionError), lineage_after(driver, CONTROLLER, pytest.fail):
            raise ZeroDivisionError
        assert len(hook.posted) == 2


@pytest.mark.parametrize("error", [SessionHeld("another run"), PlanOutdated("another plan")])
def test_a_run_that_was_turned_away_tells_nothing(
    driver: Any, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    driver.steps = {"trigger": StepRecord(0.1, error)}
    with webhook() as hook:
        monkeypatch.setenv("OPENLINEAGE_URL", hook.url.partition("/services")[0])
        assert tell(driver) == []
        assert hook.posted == []


def test_a_snapshot_that_cannot_be_read_is_a_warning(driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:1")
    for info in [*driver.clients.staging.store.list("snapshots")]:
        if info.key.endswith(".json"):
            driver.clients.staging.store.write(info.key, b"damaged")
    (warning,) = tell(driver)
    assert warning.startswith("warning: the OpenLineage events of this run were not sent: ")
    assert "is not what was written there" in warning


def test_whatever_breaks_on_the_way_is_a_warning_and_hides_no_error_of_the_run(
    driver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:1")
    driver.clients.store.sessions = lambda: {}["a session of a later release"]
    assert tell(driver) == ["warning: the OpenLineage events of this run were not sent: KeyError"]
    warnings: list[str] = []
    with pytest.raises(ZeroDivisionError), lineage_after(driver, CONTROLLER, warnings.append):
        raise ZeroDivisionError
    assert len(warnings) == 1


def test_a_store_that_hangs_is_not_waited_for(driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "SECONDS", 0.2)
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:1")
    answers = threading.Event()
    driver.clients.store.sessions = lambda: answers.wait(20) and []
    (warning,) = tell(driver)
    answers.set()
    assert warning.endswith("it has not answered within 0.2 s")


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, False),
        ({"OPENLINEAGE_NAMESPACE": "x"}, False),
        ({"OPENLINEAGE_URL": "http://x"}, True),
        ({"OPENLINEAGE_CONFIG": "x.yml"}, True),
        ({"OPENLINEAGE__TRANSPORT__TYPE": "kafka"}, True),
        ({"OPENLINEAGE_URL": "http://x", "OPENLINEAGE_DISABLED": "True"}, False),
    ],
)
def test_what_switches_it_on(env: dict[str, str], expected: bool) -> None:
    assert is_configured(env) is expected


def test_a_file_of_the_clients_switches_it_on() -> None:
    Path("openlineage.yml").write_text("transport: {type: noop}\n")
    assert is_configured({})


def test_of_the_controllers_address_only_host_and_port_are_told(driver: Any) -> None:
    place = place_of(driver.spec, "https://user:secret@controller.example/api", {})
    assert (place.pinot, place.namespace) == ("pinot://controller.example:443", "pinot-assets")


def test_columns_of_a_schema() -> None:
    schema = {
        "dimensionFieldSpecs": [{"name": "v", "dataType": "STRING", "singleValueField": False}],
        "metricFieldSpecs": [{"name": "m", "dataType": "LONG"}],
        "dateTimeFieldSpecs": [{"name": "at", "dataType": "TIMESTAMP"}],
    }
    assert schema_columns(schema) == [("v", "STRING[]"), ("m", "LONG"), ("at", "TIMESTAMP")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("transport: {type: console}\n#" + "x" * (1 << 20), "is larger than 1,024 KiB"),
        ("transport: " + "[" * 500 + "]" * 500, "nested too deeply"),
        (
            "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
            "c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c]\n"
            "e: [*d, *d, *d, *d, *d, *d, *d, *d, *d]\n",
            "values",
        ),
    ],
)
def test_settings_of_the_client_are_read_within_limits(driver: Any, text: str, words: str) -> None:
    """The client reads its file whole, and takes what it cannot read for none."""
    Path("openlineage.yml").write_text(text)
    (warning,) = tell(driver)
    assert "OpenLineage's settings cannot be used" in warning
    assert words in warning
