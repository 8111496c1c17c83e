"""`pinot-assets init`, as it is typed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from pinot_assets.cli import main
from pinot_assets.errors import PinotAssetsError
from pinot_assets.table_spec import load_tables


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PINOT_ASSETS_TABLES", raising=False)
    (tmp_path / "clicks in").mkdir()
    (tmp_path / "clicks in" / "a.csv").write_text(
        "id,at,region\n1,2024-01-05T10:00:00Z,secret-eu\n2,2024-01-06T10:00:00Z,secret-eu\n"
    )
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main.app, ["init", *arguments])


def refused(*arguments: str) -> str:
    error = call(*arguments).exception
    assert isinstance(error, PinotAssetsError)
    return str(error)


def test_writes_a_spec_that_can_be_applied_and_says_what_to_do_next(folder: Path) -> None:
    shown = call("clicks in")
    assert shown.exit_code == 0
    assert "looked at 2 rows of 1 file, of 1 in " in shown.stdout
    assert "time column: at" in shown.stdout
    assert "may be keys: id" in shown.stdout
    assert "pinot-assets tables apply clicks_in" in shown.stdout
    (spec,) = load_tables(folder / "tables").values()
    assert spec.name == "clicks_in"
    assert spec.input_uri() == f"{folder.as_uri()}/clicks%20in"
    assert spec.table_json["segmentsConfig"]["timeColumnName"] == "at"
    text = (folder / "tables" / "clicks_in.yaml").read_text()
    assert "# region: STRING; 1 value in 2 rows" in text
    assert "secret-eu" not in text


@pytest.mark.parametrize("words", [("init", "clicks in", "--name", "clicks"), ("tables", "init", "clicks")])
def test_the_staging_area_lies_outside_of_the_specs_and_of_git(folder: Path, words: tuple[str, ...]) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    assert CliRunner().invoke(main.app, words).exit_code == 0
    (spec,) = load_tables(folder / "tables").values()
    staging = folder / ".pinot-assets" / "staging" / "clicks"
    assert spec.staging_uri() == staging.as_uri()
    staging.mkdir(parents=True)
    (staging / "segment.tar.gz").write_bytes(b"")
    status = ["git", "status", "--porcelain", "--untracked-files=all"]
    seen = subprocess.run(status, cwd=folder, check=True, capture_output=True, text=True).stdout
    assert sorted(line[3:] for line in seen.splitlines()) == ['"clicks in/a.csv"', "tables/clicks.yaml"]


def test_a_spec_at_the_top_of_a_project_has_its_staging_area_there(folder: Path) -> None:
    assert call("clicks in", "--out", "c.yaml").exit_code == 0
    (line,) = [line for line in (folder / "c.yaml").read_text().splitlines() if "segment.dir.uri" in line]
    assert line.split()[1].strip('"') == ".pinot-assets/staging/clicks_in"


def test_what_git_sees_of_that_folder_is_left_to_who_said_it(folder: Path) -> None:
    (folder / ".pinot-assets").mkdir()
    (folder / ".pinot-assets" / ".gitignore").write_text("logs/\n")
    assert call("clicks in").exit_code == 0
    assert (folder / ".pinot-assets" / ".gitignore").read_text() == "logs/\n"


def test_an_odd_value_that_decides_a_type_is_named_on_the_terminal_alone(folder: Path) -> None:
    """The spec is committed, and the value may be somebody's own."""
    users = ["n/a" if n == 16 else str(n) for n in range(3002)]
    lines = (f"{user},{n}" for n, user in enumerate(users))
    (folder / "users").mkdir()
    (folder / "users" / "users.csv").write_text("\n".join(["user,visits", *lines]))
    shown = call("users", "--json")
    assert json.loads(shown.stdout)["doubts"]["column user"] == (
        "STRING because of 1 value in 3,002, first in row 17 of users.csv; the others are INT: 'n/a'"
    )
    text = (folder / "tables" / "users.yaml").read_text()
    assert "In doubt: STRING because of 1 value in 3,002" in text
    assert "n/a" not in text


def test_what_to_do_next_finds_a_spec_that_lies_elsewhere(folder: Path) -> None:
    shown = call("clicks in", "--out", "my tables/c.yaml")
    assert shown.stdout.splitlines()[-1] == "  pinot-assets run clicks_in --tables 'my tables'"
    assert "--tables" not in call("clicks in", "--out", "tables/c.yaml").stdout


def test_json_for_other_programs(folder: Path) -> None:
    values = json.loads(call("clicks in", "--name", "c", "--out", "deep/c.yaml", "--json").stdout)
    assert values["file"] == "deep/c.yaml"
    assert values["timeColumn"] == "at"
    assert values["keyCandidates"] == ["id"]
    assert [column["dataType"] for column in values["columns"]] == ["INT", "TIMESTAMP", "STRING"]
    assert (folder / "deep" / "c.yaml").is_file()


def test_never_overwrites(folder: Path) -> None:
    (folder / "mine.yaml").write_text("mine")
    assert "exists already" in refused("clicks in", "--out", "mine.yaml")
    assert (folder / "mine.yaml").read_text() == "mine"


def test_takes_no_other_table_with_it(folder: Path) -> None:
    assert call("clicks in", "--out", "tables/mine.yaml").exit_code == 0
    assert f"the table of {folder}/tables/mine.yaml would then be left out" in refused("clicks in")
    assert "is the policy of its folder" in refused("clicks in", "--name", "policy")
    assert [file.name for file in (folder / "tables").iterdir()] == ["mine.yaml"]
    assert list(load_tables(folder / "tables")) == ["clicks_in"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "nowhere does not exist"),
        (["/no/such/folder"], "/no/such/folder does not exist"),
        (["s3://lake/in", "/no/such/file.csv"], "/no/such/file.csv does not exist"),
        (["clicks in/b.csv"], "does not exist"),
        (["ftp://x/y"], "the scheme ftp is not supported"),
        (["s3://"], "names no bucket"),
        (["clicks in", "--name", "a.b"], "cannot be the name of a table"),
        (["/"], "no name that it can have"),
        (["clicks in", "--prop", "region"], "write name=value"),
        (["clicks in", "--out", "clicks in/a.csv/t.yaml"], "cannot be written"),
    ],
)
def test_wrong_input_is_a_sentence_and_writes_nothing(folder: Path, arguments: list[str], says: str) -> None:
    assert says in refused(*arguments)
    assert not (folder / "tables").exists()


def test_a_cell_that_no_reader_takes(folder: Path) -> None:
    (folder / "big.csv").write_text("a\n" + "x" * 3_000_000)
    assert "field larger than field limit" in refused("big.csv")
    assert not (folder / "tables").exists()


def test_a_folder_without_rights(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("os.scandir", denied)
    assert "Permission denied" in refused("clicks in")


def test_a_secret_in_the_options_never_gets_into_the_spec(folder: Path) -> None:
    said = refused("s3://bucket/in/", "--prop", "secretKey=hunter2", "--name", "t")
    assert "hunter2" not in said
    assert not (folder / "tables").exists()


def test_a_guess_about_the_first_row_is_told_and_written(folder: Path) -> None:
    (folder / "clicks in" / "a.csv").write_text("Ann,Rome\nBob,Paris\n")
    shown = call("clicks in")
    assert "check the first row: taken as the header" in shown.stdout
    assert (
        "# The first row is in doubt: taken as the header"
        in (folder / "tables" / "clicks_in.yaml").read_text()
    )
    (folder / "clicks in" / "a.csv").write_text(",v,v\n1,2,3\n")
    values = json.loads(call("clicks in", "--name", "t", "--json").stdout)
    assert [column["name"] for column in values["columns"]] == ["c1", "v", "v_3"]
    assert "a column without a name as c1, v as v_3" in values["doubts"]["names of columns"]


def test_a_file_of_no_rows_gives_guesses(folder: Path) -> None:
    (folder / "clicks in" / "a.csv").write_text("id,amount\n")
    values = json.loads(call("clicks in", "--json").stdout)
    assert [*values["doubts"]] == ["the types"]


def test_the_table_of_a_folder_with_accents_keeps_its_letters(folder: Path) -> None:
    (folder / "clicks in").rename(folder / "clíçks ün")
    assert json.loads(call("clíçks ün", "--json").stdout)["table"] == "clicks_un"


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("größe", [1]),
        ("days", pa.array([[1]], pa.list_(pa.date32()))),
        ("sums", pa.array([[1]], pa.list_(pa.decimal128(10, 2)))),
        ("clock", pa.array([1], pa.time32("s"))),
    ],
)
def test_a_column_that_no_table_can_have_is_left_out_and_told(folder: Path, name: str, column: Any) -> None:
    (folder / "in").mkdir()
    pq.write_table(pa.table({"id": [1], name: column}), folder / "in" / "x.parquet")
    values = json.loads(call("in", "--name", "t", "--json").stdout)
    assert list(values["leftOut"]) == [name]
    (spec,) = load_tables(folder / "tables").values()
    assert [field["name"] for field in spec.schema_json["dimensionFieldSpecs"]] == ["id"]


def test_a_name_with_a_blank_is_another_one_in_the_table_and_told(folder: Path) -> None:
    (folder / "in").mkdir()
    table = pa.table({"id": [1, 2], "Order Date": ["2024-01-01", "2024-01-02"], "Order_Date": [5, 6]})
    pq.write_table(table, folder / "in" / "x.parquet")
    shown = call("in", "--name", "t")
    assert "check names with blanks: Pinot allows none, so transforms read Order Date as" in shown.stdout
    (spec,) = load_tables(folder / "tables").values()
    assert dict(spec.ingestion.transforms) == {"Order_Date_2": "`Order Date`"}
    assert spec.schema_json["dateTimeFieldSpecs"][0]["name"] == "Order_Date_2"
    assert spec.table_json["segmentsConfig"]["timeColumnName"] == "Order_Date_2"
    written = (folder / "tables" / "t.yaml").read_text()
    assert "# Order_Date_2 is Order Date in the files: Pinot takes no blank in a name." in written


def test_transforms_that_lack_pandas_here_are_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pinot_assets.ingest.contract.sql_extra.find_spec", lambda name: None)
    (folder / "in").mkdir()
    pq.write_table(pa.table({"id": [1], "a b": [2]}), folder / "in" / "x.parquet")
    doubts = json.loads(call("in", "--name", "t", "--json").stdout)["doubts"]
    assert 'pip install "pinot-assets[sql]"' in doubts["transforms"]
    assert "transforms" not in json.loads(call("clicks in", "--json").stdout)["doubts"]


@pytest.mark.parametrize("words", [("init", "clicks in", "--name"), ("tables", "init")])
def test_a_name_that_is_a_word_of_sql_is_told(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(main.app, [*words, "order"])
    assert shown.exit_code == 0
    assert 'queries have to quote it: SELECT * FROM "order"' in shown.stdout
    assert "quote" not in CliRunner().invoke(main.app, [*words, "orders"]).stdout


def test_columns_that_are_words_of_sql_are_told(folder: Path) -> None:
    (folder / "in").mkdir()
    (folder / "in" / "x.jsonl").write_text('{"id": 1, "date": "2026-01-01", "user": "u"}\n')
    doubts = json.loads(call("in", "--name", "t", "--json").stdout)["doubts"]
    assert doubts["names that queries must quote"] == 'write date in double quotes, as in SELECT "date"'


def test_a_spec_that_cannot_be_loaded_is_not_left_behind(folder: Path) -> None:
    (folder / "in").mkdir()
    (folder / "in" / "x.jsonl").write_text('{"größe": 1}\n')
    assert "none is written" in refused("in", "--name", "t")
    assert not (folder / "tables" / "t.yaml").exists()


@pytest.mark.parametrize("name", ["z.parquet", "z.orc", "z.avro.gz"])
def test_text_under_the_name_of_another_format_is_no_csv(folder: Path, name: str) -> None:
    (folder / name).write_text("PAR1\nrest\n")
    ending = name.removeprefix("z")
    assert f"its name is {ending} and it contains text" in refused(name)
    assert not (folder / "tables").exists()


def test_a_named_file_beside_others_of_its_kind_tells_that_they_are_read_too(folder: Path) -> None:
    (folder / "clicks in" / "more").mkdir()
    for other in ("b.csv", "more/c.csv"):
        (folder / "clicks in" / other).write_text("id,at,region\n3,2024-01-07T10:00:00Z,eu\n")
    shown = call("clicks in/a.csv", "--name", "clicks")
    assert "2 with the same ending are beside or below the files that you named" in shown.stdout.replace(
        "\n", " "
    )
    assert "with the same ending" not in call("clicks in", "--name", "all").stdout
