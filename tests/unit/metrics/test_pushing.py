"""A run's numbers at a Pushgateway; whatever is wrong with it, the run is not."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.monitoring.pushgateway import Gateway, pushgateway
from fakes.tables import write_table

from pinot_assets.errors import PinotUnreachable, PlanOutdated, SessionHeld
from pinot_assets.metrics import pushing
from pinot_assets.metrics.pushing import GATEWAY, PASSWORD, USER, pushed_after
from pinot_assets.session.values.outcome import StepRecord

GROUP = "/metrics/job/pinot_assets/table/flights"


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with pushgateway() as made:
        yield made


class Drives:
    """A driver as far as a push needs one."""

    def __init__(self, folder: Path) -> None:
        self.spec = write_table(folder, "flights")
        self.steps = {"resume": StepRecord(1.5, True)}
        self.held = False

    def __enter__(self) -> Drives:
        self.held = True
        return self

    def __exit__(self, *_: object) -> None:
        self.held = False


@pytest.fixture
def driver(tmp_path: Path) -> Any:
    return Drives(tmp_path)


def test_what_a_run_did_and_not_how_the_table_stands(driver: Any, gateway: Gateway) -> None:
    said: list[str] = []
    with pushed_after(driver, said.append, {GATEWAY: gateway.url}) as given:
        assert given is driver
        assert gateway.groups == {}
    group = gateway.groups[GROUP]
    assert group["pinot_assets_run_success", "flights"] == 1
    assert group["pinot_assets_run_step_duration_seconds", "resume", "flights"] == 1.5
    of_a_run = re.compile(r"pinot_assets_(run|audit_check)_")
    assert all(of_a_run.match(name) for name, *_ in group), (
        "what may change later, the gateway would not know"
    )
    assert abs(group["pinot_assets_run_end_timestamp_seconds", "flights"] - time.time()) < 60
    assert said == []


def test_it_is_pushed_after_the_table_was_let_go(driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[bool] = []
    monkeypatch.setattr(pushing, "_send", lambda *_: held.append(driver.held))
    with pushed_after(driver, print, {GATEWAY: "http://gateway"}):
        assert driver.held
    assert held == [False]


def test_a_run_that_fails_is_told_and_fails_as_it_did(driver: Any, gateway: Gateway) -> None:
    error = PinotUnreachable("away")
    driver.steps["publish"] = StepRecord(2.0, error)
    with pytest.raises(PinotUnreachable, match="away"), pushed_after(driver, print, {GATEWAY: gateway.url}):
        raise error
    assert gateway.groups[GROUP]["pinot_assets_run_success", "flights"] == 0


def test_without_a_gateway_and_without_a_step_nothing_is_pushed(driver: Any, gateway: Gateway) -> None:
    with pushed_after(driver, print, {}):
        pass
    driver.steps = {}
    with pushed_after(driver, print, {GATEWAY: gateway.url}):
        pass
    assert gateway.groups == {}


@pytest.mark.parametrize("refusal", [SessionHeld("flights is paused"), PlanOutdated("flights is another")])
def test_a_run_that_was_turned_away_leaves_the_numbers_of_the_one_that_works(
    driver: Any, gateway: Gateway, refusal: Exception
) -> None:
    driver.steps = {"trigger": StepRecord(0.1, refusal)}
    with pushed_after(driver, print, {GATEWAY: gateway.url}):
        pass
    assert gateway.groups == {}


def test_ctrl_c_waits_for_no_gateway(driver: Any, gateway: Gateway) -> None:
    with pytest.raises(KeyboardInterrupt), pushed_after(driver, print, {GATEWAY: gateway.url}):
        raise KeyboardInterrupt
    assert gateway.groups == {}


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("http://127.0.0.1:1", "Connection refused"),
        ("http://[s3cret", "ValueError"),
        ("127.0.0.1:1", "Connection refused"),
    ],
)
def test_a_gateway_that_is_away_is_a_warning(driver: Any, address: str, says: str) -> None:
    said: list[str] = []
    with pushed_after(driver, said.append, {GATEWAY: address}):
        pass
    (warning,) = said
    assert says in warning
    assert GATEWAY in warning
    assert "s3cret" not in warning


def test_a_gateway_that_refuses_is_a_warning(driver: Any, gateway: Gateway) -> None:
    gateway.status = 401
    said: list[str] = []
    with pushed_after(driver, said.append, {GATEWAY: gateway.url}):
        pass
    assert "401" in said[0]


def test_a_gateway_that_hangs_delays_nobody(
    driver: Any, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pushing, "SECONDS", 0.2)
    gateway.answers.clear()
    said, begun = list[str](), time.monotonic()
    with pushed_after(driver, said.append, {GATEWAY: gateway.url}):
        pass
    assert time.monotonic() - begun < 10
    assert "0.2 s" in said[0] or "timed out" in said[0]


def test_a_user_of_the_gateway(driver: Any, gateway: Gateway) -> None:
    with pushed_after(driver, print, {GATEWAY: gateway.url, USER: "me", PASSWORD: "pw"}):
        pass
    assert gateway.headers["Authorization"] == "Basic " + base64.b64encode(b"me:pw").decode()
    with pushed_after(driver, print, {GATEWAY: gateway.url}):
        pass
    assert "Authorization" not in gateway.headers


@pytest.mark.parametrize(("given", "lacking"), [(USER, PASSWORD), (PASSWORD, USER)])
def test_half_of_a_user_pushes_nothing_and_says_what_lacks(
    driver: Any, gateway: Gateway, given: str, lacking: str
) -> None:
    said: list[str] = []
    with pushed_after(driver, said.append, {GATEWAY: gateway.url, given: "s3cret"}):
        pass
    assert gateway.groups == {}
    (warning,) = said
    assert f"{lacking} is not set" in warning
    assert "s3cret" not in warning
