"""Choose a few files of a folder or bucket to look at, and copy them to this machine."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from pathlib import Path, PurePosixPath
from typing import Final

from pinot_assets.core.files import temporary_folder
from pinot_assets.core.installation_policy import Policy
from pinot_assets.errors import SourceError
from pinot_assets.source import ObjectInfo, ObjectStore, open_store
from pinot_assets.source.uris import parse_root
from pinot_assets.table_spec.yaml.values import normalise_location

FILES: Final = 5
"""Number of files that are looked at."""
LISTED: Final = 10_000
"""Number of objects that are listed: a sample need not know all of them."""
FETCHED_BYTES: Final = 256 << 20
"""Larger files are not downloaded from a bucket for their first rows."""
_NAME_FILES: Final = "name a folder with some of the table's files, or name files"
_ONE_FOLDER: Final = "name files of one folder, or one folder alone"
_PACKED: Final = (".gz", ".bz2", ".zst")
_NO_DATA: Final = frozenset((".md", ".txt.md5", ".md5", ".sha256", ".crc", ".yaml", ".yml", ".py", ".sh"))
_NOT_LOOKED_AT: Final = f"all names in it start with . or _, or end in .tmp, {', '.join(sorted(_NO_DATA))}"


@dataclass(frozen=True, slots=True)
class FolderSample:
    """The files of a folder that are looked at.

    :ivar folder: URI of the folder that a table would read.
    :ivar files: the files to look at.
    :ivar include: pattern of the names of such files; None if they have no ending.
    :ivar count: number of files of that kind that were listed; with `more` there may be others.
    :ivar others: number of listed files by every other ending.
    :ivar beside: if files were named: how many others of that kind a table would read with them.
    """

    folder: str
    policy: Policy
    files: tuple[ObjectInfo, ...]
    include: str | None
    count: int
    more: bool
    others: Mapping[str, int]
    beside: int = 0

    @property
    def place(self) -> str:
        """The folder as people write it: a path of this machine, or a URI."""
        return parse_root(self.folder).path if self.folder.startswith("file:") else self.folder


def find_sample(places: Sequence[str], props: Mapping[str, str], base: Path, policy: Policy) -> FolderSample:
    """Choose the files to look at.

    :param places: one folder (a path, `s3://…`, `gs://…`, `abfss://…`), or files of one folder.
    :param props: how to reach a bucket, as in `input.fs.prop.*`.
    :param base: the folder that paths are relative to.
    :param policy: what the table spec that is made from the files will be allowed to reach.
    :raises SourceError: there is no file, the place cannot be read, or the named files are of several kinds.
    """
    uris = [normalise_location(place, base) for place in places]
    for place, uri in zip(places, uris, strict=True):
        # A mistyped path is refused before the policy judges it: no policy could make it work.
        if uri.startswith("file:") and not os.path.lexists(parse_root(uri).path):
            raise SourceError(f"{place} does not exist", hint=_NAME_FILES)
        if len(places) > 1 and uri.startswith("file:") and os.path.isdir(parse_root(uri).path):
            raise SourceError(f"{place} is a folder", hint=_ONE_FOLDER)
    if len(uris) == 1 and not _ask_if_file(uris[0], props, policy):
        store = open_store(uris[0], props, policy)
        if not (files := list(islice(_data_files(store), LISTED))):
            raise SourceError(
                f"there is no file to look at in {places[0]}",
                why=_NOT_LOOKED_AT if next(iter(store.list()), None) else "it has no files",
                hint=_NAME_FILES,
            )
        return _chosen(store.uri, policy, files)
    folder = _common_folder(uris)
    store = open_store(folder, props, policy)
    named = _chosen(folder, policy, [_file(store, uri) for uri in dict.fromkeys(uris)])
    if named.others:
        endings = [named.include or "", *named.others]
        raise SourceError(
            "the files have several formats: "
            + ", ".join(sorted(ending.removeprefix("glob:**/*") or "no ending" for ending in endings)),
            hint="a table reads files of one format: name those, and write another table spec for the others",
        )
    there = sum(ending_of(f.key) == ending_of(named.files[0].key) for f in islice(_data_files(store), LISTED))
    return replace(named, beside=max(0, there - named.count))


@contextmanager
def local_copies(sample: FolderSample, props: Mapping[str, str]) -> Iterator[Iterator[tuple[str, Path]]]:
    """Give the sample's files on this machine, each with its name; one is downloaded when its turn comes.

    :raises SourceError: a file cannot be read.
    """
    store = open_store(sample.folder, props, sample.policy)
    with temporary_folder("init") as folder:
        yield (_local(store, info, folder / str(n)) for n, info in enumerate(sample.files))


def _local(store: ObjectStore, info: ObjectInfo, folder: Path) -> tuple[str, Path]:
    folder.mkdir()
    path = folder / PurePosixPath(info.key).name
    if store.uri.startswith("file:"):
        # Readers unpack a file beside its path, and the files' own folder must stay as it is.
        path.symlink_to(Path(parse_root(store.uri).path, info.key))
    else:
        store.download(info.key, path, info.fingerprint.size)
    return info.key, path


def _data_files(store: ObjectStore) -> Iterator[ObjectInfo]:
    return (info for info in store.list() if _is_data(info.key))


def _is_data(key: str) -> bool:
    path = PurePosixPath(key)
    hidden = any(part.startswith((".", "_")) for part in path.parts)
    return not hidden and path.suffix.lower() not in _NO_DATA and not key.endswith(".tmp")


def _chosen(folder: str, policy: Policy, listed: Sequence[ObjectInfo]) -> FolderSample:
    endings = Counter(ending_of(info.key) for info in listed)
    ending = max(endings, key=lambda e: (endings[e], e != "", e))
    same = sorted((info for info in listed if ending_of(info.key) == ending), key=lambda info: info.key)
    return FolderSample(
        folder,
        policy,
        tuple(_spread(_not_too_large(folder, same))),
        f"glob:**/*{ending}" if ending else None,
        len(same),
        len(listed) == LISTED,
        {other: count for other, count in sorted(endings.items()) if other != ending},
    )


def ending_of(key: str) -> str:
    """`.csv.gz` of `in/a.b.csv.gz`; empty if there is no ending that Java's globs take literally."""
    name = PurePosixPath(key).name
    stem, ending = os.path.splitext(name)
    if ending.lower() in _PACKED:
        ending = os.path.splitext(stem)[1] + ending
    return ending if ending.replace(".", "").isalnum() and ending.isascii() else ""


def _not_too_large(folder: str, files: Sequence[ObjectInfo]) -> Sequence[ObjectInfo]:
    if folder.startswith("file:"):
        return files
    small = [info for info in files if info.fingerprint.size <= FETCHED_BYTES]
    if not small:
        raise SourceError(
            f"the files in {folder} are too large to be fetched for a sample",
            why=f"the smallest has more than {FETCHED_BYTES >> 20} MB",
            hint="copy the beginning of one to this machine, and name that copy",
        )
    return small


def _spread(files: Sequence[ObjectInfo]) -> Iterable[ObjectInfo]:
    """The first, the last and some between: files of another year may look different."""
    if len(files) <= FILES:
        return files
    return (files[round(n * (len(files) - 1) / (FILES - 1))] for n in range(FILES))


def _ask_if_file(uri: str, props: Mapping[str, str], policy: Policy) -> bool:
    if uri.startswith("file:"):
        return Path(parse_root(uri).path).is_file()
    folder, _, name = uri.rpartition("/")
    if folder.count("/") < 2 or "." not in name:
        return False
    store = open_store(folder, props, policy)
    return store.stat(store.key_of(uri)) is not None


def _file(store: ObjectStore, uri: str) -> ObjectInfo:
    key = store.key_of(uri)
    if (fingerprint := store.stat(key)) is None:
        raise SourceError(f"there is no file {uri}", hint=_ONE_FOLDER)
    return ObjectInfo(key, uri, fingerprint)


def _common_folder(uris: Sequence[str]) -> str:
    """:raises SourceError: the files have no folder in common."""
    heads = (uri.rpartition("/")[0].split("/") for uri in uris)
    together = takewhile(lambda parts: len(set(parts)) == 1, zip(*heads, strict=False))
    common = [parts[0] for parts in together]
    if len(common) < (4 if uris[0].startswith("file:") else 3):
        raise SourceError(
            "the files have no folder in common", hint="a table reads one folder, and the folders below it"
        )
    return "/".join(common)
