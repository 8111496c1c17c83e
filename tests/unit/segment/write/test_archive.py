from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from fakes.segment_info import read_segment_info

from pinot_assets.errors import BuildError
from pinot_assets.segment import metadata_tar, rename_tar, write_tar
from pinot_assets.segment.write import archive


def test_a_tar_is_one_gzip_member_with_the_directory_first(golden: Any, tmp_path: Path) -> None:
    segment = golden.build()
    path = tmp_path / "t_0.tar.gz"
    written = write_tar(segment, path)
    content = path.read_bytes()
    assert (written.bytes, written.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    member = zlib.decompressobj(31)
    unpacked = member.decompress(content)
    assert member.eof
    assert member.unused_data == b""
    assert unpacked.endswith(bytes(1024))
    with tarfile.open(fileobj=io.BytesIO(unpacked)) as tar:
        assert [entry.name for entry in tar] == [
            "t_0",
            "t_0/v3",
            *(f"t_0/v3/{name}" for name in segment.files),
        ]
        assert {(entry.uid, entry.gid, entry.mtime) for entry in tar} == {(0, 0, golden.created // 1000)}
        for name, data in segment.files.items():
            file = tar.extractfile(f"t_0/v3/{name}")
            assert file is not None
            assert file.read() == data


def test_the_same_segment_makes_the_same_bytes(golden: Any, tmp_path: Path) -> None:
    assert write_tar(golden.build(), tmp_path / "a") == write_tar(golden.build(), tmp_path / "other name")


def test_a_renamed_tar_is_the_segment_built_under_that_name(golden: Any, tmp_path: Path) -> None:
    write_tar(golden.build(), tmp_path / "old")
    renamed = rename_tar(tmp_path / "old", tmp_path / "new", name="t_1")
    rebuilt = golden.build(name="t_1")
    assert renamed.tar == write_tar(rebuilt, tmp_path / "rebuilt")
    assert renamed.crc == rebuilt.crc != golden.build().crc
    assert renamed.metadata_tar == metadata_tar(rebuilt)


def test_the_metadata_tar_holds_a_directory_with_two_files(golden: Any) -> None:
    segment = golden.build()
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(metadata_tar(segment)))) as tar:
        assert tar.getnames() == ["t_0", "t_0/creation.meta", "t_0/metadata.properties"]
        file = tar.extractfile("t_0/metadata.properties")
        assert file is not None
        assert file.read() == segment.files["metadata.properties"]


def test_a_tar_tells_its_segment(golden: Any, tmp_path: Path) -> None:
    segment = golden.build()
    write_tar(segment, tmp_path / "x")
    found = read_segment_info(tmp_path / "x")
    assert (found.name, found.crc, found.rows, found.creation_time_ms) == (
        "t_0",
        segment.crc,
        4,
        golden.created,
    )


@pytest.mark.parametrize("damage", ["torn", "text", "empty", "other"])
def test_something_else_is_no_segment_tar(golden: Any, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "x.tar.gz"
    write_tar(golden.build(), path)
    content = path.read_bytes()
    other = io.BytesIO()
    with tarfile.open(fileobj=other, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("readme"))
    path.write_bytes(
        {"torn": content[: len(content) // 2], "text": b"hello", "empty": b"", "other": other.getvalue()}[
            damage
        ]
    )
    with pytest.raises(BuildError, match="is no segment tar"):
        rename_tar(path, tmp_path / "y", name="t_1")


def test_an_unsafe_new_name_is_refused(golden: Any, tmp_path: Path) -> None:
    write_tar(golden.build(), tmp_path / "x")
    with pytest.raises(BuildError, match="segment name"):
        rename_tar(tmp_path / "x", tmp_path / "y", name="../y")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (tarfile.REGTYPE, "s/v3/metadata.properties"),
        (tarfile.XHDTYPE, "s/v3/columns.psf"),
        (tarfile.GNUTYPE_LONGNAME, "s/v3/columns.psf"),
    ],
)
def test_what_a_tar_says_of_its_sizes_is_not_read_into_memory(
    kind: bytes, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few bytes of gzip hold gigabytes of zeros."""
    monkeypatch.setattr(archive, "ENTRY_BYTES", 1 << 20)
    names = ["s/v3/columns.psf", "s/v3/index_map", "s/v3/metadata.properties"]
    path = tmp_path / "s.tar.gz"
    with gzip.open(path, "wb") as file:
        for each in names[: names.index(name) + 1]:
            entry = tarfile.TarInfo(each)
            if each == name:
                entry.type, entry.size = kind, 3 << 20
            file.write(entry.tobuf(tarfile.USTAR_FORMAT))
        file.write(b"\0" * (3 << 20))
    with pytest.raises(BuildError, match=r"larger than 1 MiB|a header of 3145728 bytes"):
        rename_tar(path, tmp_path / "renamed.tar.gz", name="t_1")


def test_a_long_name_is_read(golden: Any, tmp_path: Path) -> None:
    write_tar(golden.build(), tmp_path / "s.tar.gz")
    name = "n" * 200
    rename_tar(tmp_path / "s.tar.gz", tmp_path / "renamed.tar.gz", name=name)
    assert read_segment_info(tmp_path / "renamed.tar.gz").name == name
