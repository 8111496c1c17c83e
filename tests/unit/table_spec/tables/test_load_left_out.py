"""A file that is wrong is left out; the other tables of its directory go on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pinot_assets.errors import SpecError
from pinot_assets.table_spec import LeftOut, load_tables, read_tables
from pinot_assets.table_spec.tables.file_check import FileCheck
from pinot_assets.table_spec.tables.specs import NO_SPECS


def named(name: str):
    def change(whole):
        whole["schema"]["schemaName"] = whole["table"]["tableName"] = name

    return change


def files(tables) -> list[str]:
    return [one.file.name for one in tables.left_out]


def test_the_others_are_read(folder):
    folder.spec()
    folder.text("schema: [", "b.yaml")
    folder.spec({"inputFormat": "thrift"}, change=named("trains"), name="c.yaml")
    tables = read_tables(folder.path)
    assert list(tables) == ["flights"]
    assert files(tables) == ["b.yaml", "c.yaml"]
    assert [one.name for one in tables.left_out] == ["b", "trains"]
    assert tables.left_out[1].in_one_line.startswith(f"{folder.path / 'c.yaml'}:")
    assert tables.choose(["flights"]) == [tables["flights"]]
    assert tables.choose([]) == [tables["flights"]]


def test_all_of_them_or_none_is_still_to_be_had(folder):
    folder.spec()
    folder.text("schema: [", "b.yaml")
    with pytest.raises(SpecError, match=r"b\.yaml:1"):
        load_tables(folder.path)


@pytest.mark.parametrize("name", ["trains", "trains_OFFLINE"])
def test_one_that_is_left_out_says_why_and_nothing_of_the_others(folder, name):
    folder.spec({"inputFormat": "thrift"}, change=named("trains"), name="c.yaml")
    folder.text("schema: [", "b.yaml")
    (wrong,) = read_tables(folder.path).sort_out([name])[1]
    with pytest.raises(SpecError, match=r"1 problem:\n.*c\.yaml:\d+: fileIngestion.inputFormat") as caught:
        raise wrong.error
    assert "b.yaml" not in str(caught.value)


def test_a_name_that_is_nowhere_is_told_with_all_that_are_there(folder):
    folder.spec()
    folder.text("[", "trains.yaml")
    with pytest.raises(SpecError, match="the table specs are: flights, trains"):
        read_tables(folder.path).choose(["ships"])
    with pytest.raises(SpecError, match="did you mean trains"):
        read_tables(folder.path).sort_out(["train"])
    for typed in ("tables/flights.yaml", "flights_OFFLINE"):
        with pytest.raises(SpecError, match="did you mean flights"):
            read_tables(folder.path).choose([typed])


def test_a_name_where_no_spec_is_tells_where_specs_are_looked_for(tmp_path: Path):
    with pytest.raises(SpecError) as caught:
        read_tables(tmp_path).choose(["ships"])
    assert caught.value.hint == NO_SPECS


def test_two_files_about_one_table_are_both_left_out(folder):
    folder.spec()
    folder.spec(name="copy.yaml")
    folder.spec(change=named("trains"), name="trains.yaml")
    tables = read_tables(folder.path)
    assert list(tables) == ["trains"]
    assert [(one.file.name, one.name) for one in tables.left_out] == [
        ("copy.yaml", "flights"),
        ("flights.yaml", "flights"),
    ]
    for one, other in zip(tables.left_out, ("flights.yaml", "copy.yaml"), strict=True):
        assert f"flights clashes with {folder.path / other}" in one.in_one_line


@pytest.mark.parametrize("text", ["fileIngestion:\n  a: [", None], ids=["no YAML", "another problem"])
def test_a_table_that_a_broken_file_is_about_too_is_left_out(folder, text):
    """Which of the two it is to follow nobody knows: the good one may read another folder."""
    folder.spec(name="copy.yaml")
    if text is None:
        folder.spec({"inputFormat": "thrift"})
    else:
        folder.text(text, "flights.yaml")
    tables = read_tables(folder.path)
    assert list(tables) == []
    assert files(tables) == ["copy.yaml", "flights.yaml"]


def test_a_broken_half_of_a_hybrid_table_leaves_the_other_one(folder):
    folder.spec()
    folder.realtime(change=lambda whole: whole["realtime"].update(stream=3))
    tables = read_tables(folder.path)
    assert list(tables) == ["flights"]
    assert [one.kinds for one in tables.left_out] == [{"_REALTIME"}]
    assert tables.choose(["flights"]) == [tables["flights"]]
    good, wrong = tables.sort_out(["flights"])
    assert ([spec.name_with_type for spec in good], len(wrong)) == (["flights_OFFLINE"], 1)
    with pytest.raises(SpecError, match=r"realtime\.stream"):
        tables.find_realtime("flights")


@pytest.mark.parametrize("text", ["[", "schema: [", "", "3", "fileIngestion:\n  a: ["])
def test_a_half_that_says_nothing_of_its_kind_leaves_the_other_one(folder, text):
    folder.realtime(name="other.yaml")
    folder.text(text, "flights.yaml")
    tables = read_tables(folder.path)
    assert (list(tables), list(tables.realtime)) == ([], ["flights"])
    assert [(one.file.name, one.kinds) for one in tables.left_out] == [("flights.yaml", {"_OFFLINE"})]
    assert tables.find_realtime("flights") == tables.realtime["flights"]
    assert tables.sort_out(["flights_REALTIME"])[0] == [tables.realtime["flights"]]
    with pytest.raises(SpecError, match=r"flights\.yaml:"):
        tables.choose(["flights"])


def test_a_file_that_says_nothing_stops_neither_half_nor_a_table_of_like_name(folder):
    folder.spec(name="one.yaml")
    folder.realtime(name="other.yaml")
    folder.spec(change=named("web_hits"), name="hits.yaml")
    folder.text("[", "flights.yaml")
    folder.text("[", "web-hits.yaml")
    tables = read_tables(folder.path)
    assert (list(tables), list(tables.realtime)) == (["flights", "web_hits"], ["flights"])
    assert files(tables) == ["flights.yaml", "web-hits.yaml"]
    assert tables.choose(["flights"]) == [tables["flights"]]
    assert len(tables.sort_out(["flights"])[1]) == 1


def test_a_pipe_is_not_waited_for(folder):
    folder.spec()
    os.mkfifo(folder.path / "trains.yaml")
    assert list(read_tables(folder.path)) == ["flights"]


def test_a_broken_file_of_the_same_kind_clashes(folder):
    folder.realtime(name="other.yaml")
    folder.text("realtime:\n  stream: [", "flights.yaml")
    assert files(read_tables(folder.path)) == ["flights.yaml", "other.yaml"]


def test_halves_with_two_schemas_are_both_left_out(folder):
    folder.spec()
    folder.realtime(change=lambda whole: whole["schema"]["dimensionFieldSpecs"].pop())
    tables = read_tables(folder.path)
    assert (list(tables), list(tables.realtime), len(tables.left_out)) == ([], [], 2)
    assert all("both halves of a hybrid table have one" in one.in_one_line for one in tables.left_out)


def test_a_fault_in_the_check_itself_costs_one_table(folder, monkeypatch):
    folder.spec()
    folder.spec(change=named("trains"), name="trains.yaml")
    whole = FileCheck._offline

    def slips(self, *rest):
        if self.file.name == "trains.yaml":
            raise KeyError("hunter2")
        return whole(self, *rest)

    monkeypatch.setattr(FileCheck, "_offline", slips)
    tables = read_tables(folder.path)
    assert list(tables) == ["flights"]
    (one,) = tables.left_out
    assert "could not be checked: KeyError in test_load_left_out.py, line" in one.in_one_line
    assert "hunter2" not in one.in_one_line


def test_a_directory_that_is_none_is_an_error(tmp_path: Path):
    with pytest.raises(SpecError, match="does not exist"):
        read_tables(tmp_path / "none")


def test_one_line_says_how_many_more_there_are(folder):
    folder.spec({"inputFormat": "thrift", "consistentPushMaxRetries": "-1"})
    (one,) = read_tables(folder.path).left_out
    assert isinstance(one, LeftOut)
    assert one.in_one_line.endswith("(and 1 more problem)")


@pytest.mark.parametrize("name", ["_OFFLINE", "_REALTIME", "_REALTIME_OFFLINE", ""])
def test_a_table_without_a_name_is_called_as_its_file(folder, name):
    folder.spec(change=named(name), name="trains.yaml")
    (one,) = read_tables(folder.path).left_out
    assert one.name == "trains"


def test_a_table_is_chosen_once_however_often_it_is_named(folder):
    folder.spec()
    folder.spec(change=named("trains"), name="trains.yaml", block={"inputFormat": "thrift"})
    tables = read_tables(folder.path)
    often = ["flights", "trains", "flights_OFFLINE", "flights", "trains_OFFLINE"]
    specs, left_out = tables.sort_out(often)
    assert ([spec.name for spec in specs], len(left_out)) == (["flights"], 1)
    specs, left_out = tables.sort_out_offline(["flights", "trains", "flights", "trains_OFFLINE"])
    assert ([spec.name for spec in specs], len(left_out)) == (["flights"], 1)
