"""Which segments of which servers an assertion is asked of, with servers that answer at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from pinot_assets.audit.checks import Finding
from pinot_assets.errors import PinotAssetsError, PinotError, PinotUnreachable, SpecError
from pinot_assets.pinot.client.data_table import DataTable
from pinot_assets.session.checks import assertions
from pinot_assets.session.checks.assertions import assertion_findings, switch_segments_of
from pinot_assets.session.stores.staging import Switch
from pinot_assets.snapshot.receipt import Output
from pinot_assets.table_spec.blocks.audit import Assertion, Audit

COUNT = "SELECT COUNT(*) FROM t"


class Servers:
    """Two servers that have every segment; each is as many rows as said."""

    def __init__(self, rows: Mapping[str, int], visible: Collection[str], away: Collection[str] = ()) -> None:
        self.rows, self.visible = rows, frozenset(visible)
        self.away = set(away)
        self.state = "ONLINE"
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    def visible_segments(self, table: str) -> frozenset[str]:
        return self.visible

    def online_replicas(self, table: str, names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        return {name: {"S1": self.state, "S2": self.state} for name in names}

    def query_server(self, server: str, sql: str, segments: Sequence[str]) -> DataTable:
        self.asked.append((server, tuple(segments)))
        if server in self.away:
            raise PinotUnreachable(f"{server} did not answer")
        counted = sum(self.rows[name] for name in segments)
        return DataTable((("count(*)", "LONG"),), ((counted,),), {}, len(segments), counted, False)


def findings(
    servers: Servers,
    switch: Switch,
    *expect: str,
    replicas: Any = "all",
    of_files: bool = True,
    sql: str = COUNT,
    via: Any = "servers",
) -> tuple[tuple[Finding, ...], int]:
    """What is found, and how often the lease was looked at."""
    looks: list[None] = []
    run: Any = SimpleNamespace(
        table="t",
        spec=SimpleNamespace(
            audit=Audit(
                tuple(Assertion(sql=sql, expect=text, via=via) for text in expect), replicas=replicas
            ),
        ),
        pinot=servers,
        lease=SimpleNamespace(assert_held=lambda: looks.append(None)),
    )
    return assertion_findings(run, switch, [receipt("file's hash")] if of_files else []), len(looks)


def receipt(sha256: str) -> Any:
    """Of a file that was read, or, without its hash, of one that could not be."""
    return SimpleNamespace(sha256=sha256)


def output(name: str) -> Output:
    return Output(name, 1, 1, f"file:///{name}.tar.gz", 1, "", "")


def test_every_replica_of_what_is_staged_and_one_of_what_is_live() -> None:
    servers = Servers({"old": 5, "stays": 90, "new": 7}, ["old", "stays"])
    [found], _ = findings(servers, Switch(1, ("old",), (output("new"),)), "after >= live")
    assert found.passed
    assert sorted(servers.asked) == [("S1", (n,)) for n in ("new", "old", "stays")] + [("S2", ("new",))]
    [found], _ = findings(servers, Switch(1, ("old",), (output("new"),)), "after = 97")
    assert found.passed


def test_a_first_switch_has_nothing_live_to_be_compared_with() -> None:
    [found], _ = findings(Servers({"new": 7}, []), Switch(1, (), (output("new"),)), "after <= 2 * live")
    assert found.passed


def test_a_segment_that_is_carried_along_is_not_what_the_switch_brings() -> None:
    """Before Pinot 1.0 a switch that only removes files renames one that stays."""
    servers = Servers({"gone": 5, "stays": 90, "small": 1, "renamed": 1}, ["gone", "stays", "small"])
    switch = Switch(1, ("gone", "small"), (output("renamed"),), carried="small")
    expected = (">= 50", "after = 91", "after >= 0.945 * live")
    found, _ = findings(servers, switch, *expected, of_files=False)
    assert [f.message for f in found if not f.passed] == []


def test_very_many_segments_are_asked_for_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server of 0.11 takes no request of more than 4 MiB."""
    monkeypatch.setattr(assertions, "AT_A_TIME", 2)
    names = [f"s{n}" for n in range(5)]
    servers = Servers(dict.fromkeys(names, 3), [])
    [found], _ = findings(servers, Switch(1, (), tuple(map(output, names))), "= 15")
    assert (found.passed, found.expected) == (True, 2)
    assert {len(asked) for _, asked in servers.asked} == {1, 2}


def test_a_part_fits_into_a_request() -> None:
    name = 255 + 4  # a file's name is no longer, and so a segment's; and what gRPC writes before it
    assert assertions.AT_A_TIME * name < 4 * 1024**2


def test_the_lease_is_looked_at_before_each_assertion() -> None:
    """An audit of many is progress, and one whose lease is lost ends."""
    _, looks = findings(Servers({"new": 7}, []), Switch(1, (), (output("new"),)), "> 0", "> 1", "> 2")
    assert looks == 3


def test_a_server_that_did_not_answer_is_waited_for_once() -> None:
    servers = Servers({"new": 7}, [], away={"S1"})
    found, _ = findings(servers, Switch(1, (), (output("new"),)), "> 0", "> 1", "> 2")
    assert all("S1 did not answer" in f.message for f in found)
    assert servers.asked.count(("S1", ("new",))) == 1


NEW = Switch(1, (), (output("new"),))


@pytest.mark.parametrize("kind", [PinotUnreachable, PinotError, SpecError])
def test_what_to_do_about_an_answer_that_did_not_come_is_told(
    monkeypatch: pytest.MonkeyPatch, kind: type[PinotAssetsError]
) -> None:
    """Whoever finds the gate shut reads the finding, and nothing else."""
    servers = Servers({"new": 7}, [])

    def refuse(*_: object) -> DataTable:
        raise kind("S1 did not answer", why="UNAVAILABLE", hint="is the port open from here?")

    monkeypatch.setattr(servers, "query_server", refuse)
    [found], _ = findings(servers, NEW, "= 7")
    assert (found.blocks, found.at_fault) == (True, ())
    assert found.message.endswith("S1 did not answer: UNAVAILABLE → is the port open from here?")


def test_of_one_replica_the_servers_that_answer_are_asked_and_the_others_told() -> None:
    servers = Servers({"new": 7}, [], away={"S1"})
    found, _ = findings(servers, NEW, "= 7", "= 8", replicas="one")
    assert [f.passed for f in found] == [True, False]
    assert all("S1 is left out: S1 did not answer" in f.message for f in found)
    assert servers.asked.count(("S1", ("new",))) == 1


def test_of_one_replica_those_that_answer_all_have_to_answer_as_expected() -> None:
    servers = Servers({"new": 7}, [])
    [found], _ = findings(servers, NEW, "= 7", replicas="one")
    assert (found.expected, sorted(servers.asked)) == (2, [("S1", ("new",)), ("S2", ("new",))])


@pytest.mark.parametrize("policy", ["all", "one"])
def test_where_no_server_answers_nothing_passes(policy: str) -> None:
    servers = Servers({"new": 7}, [], away={"S1", "S2"})
    found, _ = findings(servers, NEW, "= 7", ">= 0", replicas=policy)
    assert [f.blocks for f in found] == [True, True]
    assert all("S1 did not answer" in f.message for f in found)


@pytest.mark.parametrize("policy", ["all", "one"])
def test_a_staged_segment_that_is_online_nowhere_is_an_error(policy: str) -> None:
    servers = Servers({"new": 7}, [])
    servers.state = "OFFLINE"
    [found], _ = findings(servers, NEW, ">= 0", replicas=policy)
    assert (found.blocks, "none has it ONLINE" in found.message) == (True, True)


def test_live_segments_are_asked_of_another_server_where_one_does_not_answer() -> None:
    """Queries see them already: one answer is enough, whatever the policy."""
    servers = Servers({"old": 5}, ["old"], away={"S1"})
    [found], _ = findings(servers, Switch(1, ("old",), ()), "after >= 0 * live")
    assert found.passed
    assert servers.asked == [("S1", ("old",)), ("S2", ("old",))]
    assert "S1 is left out" in found.message


class Fleet(Servers):
    """Servers that have different segments, some of which go away after so many questions."""

    def __init__(self, replicas: Mapping[str, Sequence[str]], answers: Mapping[str, int], dies: str) -> None:
        super().__init__({}, [])
        self.replicas, self.answers, self.dies = replicas, answers, dies

    def online_replicas(self, table: str, names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        return {name: dict.fromkeys(self.replicas[name], "ONLINE") for name in names}

    def query_server(self, server: str, sql: str, segments: Sequence[str]) -> DataTable:
        if server == self.dies and any(asked == server for asked, _ in self.asked):
            raise PinotUnreachable(f"{server} went away")
        self.asked.append((server, tuple(segments)))
        return DataTable((("count(*)", "LONG"),), ((self.answers.get(server, 0),),), {}, 1, 1, False)


def test_a_server_that_goes_away_meanwhile_lets_none_be_passed_over_that_answers() -> None:
    """The second turn asks B for one segment and A, which is away by now, for another."""
    replicas = {"x": ("A", "B", "C"), "y": ("0", "A")}
    fleet = Fleet(replicas, {"B": 5}, dies="A")
    [found], _ = findings(fleet, Switch(1, (), (output("x"), output("y"))), "= 0", replicas="one")
    assert {server for server, names in fleet.asked if "x" in names} == {"A", "B", "C"}
    assert found.blocks


NO_ROWS = Switch(1, ("old",), ())
"""What stands in the place of a segment that had rows is a file without any."""
GROUPED = "SELECT c, COUNT(*) FROM t GROUP BY c"


@pytest.mark.parametrize("via", ["servers", "shadow"])
@pytest.mark.parametrize(("expect", "holds"), [("> 0", False), ("= 0", True), ("after > 0", False)])
def test_files_without_rows_are_held_against_no_rows(via: Any, expect: str, holds: bool) -> None:
    [found], _ = findings(Servers({"old": 5}, ["old"]), NO_ROWS, expect, via=via)
    assert (found.passed, found.expected) == (holds, 1)


@pytest.mark.parametrize("via", ["servers", "shadow"])
def test_what_holds_of_each_group_holds_where_there_is_none(via: Any) -> None:
    """Each key once: a file without rows does not break that."""
    [found], _ = findings(Servers({"old": 5}, ["old"]), NO_ROWS, "= 1", sql=GROUPED, via=via)
    assert (found.passed, found.expected) == (True, 0)


@pytest.mark.parametrize("expect", ["staged >= 0.9 * live", "after >= 0.9 * live"])
def test_what_has_no_rows_any_more_is_compared_with_what_it_had(expect: str) -> None:
    [found], _ = findings(Servers({"old": 5}, ["old"]), NO_ROWS, expect)
    assert "COUNT(*) is 0, live 5" in found.message


@pytest.mark.parametrize("via", ["servers", "shadow"])
def test_a_switch_that_removes_only_brings_nothing_to_be_asked(via: Any) -> None:
    found, _ = findings(Servers({"old": 5}, ["old"]), NO_ROWS, "> 0", "after > 0", of_files=False, via=via)
    assert [f.passed for f in found] == [True, False]


def test_where_nothing_comes_or_goes_what_queries_see_is_not_asked() -> None:
    servers = Servers({"old": 5}, ["old"])
    [found], _ = findings(servers, Switch(0, (), ()), "> 0", "after > 100")
    assert (found.passed, servers.asked) == (False, [])


def test_a_file_that_could_not_be_read_brings_nothing() -> None:
    assert not switch_segments_of(Servers({}, []), "t", NO_ROWS, [receipt("")]).of_files  # type: ignore[arg-type]
