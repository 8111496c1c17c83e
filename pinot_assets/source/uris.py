"""URIs identify files: one spelling for each file, and the way back to its key (edge cases E24, E27).

A file's URI is its store's root URI, a slash, and its key in percent-encoding: every byte but letters,
digits and ``-_.~!$&'()*+,;=:@/`` is escaped. So two keys never share a URI, a URI is plain ASCII without
spaces, and a comma has no meaning (URIs are kept in lists, never joined).
"""

from __future__ import annotations

import os
import re
import string
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote, unquote_to_bytes

from pinot_assets.errors import SettingError, SourceError

# Without the comma, because Pinot splits the values of a segment's custom map at it.
_SAFE = "/!$&'()*+;=:@"
_PLAIN = (string.ascii_letters + string.digits + "/._=-").encode()
PLAIN_KEY = r"^[A-Za-z0-9/._=-]*$"
"""`is_plain` as a regular expression for Arrow."""
# Hadoop once accepted `s3://key:secret@bucket`, so errors never show this part.
_USER_INFO = re.compile(r"//[^/]*@")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
# s3a and s3n are Hadoop's names for the same buckets. abfs is treated as abfss: we always use TLS.
_SCHEMES = {
    "file": "file",
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "abfs": "abfss",
    "abfss": "abfss",
}
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]+")
_CONTAINER = re.compile(r"(\$?[a-z0-9-]{3,63})@([a-z0-9]{3,24})\.dfs\.([a-z0-9.-]+)")
_ADLS_EXAMPLE = "abfss://container@account.dfs.core.windows.net/prefix"


@dataclass(frozen=True)
class Root:
    """The root folder of a store.

    :ivar scheme: `file`, `s3`, `gs` or `abfss`.
    :ivar bucket: the bucket (`container@account.dfs.core.windows.net` on ADLS), empty on a local disk.
    :ivar path: the folder without a slash at its end: `/data/in` on a local disk, the key prefix
        without a slash at its start (maybe empty) in a bucket.
    """

    scheme: str
    bucket: str
    path: str

    @cached_property
    def uri(self) -> str:
        """Return the normalised URI, without a slash at its end."""
        if self.scheme == "file":
            return f"file://{quote_key(self.path)}"
        return f"{self.scheme}://{self.bucket}/{quote_key(self.path)}".removesuffix("/")


def parse_root(uri: str) -> Root:
    """Read a folder's URI, or a plain absolute path, into its one spelling.

    A URI is percent-decoded, a plain path is not. `.` segments and doubled slashes of local paths are
    dropped. `..` is refused, because its meaning depends on symbolic links.

    :raises SettingError: another scheme, a relative path, a query or fragment, or an invalid segment.
    """
    shown = _USER_INFO.sub("//…@", uri)
    if (match := _SCHEME.match(uri)) is None:
        return _local_root(uri, shown)
    if (scheme := _SCHEMES.get(match[1].lower())) is None:
        raise SettingError(
            f"Cannot use {shown}",
            why=f"the scheme {match[1]} is not supported",
            hint=f"use file:///…, s3://bucket/…, gs://bucket/… or {_ADLS_EXAMPLE}",
        )
    rest = uri[match.end() :]
    if "?" in rest or "#" in rest:
        raise SettingError(
            f"Cannot use {shown}",
            why="? and # end the path of a URI",
            hint="write %3F and %23 where they are part of a name",
        )
    authority, slash, path = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest)
    path = slash + path
    if scheme == "file":
        if authority not in ("", "localhost"):
            raise SettingError(
                f"Cannot use {shown}",
                why=f"{authority} would be a host name",
                hint="write three slashes: file:///path",
            )
        return _local_root(unquote_key(path), shown)
    return _bucket_root(scheme, authority, unquote_key(path), shown)


def adls_names(authority: str) -> tuple[str, str, str]:
    """Return container, account and host of the blobs for `container@account.dfs.core.windows.net`.

    :raises SettingError: the text has another form.
    """
    if (match := _CONTAINER.fullmatch(authority)) is None:
        raise SettingError("The URI names no container and account of ADLS", hint=f"write {_ADLS_EXAMPLE}")
    container, account, domain = match.groups()
    return container, account, f"{account}.blob.{domain}"


def quote_key(key: str) -> str:
    """Percent-encode a key or path; `unquote_key` restores also bytes that are not UTF-8 (local names)."""
    # Most names need no encoding, and a listing may hold a million of them.
    return key if is_plain(key) else quote(os.fsencode(key), safe=_SAFE)


def is_plain(text: str) -> bool:
    """Whether a key or path stays the same in percent-encoding."""
    return are_plain(text.encode(errors="surrogateescape"))


def are_plain(texts: bytes) -> bool:
    """Whether all of several keys or paths, joined together, are plain."""
    return not texts.translate(None, _PLAIN)


def unquote_key(text: str) -> str:
    """Decode what `quote_key` encoded."""
    return os.fsdecode(unquote_to_bytes(text)) if "%" in text else text


def join_uri(root_uri: str, key: str) -> str:
    """Return the URI of a key below a root's URI."""
    return f"{root_uri.removesuffix('/')}/{quote_key(key)}"


def key_below(root_uri: str, uri: str) -> str:
    """Return the key of a URI below a root's URI: the inverse of `join_uri`.

    :raises SourceError: the URI is not below that root.
    """
    prefix = root_uri.removesuffix("/") + "/"
    if not uri.startswith(prefix) or len(uri) == len(prefix):
        raise SourceError(f"{uri} is not below {root_uri}", hint="open the store that the file is in")
    return unquote_key(uri[len(prefix) :])


def check_key(key: str) -> None:
    """Check that a text is a key: no empty, `.` or `..` segment (they could leave the root), no NUL, and
    no character that a file name cannot have (JSON may hold half of a surrogate pair).

    :raises SourceError: the text is not a key.
    """
    try:
        os.fsencode(key)
    except UnicodeEncodeError:
        raise SourceError(f"{key!r} cannot be a key", why="it has characters that no name has") from None
    if "\0" in key or any(segment in ("", ".", "..") for segment in key.split("/")):
        raise SourceError(f"{key!r} cannot be a key", hint="a key is file and folder names with / between")


def _local_root(path: str, written: str) -> Root:
    if not path.startswith("/"):
        raise SettingError(
            f"Cannot use {written!r}",
            why="it is neither a URI nor an absolute path",
            hint="write file:///absolute/path or s3://bucket/prefix",
        )
    segments = [segment for segment in path.split("/") if segment not in ("", ".")]
    _refuse_parent(segments, written)
    return Root("file", "", "/" + "/".join(segments))


def _bucket_root(scheme: str, bucket: str, path: str, written: str) -> Root:
    if scheme == "abfss":
        adls_names(bucket)
    elif not bucket:
        raise SettingError(
            f"Cannot use {written}", why="it names no bucket", hint=f"write {scheme}://bucket/prefix"
        )
    elif not _BUCKET.fullmatch(bucket):  # the error never shows it: it may hold a key and its secret
        raise SettingError(
            f"Cannot use {written}",
            why="no bucket can have the name between // and the next /",
            hint="a bucket's name has at least 3 characters: letters, digits, '.', '-' and '_'; "
            "the first is a letter or a digit",
        )
    prefix = path.strip("/")
    segments = prefix.split("/") if prefix else []
    _refuse_parent(segments, written)
    if "" in segments or "." in segments or path.startswith("//") or path.endswith("//"):
        raise SettingError(
            f"Cannot use {written}",
            why="an empty or '.' segment is part of a key's name in a bucket and is not supported",
            hint="write each slash once",
        )
    return Root(scheme, bucket, prefix)


def _refuse_parent(segments: list[str], written: str) -> None:
    if ".." in segments:
        raise SettingError(
            f"Cannot use {written}", why="it has a '..' segment", hint="write the path it means"
        )
