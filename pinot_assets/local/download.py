"""Files from a few HTTP sites: a small one whole, a large one continued where an earlier attempt ended.

A part that was fetched stays until the file is complete, however the process ends. Beside it is a note of
the file's size and of the validator (RFC 9110, 8.8) that the site gave for it. With that, a later request
asks for the rest only if the site still has the same file (`If-Range`); otherwise it begins again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import httpx

from pinot_assets.core.connections import origin_of

_TIMEOUT: Final = httpx.Timeout(60, connect=20)
_MOST_REDIRECTS: Final = 5
_MOST_BREAKS: Final = 5
"""How often a transfer may break in one call before the user hears of it."""
_NUMBER: Final = re.compile(r"[0-9]{1,18}")

Refusal = Callable[[int, int], None]
"""Raises an error if a file of so many bytes, of which so many are here, must not be fetched."""


class SiteFailed(Exception):
    """A site does not answer, or answers with an error; the text says which."""


class Downloads:
    """Requests to some sites. Close it, or use it in a `with`.

    :param sites: addresses. Redirects are followed only to their schemes, hosts and ports.
    """

    def __init__(self, sites: Sequence[str]) -> None:
        self._origins = {origin_of(site) for site in sites}
        # Bytes as they are stored: a site that unpacks a `.gz` on the way would change its hash.
        self._client = httpx.Client(timeout=_TIMEOUT, headers={"Accept-Encoding": "identity"})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def text(self, url: str, most: int) -> str | None:
        """Return a small file, None if the site has none of that name.

        :param most: bytes that are read of it.
        :raises SiteFailed: the site does not answer, or not with a file.
        """
        try:
            with self._answer(url, {}) as answer:
                if answer.status_code in (404, 410):
                    return None
                if answer.status_code != 200:
                    raise SiteFailed(f"{answer.url} answers with status {answer.status_code}")
                content = b""
                for chunk in answer.iter_raw(most):
                    content += chunk
                    if len(content) >= most:
                        break
                return content[:most].decode("ascii", errors="replace")
        except httpx.TransportError as error:
            raise SiteFailed(f"{url} does not answer ({_said(error)})") from error

    def fetch(self, url: str, part: Path, refuse: Refusal, progress: Callable[[int, int], None]) -> None:
        """Fetch a large file into `part`; continue where an earlier call ended.

        :param refuse: called when the file's size is known, before any byte is fetched.
        :param progress: called with the bytes that are here, and the file's size.
        :raises SiteFailed: the site does not have it, or the transfer breaks again and again.
        """
        last = ""
        for _ in range(_MOST_BREAKS):
            try:
                if self._fetch_rest(url, part, refuse, progress):
                    return
            except httpx.TransportError as error:
                last = _said(error)
        raise SiteFailed(f"the transfer of {url} broke {_MOST_BREAKS} times ({last or 'other bytes came'})")

    def _fetch_rest(
        self, url: str, part: Path, refuse: Refusal, progress: Callable[[int, int], None]
    ) -> bool:
        """Fetch what is missing; return whether the file is complete now."""
        have, note = _kept(part)
        if have and have == note.size:
            return True
        headers = {"Range": f"bytes={have}-", "If-Range": note.validator} if have else {}
        with self._answer(url, headers) as answer:
            if answer.status_code == 206 and answer.headers.get("Content-Range") == note.rest(have):
                pass
            elif answer.status_code == 200:
                discard(part)
                have, note = 0, _ServedFile(_length(answer), _validator(answer))
            elif answer.status_code in (206, 416):  # the site has another file now
                discard(part)
                return False
            else:
                raise SiteFailed(f"{answer.url} answers with status {answer.status_code}")
            refuse(note.size, have)
            note.write(part)
            with part.open("ab") as file:
                for chunk in answer.iter_raw():  # as they arrive: a larger block would be lost at a break
                    file.write(chunk)
                    have += len(chunk)
                    if have > note.size:  # the site sends more than it said
                        break
                    progress(have, note.size)
        return have == note.size

    @contextmanager
    def _answer(self, url: str, headers: dict[str, str]) -> Iterator[httpx.Response]:
        for _ in range(_MOST_REDIRECTS):
            with self._client.stream("GET", url, headers=headers) as answer:
                if not answer.has_redirect_location:
                    yield answer
                    return
                url = self._redirected(answer)
        raise SiteFailed(f"{url} redirects again and again")

    def _redirected(self, answer: httpx.Response) -> str:
        try:
            url = str(answer.url.join(answer.headers["Location"]))
        except httpx.InvalidURL as error:
            raise SiteFailed(f"{answer.url} redirects to no address") from error
        if origin_of(url) not in self._origins:
            raise SiteFailed(f"{answer.url} redirects to {url}, which is another site")
        return url


@dataclass(frozen=True, slots=True)
class _ServedFile:
    """What a site said of a file: its size in bytes, and its validator, empty if it has none."""

    size: int
    validator: str

    def rest(self, have: int) -> str:
        """Return the `Content-Range` of what is missing."""
        return f"bytes {have}-{self.size - 1}/{self.size}"

    def write(self, part: Path) -> None:
        _note_of(part).write_text(f"{self.size}\n{self.validator}\n", encoding="ascii")


def discard(part: Path) -> None:
    """Delete a part and its note."""
    part.unlink(missing_ok=True)
    _note_of(part).unlink(missing_ok=True)


def fetched_bytes(part: Path) -> int:
    """Return how many bytes of a file an earlier attempt left."""
    return _kept(part)[0]


def _note_of(part: Path) -> Path:
    return part.with_name(f"{part.name}.note")


def _kept(part: Path) -> tuple[int, _ServedFile]:
    """Return the bytes that can be continued, and their note; 0 if an earlier attempt left nothing usable."""
    nothing = 0, _ServedFile(0, "")
    try:
        size, validator = _note_of(part).read_text(encoding="ascii").splitlines()
        have = part.stat().st_size
    except (FileNotFoundError, ValueError):
        return nothing
    if not _NUMBER.fullmatch(size) or have > int(size) or not (validator or have == int(size)):
        return nothing
    return have, _ServedFile(int(size), validator)


def _validator(answer: httpx.Response) -> str:
    """Return what tells this file from later ones; only a strong entity tag may be used with `If-Range`."""
    tag = answer.headers.get("ETag", "")
    found = tag if tag.startswith('"') else answer.headers.get("Last-Modified", "")
    return found if found.isascii() and found.isprintable() else ""


def _length(answer: httpx.Response) -> int:
    length = answer.headers.get("Content-Length", "")
    if _NUMBER.fullmatch(length) is None:
        raise SiteFailed(f"{answer.url} does not say how large the file is")
    return int(length)


def _said(error: httpx.TransportError) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
