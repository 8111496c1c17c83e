"""A bucket of S3 (or a service with its protocol) or GCS, or a container of ADLS, as an object store.

It uses obstore, whose listing needs a fraction of boto3's CPU time. This module corrects two faults of it.
Obstore shows a folder marker `a/` as an empty object `a`. And it cannot name keys with empty, `.` or `..`
segments or control characters: here that is an error, never a shorter listing.

Our errors never keep obstore's as their cause (`from None`). Its errors repeat the store's whole answer, with
the access key and the text that was signed, and Dagster stores and shows the causes of an error.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import obstore
import pyarrow as pa
import pyarrow.compute as pc
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import ObjectStore as Store

from pinot_assets.core.installation_policy import Policy
from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.untrusted import OBJECT, ByteLimit
from pinot_assets.errors import ListingFailed, SourceError, StoreConflict
from pinot_assets.snapshot.receipt import Fingerprint
from pinot_assets.source.allowed_places import require_place
from pinot_assets.source.bucket_settings import (
    CALL_TIMEOUT,
    TRANSFER_TIMEOUT,
    BucketSettings,
    bucket_settings,
)
from pinot_assets.source.file_table import COLUMNS, ObjectInfo, Page, page_of, raw_of
from pinot_assets.source.interruptible import each, in_thread
from pinot_assets.source.object_store import (
    CHUNK_BYTES,
    RootedStore,
    copied,
    probe_put_if_absent,
    require_range,
    whole,
)
from pinot_assets.source.uris import PLAIN_KEY, Root, are_plain, check_key, is_plain

# ADLS takes no larger object in one PUT (S3: 5 GiB, GCS: more), and only a single PUT can be conditional.
MAX_PUT_BYTES = 5000 * 1024**2

# Objects held as columns at a time: many, because a step over them costs as much as one over one object.
_PAGE = 10_000

_QUERY = re.compile(r"\?\S*")

# obstore refuses these in names.
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class BucketObjectStore(RootedStore):
    """An `ObjectStore` (see there) below a prefix of a bucket.

    Its URI is `s3://bucket/prefix`, `gs://…` or `abfss://container@account.dfs.core.windows.net/prefix`.
    Pickled as URI, unresolved settings and policy: `${NAME}` goes to other machines, the secret does not.
    """

    def __init__(self, root: Root, props: Mapping[str, str], policy: Policy) -> None:
        self.root = root
        self._props = dict(props)
        self._policy = policy

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.root, self._props, self._policy)

    def __repr__(self) -> str:
        return f"BucketObjectStore({self.uri!r})"

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Yield the objects page by page; one may come twice, none is left out."""
        below = self._full(prefix) if prefix else self.root.path
        for page in self._listed(below):
            yield from self._objects_of(page)

    def pages(self, after: str = "") -> Iterator[Page]:
        """Like `list` for all objects, as columns; only unusual objects are looked at one by one."""
        # ADLS and S3's directory buckets do not list in byte order, and continue elsewhere after a key.
        in_order = self.root.scheme != "abfss" and not self.root.bucket.endswith("--x-s3")
        up_to = self._full(after) if after else "" if in_order else None
        for page in self._listed(self.root.path, after):
            up_to = _listed_up_to(page, up_to)
            yield Page(self._columns(page), up_to[self._strip :] if up_to else "")

    def _columns(self, page: pa.RecordBatch) -> pa.Table:
        root, keys = self._below_root(page.column("path"))
        usual, ones = _usual(keys, page.column("size")), None
        if usual is not None:
            ones = page_of(self._objects_of(page.filter(pc.invert(usual))))
            page, keys = page.filter(usual), keys.filter(usual)
        seconds = pc.divide(page.column("last_modified").cast(pa.int64()), 1_000_000)
        columns = pa.table(
            [
                pc.binary_join_element_wise(root, keys, ""),
                page.column("size").cast(pa.int64()),
                pc.multiply(seconds, 1_000_000),
                _without_quotes(page.column("e_tag")),
            ],
            schema=COLUMNS,
        )
        return columns if ones is None else pa.concat_tables([ones, columns])

    def _below_root(self, paths: pa.Array) -> tuple[str, pa.Array]:
        """Return a URI, and for each path in the bucket the rest of it that follows this URI."""
        if is_plain(self.root.path):
            return f"{self.root.scheme}://{self.root.bucket}/", paths
        return f"{self.uri}/", pc.utf8_slice_codeunits(paths, self._strip)

    def _listed(self, below: str, after: str = "") -> Iterator[pa.RecordBatch]:
        """Yield the objects as obstore lists them, some thousands at a time.

        :param after: list only keys that come after this one.
        :raises ListingFailed: as `list`.
        """
        offset = self._full(after) if after else None
        try:
            pages = obstore.list(
                self._calls, below or None, offset=offset, chunk_size=_PAGE, return_arrow=True
            )
            for page in each(pages):
                yield pa.record_batch(page)
        except (BaseError, OSError) as error:
            raise self._listing_failed(error) from None

    def _objects_of(self, page: pa.RecordBatch) -> Iterator[ObjectInfo]:
        try:
            for meta in page.to_pylist():
                key = meta["path"][self._strip :]
                if meta["size"] > 0:
                    yield ObjectInfo(key, self.uri_of(key), _fingerprint(meta))
                # Only a HEAD shows whether this is an empty object or a folder marker.
                elif key and (empty := self._head(self._full(key))) is not None:
                    yield ObjectInfo(key, self.uri_of(key), empty)
        except (BaseError, OSError) as error:
            raise self._listing_failed(error) from None

    @property
    def _strip(self) -> int:
        """Length of the root's part of a path in the bucket."""
        return len(self.root.path) + 1 if self.root.path else 0

    def stat(self, key: str) -> Fingerprint | None:
        """Sends a HEAD; the fingerprint has the version id on a versioned bucket."""
        full = self._full(key)
        with self._mapped(f"Cannot read the attributes of {self.uri_of(key)}"):
            return self._head(full)

    def ask_if_folder(self, key: str) -> bool:
        """Lists the folder; the first page is enough."""
        return next(self.list(key), None) is not None

    def read(self, key: str, most: ByteLimit = OBJECT) -> bytes:
        """Sends a GET; its header has the size, so the limit is checked before the content arrives."""
        with self._mapped(f"Cannot read {self.uri_of(key)}"):
            answer = in_thread(obstore.get, self._transfers, self._full(key))
            return whole(
                self.uri_of(key), answer.meta["size"], map(bytes, each(answer.stream(CHUNK_BYTES))), most
            )

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """Sends a GET with a range."""
        require_range(self.uri_of(key), start, length)
        with self._mapped(f"Cannot read {self.uri_of(key)}"):
            return bytes(
                in_thread(obstore.get_range, self._transfers, self._full(key), start=start, length=length)
            )

    def sha256(self, key: str) -> str:
        """Sends a GET and hashes the stream."""
        digest = hashlib.sha256()
        with self._mapped(f"Cannot read {self.uri_of(key)}"):
            for chunk in each(in_thread(obstore.get, self._transfers, self._full(key)).stream(CHUNK_BYTES)):
                digest.update(chunk)
        return digest.hexdigest()

    def download(self, key: str, path: Path, size: int) -> str:
        """Sends a GET, writes the stream to the file and hashes it."""
        with self._mapped(f"Cannot copy {self.uri_of(key)} to {path}"):
            answer = in_thread(obstore.get, self._transfers, self._full(key))
            return copied(self.uri_of(key), map(bytes, each(answer.stream(CHUNK_BYTES))), path, size)

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Sends a conditional PUT (rule R13)."""
        self._put(key, data, len(data), lambda: hashlib.sha256(data).hexdigest())

    def put_file_if_absent(self, key: str, path: Path) -> None:
        """Sends a conditional PUT (rule R13) and holds the whole file in memory for that time.

        :raises SourceError: the file is larger than 5000 MiB.
        """
        size = path.stat().st_size
        if size > MAX_PUT_BYTES:
            raise SourceError(
                f"{path.name} is too large to write to {self.uri}",
                why="the store accepts at most 5000 MiB in one conditional PUT",
                hint="lower maxNumRecordsPerSegment",
            )
        self._put(key, path, size, lambda: _sha256(path))

    def delete(self, key: str) -> None:
        """Sends a DELETE; a versioned bucket keeps the old version behind a delete marker."""
        with self._mapped(f"Cannot delete {self.uri_of(key)}"):
            try:
                in_thread(obstore.delete, self._calls, self._full(key))
            except FileNotFoundError:
                return

    def probe(self) -> None:
        """Check with a probe object that the store refuses to overwrite."""
        probe_put_if_absent(self)

    def exists_root(self) -> bool:
        """Whether the bucket can be listed; a prefix itself need not exist."""
        with self._mapped(f"Cannot reach {self.uri}"):
            try:
                next(each(obstore.list(self._calls, self.root.path or None, chunk_size=1)), None)
            except InvalidPathError:
                return True
            except BaseError as error:
                if _status(error) == "404":
                    return False
                raise
        return True

    @cached_property
    def settings(self) -> BucketSettings:
        """Return the settings, resolved on this machine.

        :raises SourceError: as `bucket_settings`, or the policy refuses the place.
        """
        require_place(self.root, self._props, self._policy)
        return bucket_settings(self.root, self._props, self._policy)

    @cached_property
    def _calls(self) -> Store:
        return self.settings.client(CALL_TIMEOUT)

    @cached_property
    def _transfers(self) -> Store:
        return self.settings.client(TRANSFER_TIMEOUT)

    def _full(self, key: str) -> str:
        check_key(key)
        if _CONTROL.search(key):
            raise SourceError(f"{key!r} cannot be a key in a bucket", hint="leave out control characters")
        if "\\" in key and self.root.scheme == "abfss":
            raise SourceError(
                f"{key!r} cannot be a key on ADLS",
                why="a backslash becomes a slash there",
                hint="leave it out",
            )
        return f"{self.root.path}/{key}" if self.root.path else key

    def _head(self, full: str) -> Fingerprint | None:
        try:
            return _fingerprint(in_thread(obstore.head, self._calls, full))
        except FileNotFoundError:
            return None

    def _put(self, key: str, data: bytes | Path, size: int, sha256: Callable[[], str]) -> None:
        full = self._full(key)
        try:
            in_thread(obstore.put, self._transfers, full, data, mode="create")
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise self._error(f"Cannot write {self.uri_of(key)}", error) from None
        except (BaseError, OSError) as error:
            # Two cases can hide a success: a 412 answers our own first try, whose reply was lost; or the
            # connection broke after the write. So what is at the key decides.
            self._settle(key, size, sha256, error)

    def _settle(self, key: str, size: int, sha256: Callable[[], str], error: Exception) -> None:
        """Look at the key after a write without a success.

        :raises StoreConflict: the key has other content.
        :raises SourceError: the key has no object.
        """
        if (there := self.stat(key)) is None:
            why = "another object had that name and was deleted meanwhile"
            if isinstance(error, AlreadyExistsError):
                raise SourceError(f"Cannot write {self.uri_of(key)}", why=why, hint="try again") from None
            raise self._error(f"Cannot write {self.uri_of(key)}", error) from None
        if there.size != size or self.sha256(key) != sha256():
            raise StoreConflict(
                f"{self.uri_of(key)} already exists with other content",
                hint="read it and continue from its content; pinot-assets never overwrites objects here",
            ) from None

    @contextmanager
    def _mapped(self, what: str) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            raise self._error(what, error) from None

    def _listing_failed(self, error: Exception) -> ListingFailed:
        what = f"Listing {self.uri} did not complete"
        if isinstance(error, InvalidPathError):
            return ListingFailed(
                what,
                why=f"pinot-assets cannot read a key there ({_reason(error)})",
                hint="rename the object: no empty, '.' or '..' path segment, no control character",
            )
        return ListingFailed(what, why=_reason(error), hint=_hint(error))

    def _error(self, what: str, error: Exception) -> SourceError:
        return SourceError(what, why=_reason(error), hint=_hint(error))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fingerprint(meta: JsonMapping) -> Fingerprint:
    etag = meta["e_tag"]
    return Fingerprint(
        size=meta["size"],
        # Whole seconds, because a listing may have milliseconds and a HEAD never has.
        mtime_us=int(meta["last_modified"].timestamp()) * 1_000_000,
        etag=None if etag is None else etag.replace('"', ""),
        version_id=meta["version"],
    )


def _listed_up_to(page: pa.RecordBatch, before: str | None) -> str | None:
    """Return the path up to which a listing is complete; None if that is no longer known.

    Empty objects are left out: they may be folder markers, which are not listed at the place of their name.

    :param before: the value for all pages before this one; empty at the beginning.
    """
    if before is None:
        return None
    paths, full = page.column("path"), pc.greater(page.column("size"), 0)
    if not pc.all(full).as_py():
        paths = paths.filter(full)
    if not len(paths):
        return before
    in_order = pc.all(pc.less_equal(paths[:-1], paths[1:])).as_py() is not False
    return str(paths[-1]) if in_order and before <= str(paths[0]) else None


def _usual(keys: pa.Array, sizes: pa.Array) -> pa.Array | None:
    """Return which objects need no second look: not empty, and no escapes in the URI. None: all of them."""
    full = pc.greater(sizes, 0)
    if are_plain(bytes(raw_of(keys))):
        return None if pc.all(full).as_py() else full
    return pc.and_(full, pc.match_substring_regex(keys, PLAIN_KEY))


def _without_quotes(etags: pa.Array) -> pa.Array:
    """Return `etag.replace('"', "")` of each; usually the etag has one quote at either end."""
    trimmed = pc.ascii_trim(etags, '"')
    return pc.replace_substring(trimmed, '"', "") if b'"' in bytes(raw_of(trimmed)) else trimmed


def _status(error: Exception) -> str | None:
    match = re.search(r"status code: (\d{3})", str(error))
    return None if match is None else match[1]


def _reason(error: Exception) -> str:
    """Return the store's own text: its code and the message's first line, else obstore's first line.

    The rest is dropped: an S3 body may hold the access key and the signed text, a query string a signature.
    """
    text = str(error).split("\n\nDebug source", 1)[0]
    status = _status(error)
    code = re.search(r"<Code>([^<]*)</Code>", text)
    message = re.search(r"<Message>([^<\n]*)", text)
    if code is not None:
        return " ".join(part for part in (status, code[1], message[1] if message else None) if part)
    if isinstance(error, FileNotFoundError):
        return "it does not exist"
    if bare := re.search(r"status code: (\d{3}[^:<\n]*)", text):
        return bare[1].strip()
    return _QUERY.sub("", text.split("<", 1)[0].splitlines()[0]).strip().rstrip(":")


def _hint(error: Exception) -> str:
    if getattr(error, "errno", None) is not None:  # an error of this machine, at a local read or write
        return "check the disk of this machine: it may be full, or broken"
    status = _status(error)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or status in ("401", "403"):
        return "check the keys, and that they may list, read, write and delete there"
    if isinstance(error, FileNotFoundError) or status == "404":
        return "check bucket (container) and prefix; or was the object deleted meanwhile?"
    if status in ("301", "307", "400"):
        return "check region and endpoint"
    return "check endpoint and network, then try again"
