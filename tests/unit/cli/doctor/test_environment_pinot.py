"""What the doctor prints of a Pinot: only where a controller answers, and what that one needs."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from rich.console import Console

from pinot_assets.cli.doctor import environment as pinot
from pinot_assets.errors import PinotAssetsError, PinotError, PinotUnreachable, SpecError
from pinot_assets.pinot import PinotConnection
from pinot_assets.pinot.client.user_rights import NoRights
from pinot_assets.pinot.lineage import Lineage, LineageEntry, LineageState
from pinot_assets.pinot.versions import traits_of
from pinot_assets.settings.environment import Settings

_EMPTY = Lineage(())


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`show(version, setting, lineage)`: what is printed for such a controller with one table, `t`."""

    def show(
        version: str | Exception,
        setting: str | None = None,
        lineage: Lineage | Exception = _EMPTY,
        unaskable: SpecError | None = None,
        servers: dict[str, PinotError | None] | None = None,
        named: dict[str, str] | PinotError | None = None,
    ) -> str:
        asked_of = servers or {}

        class Cluster:
            def __init__(self, connection: PinotConnection) -> None:
                assert connection.timeouts.call <= 3

            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: object) -> None:
                pass

            def version(self) -> str:
                if isinstance(version, Exception):
                    raise version
                return version

            def require_server_queries(self) -> None:
                if unaskable is not None:
                    raise unaskable

            def instances(self) -> tuple[str, ...]:
                return ("Broker_b_8099", *asked_of)

            def ask_server(self, server: str, path: str) -> None:
                assert path == "/tables"
                if (error := asked_of[server]) is not None:
                    raise error

            def versions_of(self, servers: Sequence[str]) -> dict[str, str]:
                assert set(servers) == set(asked_of)
                if isinstance(named, PinotError):
                    raise named
                return named or {}

            def controller_setting(self, name: str) -> str | None:
                return setting

            def offline_tables(self) -> tuple[str, ...]:
                return ("t",)

            def lineage(self, table: str) -> Lineage:
                if isinstance(lineage, Exception):
                    raise lineage
                return lineage

        settings = Settings(PinotConnection("http://127.0.0.1:9000"), "127.0.0.1:2181", "pinot")
        monkeypatch.setattr(pinot, "load_settings", lambda: settings)
        monkeypatch.setattr(pinot, "HttpPinotClient", Cluster)
        out = io.StringIO()
        pinot.show_pinot(Console(file=out, width=400))
        return out.getvalue()

    return show


@pytest.mark.parametrize("version", ["0.11.0", "1.5.1", "1.6.0"])
def test_every_row_of_a_release_is_printed(show: Any, version: str) -> None:
    text = show(version)
    assert f"Pinot {version}, at http://127.0.0.1:9000" in text
    for trait in traits_of(version):
        (line,) = [part for part in text.splitlines() if trait.pinot in part]
        assert line.startswith(trait.topic)
        assert trait.here in line


def test_servers_that_cannot_be_asked_are_told_with_what_to_do(show: Any) -> None:
    text = show("1.5.1", unaskable=SpecError("no certificate is verified", hint="name one"))
    assert (
        "servers and brokers cannot answer the assertions of `audit:`: no certificate is verified → name one"
        in text
    )
    assert "assertions of" not in show("1.5.1")


def test_a_server_that_refuses_what_the_audit_asks_is_told_with_what_to_do(show: Any) -> None:
    refusal = NoRights("GET http://s:8097/tables was refused with status 403", hint="give the user admin")
    down = PinotUnreachable("no connection")
    text = show("1.6.0", servers={"Server_1": down, "Server_2": refusal})
    assert "no session will switch: Server_2: GET http://s:8097/tables was refused with status 403" in text
    assert "give the user admin" in text
    assert "no session will switch" not in show("1.6.0", servers={"Server_1": None, "Server_2": refusal})


def test_the_releases_of_the_servers_and_what_is_written_for_them(show: Callable[..., str]) -> None:
    named = {"Server_1": "1.6.0-0123abc", "Server_2": "1.6.0-0123abc", "Server_3": "1.5.1"}
    servers = dict.fromkeys(named)
    text = show("1.6.0", servers=servers, named=named)
    assert (
        "servers that Pinot knows: 1 of 1.5.1, 2 of 1.6.0; a table on all of them would get segments for 1.5"
        in text
    )
    text = show("1.6.0", servers=servers, named=named | {"Server_1": ""})
    assert "1 of a release before 1.4; a table on all of them would get segments for 0.11" in text
    assert "segments for" not in show("1.6.0", servers=servers, named=PinotError("no"))
    text = show("1.6.0", servers=servers, named=named | {"Server_1": "0.10.0"})
    assert "no segment can be written for the oldest: older than 0.11" in text


def test_a_controller_without_a_version(show: Any) -> None:
    assert "treated as 1.5.1" in show("")


@pytest.mark.parametrize(
    ("version", "setting", "warned"),
    [("1.6.0", "false", True), ("1.6.0", "true", False), ("1.6.0", None, False), ("1.5.1", "false", False)],
)
def test_the_guard_of_open_replacements_switched_off(
    show: Any, version: str, setting: str | None, warned: bool
) -> None:
    assert ("controller.lineage.exclusive.delete.enabled is off" in show(version, setting)) == warned


def test_nothing_where_no_controller_answers(show: Any) -> None:
    assert show(PinotUnreachable("no connection")) == ""


def test_nothing_where_none_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Settings:
        raise PinotAssetsError("there is no Pinot to connect to")

    monkeypatch.setattr(pinot, "load_settings", refuse)
    out = io.StringIO()
    pinot.show_pinot(Console(file=out))
    assert out.getvalue() == ""


def entry(names_to: set[str], state: LineageState = LineageState.IN_PROGRESS, hours: float = 2) -> Lineage:
    opened_ms = int((time.time() - hours * 3600) * 1000)
    return Lineage(
        (LineageEntry("e1", frozenset({"t__cp3-5be001_1_0_0"}), frozenset(names_to), state, opened_ms),)
    )


def test_an_open_replacement_of_ours_is_told_with_its_session_and_age(show: Any) -> None:
    text = show("1.5.1", lineage=entry({"t__cp17-3fa2c1_1_0_0", "t__cp17-3fa2c1_2_1_0"}))
    (line,) = [part for part in text.splitlines() if part.startswith("t ")]
    assert line.split()[:5] == ["t", "e1", "2.0", "h", "cp17"]
    assert "pinot-assets session show t" in line


def test_one_of_somebody_else_is_told_and_left_alone(show: Any) -> None:
    text = show("1.5.1", lineage=entry({"t__cp17-3fa2c1_1_0_0", "their_segment"}))
    assert "somebody else" in text
    assert "session show" not in text


@pytest.mark.parametrize("state", [LineageState.COMPLETED, LineageState.REVERTED])
def test_replacements_that_came_to_an_end_are_not_told(show: Any, state: LineageState) -> None:
    assert "Open segment replacements" not in show("1.5.1", lineage=entry({"t__cp17-3fa2c1_1_0_0"}, state))


def test_a_lineage_that_cannot_be_read_takes_nothing_of_the_sheet_away(show: Any) -> None:
    text = show("1.5.1", lineage=PinotUnreachable("no answer in time"))
    assert all(trait.here in text for trait in traits_of("1.5.1"))
    assert "the open segment replacements cannot be listed: no answer in time" in text
