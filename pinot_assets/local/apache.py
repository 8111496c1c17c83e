"""Fetch a release of Apache Pinot from Apache's own sites into the user's cache, once per user.

Apache publishes each release as one archive of about 1 GB, with its SHA-512 beside it: the newest releases
on the first of `SITES`, all of them on the second. Only these two are asked, and only over TLS. Of the
archive only the jars that a class path needs are unpacked.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import shutil
import tarfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Final, cast
from urllib.parse import urlsplit

from packaging.version import Version

from pinot_assets.core.files import temporary_folder
from pinot_assets.core.interrupts import saying
from pinot_assets.core.untrusted import BoundedHeader
from pinot_assets.errors import LocalStackError
from pinot_assets.local.cache import fill_once, require_room
from pinot_assets.local.download import Downloads, SiteFailed, discard, fetched_bytes
from pinot_assets.local.pinot_build import jars_of, read_build
from pinot_assets.pinot.versions import REFERENCE
from pinot_assets.settings.local_stack import default_cache

SITES: Final = ("https://downloads.apache.org/pinot", "https://archive.apache.org/dist/pinot")
"""Where Apache publishes Pinot: the newest releases, then all of them."""

OLDEST: Final = "0.11.0"
"""The oldest release that pinot-assets works with."""

MOST_BYTES: Final = 4_000_000_000
"""Limit of an archive, and of what is unpacked of it. That of 1.5.1 has about 1 GB."""

_MOST_ENTRIES: Final = 100_000
_DIGEST_BYTES: Final = 4096
_NEEDED: Final = ("lib", "plugins")
"""Folders of a distribution that a class path needs; others have plug-ins of Spark, and samples."""

_RELEASE: Final = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}")
_NAME_ANOTHER: Final = f"name another release, such as {REFERENCE}; {SITES[-1]}/ lists all"
_OTHER_WAY: Final = (
    "check the network and the proxy (HTTPS_PROXY), then try again. Or fetch and unpack the release in "
    "another way, and name its folder in PINOT_HOME"
)
_HEX: Final = re.compile(r"\b[0-9a-fA-F]{128}\b")
_DAMAGED: Final = (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile)

Progress = Callable[[str], None]


def require_release(word: str) -> None:
    """:raises LocalStackError: the word is not a release that Apache's sites can have."""
    if _RELEASE.fullmatch(word) is None:
        raise LocalStackError(
            f"{word!r} is not a release of Apache Pinot",
            why="a release has three numbers",
            hint=f"write one such as {REFERENCE}; {SITES[-1]}/ lists all. A build of another kind can be "
            "unpacked and named in PINOT_HOME",
        )
    if Version(word) < Version(OLDEST):
        raise LocalStackError(
            f"Pinot {word} is too old", why=f"pinot-assets works with {OLDEST} and newer", hint=_NAME_ANOTHER
        )


def is_fetched(release: str, *, cache: Path | None = None) -> bool:
    """Whether `distribution` works without a network."""
    return _folder(release, cache).is_dir()


def distribution(
    release: str, *, cache: Path | None = None, progress: Progress, sites: Sequence[str] = SITES
) -> Path:
    """Return the folder of a release with its `lib` and `plugins`; fetch it if the cache does not have it.

    :param release: three numbers, see `require_release`.
    :param cache: the user's cache, `default_cache()` if None.
    :param progress: called with one short line whenever there is something new to show.
    :param sites: addresses to ask, in this order; tests have one of their own.
    :raises LocalStackError: no site has it or answers, it is damaged, the disk is full.
    """
    require_release(release)
    folder = _folder(release, cache)
    fill_once(
        folder,
        lambda: _fetch_kept(release, folder, progress, sites),
        lambda: progress(f"another process fetches Pinot {release}; waiting for it"),
    )
    return folder


def _folder(release: str, cache: Path | None) -> Path:
    return (cache or default_cache()) / "pinot" / f"apache-pinot-{release}-bin"


def _fetch_kept(release: str, folder: Path, progress: Progress, sites: Sequence[str]) -> None:
    with saying(f"what was fetched of Pinot {release} stays: the same command continues after it"):
        _fetch(release, folder, progress, sites)


def _fetch(release: str, folder: Path, progress: Progress, sites: Sequence[str]) -> None:
    archive = folder.with_name(f"{folder.name}.tar.gz")
    part = archive.with_name(f"{archive.name}.part")
    with Downloads(sites) as downloads:
        url, digest = _find(downloads, release, archive.name, sites)
        progress(f"Pinot {release}: asking {urlsplit(url).hostname}")
        try:
            downloads.fetch(
                url,
                part,
                lambda size, have: _require_possible(archive, size, have),
                _megabytes(f"Pinot {release}", progress),
            )
        except SiteFailed as error:
            here = fetched_bytes(part) // 10**6
            raise LocalStackError(
                f"Pinot {release} could not be fetched",
                why=str(error),
                hint=f"try again; it continues after the {here:,} MB that are here" if here else _OTHER_WAY,
            ) from error
        progress(f"Pinot {release}: checking the SHA-512")
        _require_digest(part, digest, url)
    progress(f"Pinot {release}: unpacking")
    # Next to its target, so that the rename is atomic. It is temporary: nothing stays behind after a kill.
    with temporary_folder("pinot", folder.parent) as scratch:
        filling = scratch / folder.name
        try:
            _unpack(part, filling)
            read_build(jars_of(filling))
        except (*_DAMAGED, ValueError) as error:
            discard(part)
            raise LocalStackError(
                f"{url} is not a distribution of Pinot", why=str(error), hint=_NAME_ANOTHER
            ) from error
        filling.rename(folder)
    discard(part)


def _find(downloads: Downloads, release: str, archive: str, sites: Sequence[str]) -> tuple[str, str]:
    """Return the address of a release's archive, and its SHA-512, from the first site that has it."""
    failed = []
    for site in sites:
        url = f"{site}/apache-pinot-{release}/{archive}"
        try:
            if (text := downloads.text(f"{url}.sha512", _DIGEST_BYTES)) is not None:
                return url, _digest(text, url)
        except SiteFailed as error:
            failed.append(str(error))
    if failed:
        raise LocalStackError(
            f"Pinot {release} could not be fetched",
            why="; ".join(failed),
            hint=_OTHER_WAY,
        )
    raise LocalStackError(
        f"there is no Pinot {release}",
        why=f"{' and '.join(str(urlsplit(site).hostname) for site in sites)} have no {archive}",
        hint=_NAME_ANOTHER,
    )


def _digest(text: str, url: str) -> str:
    """Return the hash of a `.sha512` file: of `sha512sum`, of Maven (only the hash), or of GnuPG (in groups).

    :raises SiteFailed: it is none of them.
    """
    if (match := _HEX.search(text)) is not None:
        return match[0].lower()
    in_groups = "".join(text.partition(":")[2].split())
    if _HEX.fullmatch(in_groups) is None:
        raise SiteFailed(f"{url}.sha512 has no SHA-512")
    return in_groups.lower()


def _require_possible(archive: Path, size: int, have: int) -> None:
    if size > MOST_BYTES:
        raise LocalStackError(
            f"{archive.name} is too large",
            why=f"it has {size // 10**6:,} MB, at most {MOST_BYTES // 10**6:,} MB are fetched",
            hint="fetch and unpack it in another way, and name its folder in PINOT_HOME",
        )
    # Jars are compressed already, so what is unpacked has about the size of the archive.
    needed = size - have + size * 5 // 4
    require_room(archive.parent, needed, f"to fetch and unpack {archive.name}", "PINOT_ASSETS_CACHE")


def _megabytes(what: str, progress: Progress) -> Callable[[int, int], None]:
    """Return a function that shows bytes as whole megabytes, each number once."""
    shown = -1

    def show(have: int, size: int) -> None:
        nonlocal shown
        if have // 10**6 != shown:
            shown = have // 10**6
            progress(f"{what}: {shown:,} of {size // 10**6:,} MB are here")

    return show


def _require_digest(part: Path, digest: str, url: str) -> None:
    with part.open("rb") as file:
        found = hashlib.file_digest(file, "sha512").hexdigest()
    if found != digest:
        discard(part)
        raise LocalStackError(
            f"{url} is not the file that its SHA-512 is of",
            why=f"the SHA-512 begins with {found[:12]}, {digest[:12]} was expected",
            hint="try again: what was fetched is deleted. If it happens again, fetch the release in another "
            "way, check it, and name its folder in PINOT_HOME",
        )


def _unpack(archive: Path, target: Path) -> None:
    """Write the jars of `lib` and `plugins` into a new folder, and nothing outside of it.

    :raises tarfile.TarError: it has other things there than files, or more than the limits.
    """
    entries = unpacked = 0
    with tarfile.open(archive, mode="r|gz", tarinfo=BoundedHeader) as tar:
        for entry in tar:
            entries, unpacked = entries + 1, unpacked + entry.size
            if entries > _MOST_ENTRIES or unpacked > MOST_BYTES:
                raise tarfile.TarError("it has more than is unpacked of a distribution")
            path = PurePosixPath(entry.name)
            if path.is_absolute() or ".." in path.parts:
                raise tarfile.TarError(f"an entry leads out of it: {entry.name}")
            if path.parts[1:2] not in [(folder,) for folder in _NEEDED] or entry.isdir():
                continue
            if not entry.isreg():
                raise tarfile.TarError(f"an entry is neither a file nor a folder: {entry.name}")
            file = target.joinpath(*path.parts[1:])
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("wb") as out:
                shutil.copyfileobj(cast(IO[bytes], tar.extractfile(entry)), out, 1 << 20)
