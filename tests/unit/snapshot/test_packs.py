from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pinot_assets.core.stored_format import NEWEST, RELEASES, WITH_PACKS, parquet_metadata, parquet_table
from pinot_assets.errors import NeedsNewerRelease
from pinot_assets.snapshot.packs import (
    Member,
    MemberList,
    PublishedPack,
    members_from_parquet,
    members_key,
    members_sha256,
    members_to_parquet,
    packs_from_parquet,
    packs_to_parquet,
)
from pinot_assets.snapshot.receipt import Fingerprint, Output

A, B = "a" * 64, "b" * 64
ONE = Member("s3://in/é,1", Fingerprint(10, 1, "e", "v"), A, 3, 1, "cp1-0a1b2c", B, 0)
TWO = Member("file:///in/2", Fingerprint(20, 2), B, 5, 0, "cp2-0a1b2c", B, 3)
MEMBERS = MemberList((ONE, TWO), "d1", format=WITH_PACKS)
OUTPUT = Output("t__cp2-0a1b2c_0_7_0", 2**32 - 1, 8, "s3://b/t.tar.gz", 345, A, "s3://b/t.m", -5, None, 678)
PACK = PublishedPack("cp2-0a1b2c", 7, A, 2, 8, (OUTPUT,), 1.5, 3)


def changed(data: bytes, change: Callable[[pa.Table], pa.Table]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(change(parquet_table(data)), sink)
    return bytes(sink.getvalue())


def said(table: pa.Table, **values: object) -> pa.Table:
    """The table with another value in the first row of these columns."""
    for name, value in values.items():
        column = [value, *table.column(name).to_pylist()[1:]]
        field = table.schema.field(name)
        table = table.set_column(table.schema.get_field_index(name), field, pa.array(column, field.type))
    return table


def test_a_member_list_is_read_back_and_knows_what_its_segments_have() -> None:
    data = members_to_parquet(MEMBERS)
    assert members_from_parquet(data) == MEMBERS
    assert members_to_parquet(members_from_parquet(data)) == data, "its hash is its name"
    assert (MEMBERS.rows, MEMBERS.rows_objects) == (8, {B})
    other = replace(MEMBERS, members=(replace(ONE, rows_object=A), TWO))
    assert other.rows_objects == {A, B}


def test_the_order_of_members_and_the_recipe_that_read_them_make_another_list() -> None:
    lists = [MEMBERS, replace(MEMBERS, members=(TWO, ONE)), replace(MEMBERS, read="d2")]
    assert len({members_to_parquet(one) for one in lists}) == 3


def test_packs_are_read_back() -> None:
    bare = replace(PACK, ordinal=8, outputs=(), seconds=0.0, revision=0)
    data = packs_to_parquet((PACK, bare))
    assert packs_from_parquet(data) == (PACK, bare)
    assert packs_to_parquet(packs_from_parquet(data)) == data
    assert [pack.name for pack in (PACK, bare)] == ["cp2-0a1b2c_7", "cp2-0a1b2c_8"]


def test_keys_are_made_of_hashes() -> None:
    assert members_sha256(members_key(A)) == A
    assert members_key(A) == f"packs/{A}.parquet"
    for key in ("packs/a.parquet", f"rows/{A}.parquet", f"packs/{A}.json", f"x/packs/{A}.parquet", ""):
        assert members_sha256(key) == ""


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"rows": 0}, "cannot be where it says"),
        ({"first": -1}, "cannot be where it says"),
        ({"rows_object": "../x"}, "cannot be where it says"),
        ({"uri": TWO.uri, "session": TWO.session}, "in it twice"),
        ({"size": -(2**63)}, ""),
    ],
)
def test_an_impossible_member_list_is_none(values: dict[str, object], why: str) -> None:
    data = changed(members_to_parquet(MEMBERS), lambda table: said(table, **values))
    if why:
        with pytest.raises(ValueError, match=why):
            members_from_parquet(data)
    else:
        assert members_from_parquet(data).members[0].fingerprint.size < 0, "only the type is checked"


def test_what_is_no_list_of_members_or_packs_is_none() -> None:
    members, packs = members_to_parquet(MEMBERS), packs_to_parquet((PACK,))
    for data in (b"", b"PAR1", packs, members[:-9], changed(members, lambda t: t.drop_columns(["first"]))):
        with pytest.raises((ValueError, OSError, KeyError)):
            members_from_parquet(data)
    for data in (b"", members, packs[:-9], changed(packs, lambda table: said(table, members="../x"))):
        with pytest.raises((ValueError, OSError)):
            packs_from_parquet(data)


@pytest.mark.parametrize("read", [members_from_parquet, packs_from_parquet])
def test_they_need_a_release_that_knows_packs(read: Callable[[bytes, str], object]) -> None:
    data = members_to_parquet(MEMBERS) if read is members_from_parquet else packs_to_parquet((PACK,))
    meta = parquet_metadata(data)
    assert (meta["format"], meta["needs"]) == (str(WITH_PACKS), RELEASES[WITH_PACKS])
    newer = changed(data, lambda t: t.replace_schema_metadata({**meta, "format": str(NEWEST + 1)}))
    with pytest.raises(NeedsNewerRelease, match=rf"^x is of format {NEWEST + 1}"):
        read(newer, "x")


def test_what_a_later_release_adds_is_kept() -> None:
    members = changed(
        members_to_parquet(MEMBERS), lambda table: table.append_column("other", pa.array([4, None]))
    )
    again = parquet_table(members_to_parquet(members_from_parquet(members)))
    assert again.column("other").to_pylist() == [4, None]

    def more(table: pa.Table) -> pa.Table:
        outputs = table.column("outputs").to_pylist()
        outputs[0][0]["sorted"] = "yes"
        at = table.schema.get_field_index("outputs")
        return table.append_column("other", pa.array([4])).set_column(at, "outputs", pa.array(outputs))

    packs = parquet_table(packs_to_parquet(packs_from_parquet(changed(packs_to_parquet((PACK,)), more))))
    assert packs.column("other").to_pylist() == [4]
    assert packs.column("outputs")[0].as_py()[0]["sorted"] == "yes"
