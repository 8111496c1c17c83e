"""Files of known types come back as tables of these types, which runs can build."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as paorc
import pyarrow.parquet as pq
import pytest
from fastavro import writer as write_avro
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.authoring.infer import sample as sampling
from pinot_assets.authoring.infer.draft import Draft, draft, read_start, trouble
from pinot_assets.authoring.infer.sample import ending_of, find_sample
from pinot_assets.core.file_errors import FileTooLarge
from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.core.json_object import JsonMapping
from pinot_assets.errors import SourceError
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema
from pinot_assets.ingest.formats.read import read_batches
from pinot_assets.segment import SegmentSpec, build_segment
from pinot_assets.settings.file_limits import COLUMNS, VALUE
from pinot_assets.table_spec import TableSpec
from pinot_assets.table_spec.tables.load import load_any_table

Rows = Sequence[JsonMapping]
_NO_PROPS: dict[str, str] = {}

ints = st.integers(-(2**31), 2**31 - 1)
longs = st.integers(2**31, 2**63 - 1) | st.integers(-(2**63), -(2**31) - 1)
doubles = (
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(lambda x: x + 0.5).filter(lambda x: x % 1)
)
words = st.text(alphabet="abcdefgh", min_size=1).filter(lambda word: word not in ("false",))
moments = st.datetimes().map(lambda at: f"{at.year:04d}-{at.strftime('%m-%dT%H:%M:%SZ')}")
KINDS = {
    "INT": ints,
    "LONG": longs,
    "DOUBLE": doubles,
    "STRING": words,
    "BOOLEAN": st.booleans(),
    "TIMESTAMP": moments,
}
rows = st.lists(
    st.fixed_dictionaries({f"f_{kind}": values for kind, values in KINDS.items()}), min_size=2, max_size=8
)


def drafted(folder: Path, *names: str) -> tuple[Draft, TableSpec, dict[str, str]]:
    """The draft, the spec that the project's own loader makes of it, and what a run could not build."""
    found = find_sample([str(folder / name) for name in names] or [str(folder)], _NO_PROPS, folder, UNLIMITED)
    out = folder.parent / "tables" / "t.yaml"
    out.parent.mkdir(exist_ok=True)
    made = draft("t", found, _NO_PROPS, out)
    out.write_text(made.text)
    spec = load_any_table(out)
    assert isinstance(spec, TableSpec)
    return made, spec, trouble(spec, found, _NO_PROPS)


def types_of(spec: TableSpec) -> dict[str, str]:
    groups = ("dimensionFieldSpecs", "metricFieldSpecs", "dateTimeFieldSpecs")
    return {field["name"]: field["dataType"] for group in groups for field in spec.schema_json.get(group, ())}


def as_csv(values: Rows) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(values[0]))
    writer.writeheader()
    writer.writerows(values)
    return out.getvalue().encode()


def as_lines(values: Rows) -> bytes:
    return "\n".join(map(json.dumps, values)).encode()


def as_array(values: Rows) -> bytes:
    return json.dumps(values, indent=1).encode()


TEXTS = {
    "x.csv": as_csv,
    "x.csv.gz": lambda values: gzip.compress(as_csv(values)),
    "x.jsonl": as_lines,
    "x.json": as_array,
}


@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=15, deadline=None)
@given(values=rows)
def test_types_of_text_formats_come_back(
    tmp_path_factory: pytest.TempPathFactory, name: str, values: Rows
) -> None:
    folder = tmp_path_factory.mktemp("in") / "data"
    folder.mkdir()
    (folder / name).write_bytes(TEXTS[name](values))
    _, spec, doubts = drafted(folder)
    assert types_of(spec) == {f"f_{kind}": kind for kind in KINDS}
    assert doubts == {}


TYPED = {
    "i": (pa.int32(), [1, 2], "INT", False),
    "l": (pa.int64(), [1, 2], "LONG", False),
    "small": (pa.uint8(), [1, 2], "INT", False),
    "f": (pa.float32(), [1.5, 2.5], "FLOAT", False),
    "d": (pa.float64(), [1.5, 2.5], "DOUBLE", False),
    "b": (pa.bool_(), [True, False], "BOOLEAN", False),
    "s": (pa.string(), ["1", "2"], "STRING", False),
    "raw": (pa.binary(), [b"1", b"2"], "BYTES", False),
    "at": (pa.timestamp("ms", "UTC"), [1_700_000_000_000, 1_700_000_000_001], "TIMESTAMP", False),
    "many": (pa.list_(pa.string()), [["a", "b"], ["c"]], "STRING", True),
    "nested": (pa.struct([("x", pa.int32())]), [{"x": 1}, {"x": 2}], "JSON", False),
}


@pytest.mark.parametrize("ending", ["parquet", "orc"])
def test_types_of_typed_formats_come_back(tmp_path: Path, ending: str) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    columns = {n: t for n, t in TYPED.items() if not (ending == "orc" and n == "small")}
    table = pa.table({name: pa.array(values, kind) for name, (kind, values, _, _) in columns.items()})
    if ending == "orc":
        paorc.write_table(table, folder / "x.orc")
    else:
        pq.write_table(table, folder / "x.parquet")
    made, spec, doubts = drafted(folder)
    assert types_of(spec) == {name: wanted for name, (_, _, wanted, _) in columns.items()}
    assert {f.name for f in made.proposal.fields if f.multi} == {"many"}
    assert made.proposal.time == "at"
    assert doubts == {}


FAR = pa.table({"birth_date": pa.array(["1952-01-01", "1999-12-31"]), "n": [1, 2]})


NO_LIST = pa.table({"n": [1], "tags": pa.array([None], pa.list_(pa.string()))})
EMPTY_LIST = pa.table({"n": [1], "tags": pa.array([[]], pa.list_(pa.string()))})
LISTS = pa.table({"n": [2], "tags": [["a", "b"]]})


@pytest.mark.parametrize(
    ("ending", "table", "later"),
    [
        ("parquet", FAR, FAR),
        ("json", FAR, FAR),
        ("parquet", NO_LIST, LISTS),
        ("parquet", EMPTY_LIST, LISTS),
        ("json", EMPTY_LIST, LISTS),
    ],
)
def test_what_is_proposed_can_be_built(tmp_path: Path, ending: str, table: pa.Table, later: pa.Table) -> None:
    """Of the sample, and of files like it that come later."""
    folder = tmp_path / "data"
    folder.mkdir()
    for number, rows in enumerate((table, later)):
        file = folder / f"{number}.{ending}"
        if ending == "parquet":
            pq.write_table(rows, file)
        else:
            file.write_text("".join(f"{json.dumps(row)}\n" for row in rows.to_pylist()))
        if number == 0:
            _, spec, doubts = drafted(folder)
            assert doubts == {}
        segment = SegmentSpec.from_pinot(spec.schema_json, spec.table_json)
        batches = read_batches(
            file, TargetSchema.of(segment), ending, reader=spec.ingestion.reader, verdicts=BadRowPolicy()
        )
        build_segment(
            pa.concat_tables(batches), segment, name="s", table_name="t", creation_time_ms=1, now_ms=1
        )


def test_types_of_avro_come_back(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    fields = [
        {"name": "l", "type": "long"},
        {"name": "s", "type": ["null", "string"]},
        {"name": "d", "type": "double"},
    ]
    with (folder / "x.avro").open("wb") as out:
        write_avro(
            out,
            {"type": "record", "name": "r", "fields": fields},
            [{"l": 1, "s": None, "d": 0.5}, {"l": 2, "s": "x", "d": 1}],
        )
    _, spec, doubts = drafted(folder)
    assert types_of(spec) == {"l": "LONG", "s": "STRING", "d": "DOUBLE"}
    assert doubts == {}


def test_days_of_parquet_are_made_texts_by_spark(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    pq.write_table(pa.table({"day": pa.array([1, 2], pa.date32())}), folder / "x.parquet")
    _, spec, _ = drafted(folder)
    assert spec.ingestion.transforms == {"day": "date_format(`day`, 'yyyy-MM-dd')"}
    assert types_of(spec) == {"day": "STRING"}


def test_files_that_differ_make_one_table(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "1.csv").write_text("id,n\n1,1\n2,2\n")
    (folder / "2.csv").write_text("id,n,more\n3,1.5,x\n4,3000000000,y\n")
    made, spec, doubts = drafted(folder)
    assert types_of(spec) == {"id": "INT", "n": "DOUBLE", "more": "STRING"}
    assert made.proposal.keys == ("id",)
    assert spec.ingestion.include == "glob:**/*.csv"
    assert doubts == {}


def test_only_some_of_many_files_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for n in range(30):
        (folder / f"{n:02}.csv").write_text(f"id\n{n}\n")
    (folder / "README.md").write_text("x")
    (folder / "_SUCCESS").write_text("")
    found = find_sample([str(folder)], _NO_PROPS, tmp_path, UNLIMITED)
    assert [info.key for info in found.files] == ["00.csv", "07.csv", "14.csv", "22.csv", "29.csv"]
    monkeypatch.setattr(sampling, "LISTED", 10)
    assert find_sample([str(folder)], _NO_PROPS, tmp_path, UNLIMITED).more


def test_a_file_that_is_torn_is_told_and_the_others_count(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "1.csv").write_text("id,n\n1,1\n")
    (folder / "2.csv").write_bytes(b"\x00\xff\xfe\x00" * 50)
    (folder / "3.csv").write_text("id,n\n2,x,\n")
    _, spec, doubts = drafted(folder)
    assert "binary" in doubts["2.csv"]
    assert "row 2" in doubts["3.csv"]
    assert types_of(spec) == {"id": "INT", "n": "INT"}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "blank"),
        (b"\n\n", "blank"),
        (b"PK\x03\x04zip", "zip archive"),
        (b"{broken", "not a JSON object"),
    ],
)
def test_files_that_tell_nothing(tmp_path: Path, content: bytes, why: str) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "x.csv").write_bytes(content)
    with pytest.raises(SourceError) as told:
        drafted(folder)
    assert why in str(told.value)


def test_an_empty_folder(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    with pytest.raises(SourceError, match="there is no file to look at"):
        drafted(folder)


def test_files_are_of_the_folder_that_they_share(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    for day in ("d=1", "d=2"):
        (folder / day).mkdir(parents=True)
        (folder / day / "x.csv").write_text("id\n1\n")
    found = find_sample(
        [str(folder / "d=1/x.csv"), str(folder / "d=2/x.csv")], _NO_PROPS, tmp_path, UNLIMITED
    )
    assert found.folder == folder.as_uri()
    with pytest.raises(SourceError, match="does not exist"):
        find_sample([str(folder / "d=1/x.csv"), str(folder / "d=2/y.csv")], _NO_PROPS, tmp_path, UNLIMITED)


def test_the_staging_area_never_lies_among_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a project that is nothing but files, which a policy has to allow."""
    policy = tmp_path / "policy.txt"
    policy.write_text(f"roots: [{tmp_path.parent}]")
    monkeypatch.setenv("PINOT_ASSETS_POLICY", str(policy))
    (tmp_path / "x.csv").write_text("id\n1\n")
    found = find_sample([str(tmp_path)], _NO_PROPS, tmp_path, UNLIMITED)
    out = tmp_path / "tables" / "t.yaml"
    out.parent.mkdir()
    out.write_text(draft("t", found, _NO_PROPS, out).text)
    spec = load_any_table(out)
    assert isinstance(spec, TableSpec)
    assert spec.staging_uri() == f"{tmp_path.as_uri()}-staging"


@pytest.mark.parametrize(
    ("key", "ending"),
    [("a/b.csv", ".csv"), ("b.csv.gz", ".csv.gz"), ("b.gz", ".gz"), ("b", ""), ("b.c-d", "")],
)
def test_endings(key: str, ending: str) -> None:
    assert ending_of(key) == ending


def test_a_column_that_is_made_does_not_keep_the_others_from_being_tried(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    days, clock = pa.array([1, 2], pa.date32()), pa.array([1, 2], pa.time32("s"))
    pq.write_table(pa.table({"day": days, "n": [1, 2]}), folder / "1.parquet")
    pq.write_table(pa.table({"day": days, "n": [b"x", b"y"]}), folder / "2.parquet")
    pq.write_table(pa.table({"day": days, "n": [3, 4], "more": clock}), folder / "3.parquet")
    _, spec, doubts = drafted(folder, "1.parquet")
    found = find_sample([str(folder)], _NO_PROPS, folder, UNLIMITED)
    assert spec.ingestion.transforms
    assert doubts == {}
    assert list(trouble(spec, found, _NO_PROPS)) == ["2.parquet"]


def test_a_table_of_made_columns_alone_has_nothing_to_try(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    pq.write_table(pa.table({"day": pa.array([1, 2], pa.date32())}), folder / "x.parquet")
    assert drafted(folder)[2] == {}


def test_files_of_other_kinds_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("1.csv", "2.csv", "3.json", "4.csv.gz", "5"):
        (folder / name).write_text("id\n1\n")
    made, _, _ = drafted(folder)
    assert {about: why.split()[0] for about, why in made.doubts.items()} == {
        "files that end in .json": "1",
        "files that end in .csv.gz": "1",
        "files without an ending": "1",
    }
    with pytest.raises(SourceError, match=r"several formats: \.csv, \.json, no ending"):
        drafted(folder, "1.csv", "3.json", "5")
    assert drafted(folder, "1.csv", "2.csv")[0].doubts == {}


def test_named_files_of_no_ending_and_of_one_are_of_two_kinds(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("1", "2", "3.csv"):
        (folder / name).write_text("id\n1\n")
    assert "read by a run" in drafted(folder)[0].doubts["files that end in .csv"]
    with pytest.raises(SourceError, match="several formats"):
        drafted(folder, "1", "2", "3.csv")


@pytest.mark.parametrize("kind", ["avro", "csv", "json", "orc", "parquet"])
def test_what_is_too_large_for_a_run_is_too_large_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    row = {f"c{n}": "x" * 100 for n in range(12)}
    path = tmp_path / f"a.{kind}"
    fields = [{"name": name, "type": "string"} for name in row]
    write = {
        "avro": lambda file: write_avro(file, {"type": "record", "name": "r", "fields": fields}, [row]),
        "csv": lambda file: file.write(("\n".join([",".join(row), ",".join(row.values())])).encode()),
        "json": lambda file: file.write(json.dumps(row).encode()),
        "orc": lambda file: paorc.write_table(pa.Table.from_pylist([row]), file),
        "parquet": lambda file: pq.write_table(pa.Table.from_pylist([row]), file),
    }
    with path.open("wb") as file:
        write[kind](file)
    start = read_start(path)
    assert start is not None
    assert len(start.columns) == 12
    monkeypatch.setenv(COLUMNS, "11")
    with pytest.raises(FileTooLarge, match="12 columns, more than 11"):
        read_start(path)
    monkeypatch.setenv(COLUMNS, "12")
    monkeypatch.setenv(VALUE, "99")
    if kind not in ("csv", "json"):  # of text a block at a time is looked at, whatever is in it
        with pytest.raises(FileTooLarge, match="a value of 100 bytes"):
            read_start(path)


@pytest.mark.parametrize(("name", "why"), [(None, "it has no files"), ("_SUCCESS", "all names in it start")])
def test_a_folder_without_data_says_why(tmp_path: Path, name: str | None, why: str) -> None:
    if name is not None:
        (tmp_path / name).touch()
    with pytest.raises(SourceError) as caught:
        find_sample([str(tmp_path)], _NO_PROPS, tmp_path, UNLIMITED)
    assert caught.value.what.endswith(f"in {tmp_path}")
    assert (caught.value.why or "").startswith(why)


def test_two_folders_are_not_taken_for_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with pytest.raises(SourceError, match=r"^a is a folder"):
        find_sample(["a", "b"], _NO_PROPS, tmp_path, UNLIMITED)


def test_a_damaged_row_behind_the_first_block_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.json").write_text('{"id": 1}\n{"id":\n{"id": 3}\n')
    _, _, why = drafted(folder)
    assert [*why] == ["a.json"]


def test_an_error_names_a_local_folder_by_its_path(tmp_path: Path) -> None:
    folder = tmp_path / "no rows"
    folder.mkdir()
    (folder / "a.csv").touch()
    with pytest.raises(SourceError) as caught:
        drafted(folder)
    assert str(folder) in caught.value.what
