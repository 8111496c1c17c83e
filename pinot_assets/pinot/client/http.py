"""One HTTP call to Pinot: a deadline, safe retries, and the only place that turns failures into our errors.

The class of an error shows what the caller may conclude. `PinotUnreachable`: not sent, or it was a read.
`SwitchStateUnknown`: it was sent and no answer came, so it may have happened. Any other: Pinot answered.
"""

from __future__ import annotations

import json
import math
import re
import ssl
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import IO, Final, Self
from urllib.parse import quote

import httpx
from tenacity import Retrying, retry_if_exception, wait_random_exponential

from pinot_assets.core.connections import PinotConnection
from pinot_assets.core.json_object import JsonObject, JsonValue
from pinot_assets.core.untrusted import ERROR_BYTES, REPLY, read_json
from pinot_assets.errors import (
    PinotError,
    PinotNotFound,
    PinotUnreachable,
    PushRefused,
    SwitchConflict,
    SwitchStateUnknown,
)

ACCEPTED: Final = "gzip"
"""How a server may compress its reply; sent as Accept-Encoding."""

_EITHER: Final = zlib.MAX_WBITS | 32  # detect gzip or zlib from the stream
_STEP: Final = 1 << 20


_WRONG_ADDRESS: Final = "does the address belong to a Pinot controller or broker?"


class BadReply(Exception):
    """The body has an unexpected encoding, is incomplete or too large. Arguments: the reason, and a hint."""


def unpacked(response: httpx.Response) -> Iterator[bytes]:
    """Yield the body in chunks; an unpacked one has at most a MiB. The caller may stop at any chunk.

    :raises BadReply: the body cannot be unpacked.
    :raises httpx.TransportError: the body did not arrive completely.
    """
    packing = response.headers.get("content-encoding", "identity").strip().lower()
    assert isinstance(response.stream, httpx.SyncByteStream)
    if packing in ("", "identity"):
        yield from response.stream
    elif packing in ("gzip", "x-gzip", "deflate"):
        yield from _inflated(response.stream)
    else:
        raise BadReply(
            f"its body is compressed with {packing!r}, and pinot-assets accepts only {ACCEPTED}",
            _WRONG_ADDRESS,
        )


def _inflated(packed: Iterable[bytes]) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(_EITHER)
    try:
        for chunk in packed:
            yield unpacker.decompress(chunk, _STEP)
            while unpacker.unconsumed_tail:
                yield unpacker.decompress(unpacker.unconsumed_tail, _STEP)
        while rest := unpacker.decompress(b"", _STEP):
            yield rest
    except zlib.error as error:
        raise BadReply(f"its body cannot be decompressed: {error}", _WRONG_ADDRESS) from error
    if not unpacker.eof:
        raise BadReply("its compressed body is incomplete", _WRONG_ADDRESS)


ATTEMPTS = 3
# Failures that httpx reports before it sent the first byte of the request.
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
# With these a gateway reports that it got no complete answer from Pinot.
GATEWAY = (502, 503, 504)
# For plain HTTP: it trusts no certificate, and httpx need not load the system's authorities for each client.
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class UploadFailed(PushRefused):
    """Pinot tried to store the segment and failed (deep store, staging area, malformed tar): status 500."""


class NoRights(PinotError):
    """Pinot does not know the user, or the user may not make this call: status 401, or 403."""


class CutOff(SwitchStateUnknown):
    """The connection broke during the call. Pinot may never have received it, unlike a call whose answer is
    only late."""


class NoConnection(PinotUnreachable):
    """No connection to the address could be made, so nothing was sent."""


class NotReady(PinotUnreachable):
    """The address answered 503: a process there, or a gateway before it, reports that it is not ready."""


@contextmanager
def admin_of_server() -> Iterator[None]:
    """Wrap calls to a server's admin port: a refusal says which right the user lacks there.

    Since https://github.com/apache/pinot/pull/19233 a server with access control asks for it on every route
    that we call: 401 without a user, 403 for one with READ alone. Before, it asked for nothing.

    :raises NoRights: as in the block, with another hint.
    """
    try:
        yield
    except NoRights as error:
        raise NoRights(
            error.what,
            why=error.why,
            hint="this route of a server needs its admin right: give the user of PINOT_USER or PINOT_TOKEN "
            "the permission admin in the server's access control (role ADMIN, component SERVER for users "
            "in ZooKeeper); docs/security.md has the routes",
        ) from error


class CallKind(Enum):
    """What a call does, which decides what its failure means."""

    READ = "read"
    """Repeating it does no harm, so it is retried; without an answer it counts as unreachable."""

    QUERY = "query"
    """A read that may keep Pinot busy for long, so it is not sent a second time."""

    WRITE = "write"
    """Schema, table config, deletion."""

    UPLOAD = "upload"
    """Upload of one segment or a batch."""

    LINEAGE = "lineage"
    """Start, end or revert of a replacement. Pinot answers every logical refusal with 500."""

    @property
    def reads(self) -> bool:
        """Whether the call changes nothing in Pinot."""
        return self in (CallKind.READ, CallKind.QUERY)


@dataclass(frozen=True, slots=True)
class HttpCall:
    """One request.

    :ivar path: below the base URL, already quoted, without the query.
    :ivar deadline: seconds for the whole call with its retries; for a read, which changes nothing, for each
        try. None: the deadline of an ordinary call (`Timeouts.call`).
    """

    method: str
    path: str
    kind: CallKind
    deadline: float | None = None
    params: Mapping[str, str | Sequence[str]] | None = None
    headers: Mapping[str, str] | None = None
    json: JsonValue = None
    files: Mapping[str, tuple[str, bytes | IO[bytes], str]] | None = None


class Closing:
    """Closes its connections at the end of a `with`."""

    def close(self) -> None:
        """Close all connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class HttpClient(Closing):
    """A pooled, thread-safe client for one base URL."""

    def __init__(
        self, base_url: str, connection: PinotConnection, transport: httpx.BaseTransport | None = None
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._connection = connection
        headers = {"Accept-Encoding": ACCEPTED}
        if connection.auth is not None:
            headers["Authorization"] = connection.auth.header
        self._client = httpx.Client(
            base_url=self.base_url,
            headers=headers,
            verify=connection.tls.context() if self.base_url.startswith("https:") else _NO_TLS,
            transport=transport,
            # Only the connection's settings count: no proxy and no .netrc from the environment.
            trust_env=False,
            follow_redirects=False,
        )

    def close(self) -> None:
        """Close the connections of the pool."""
        self._client.close()

    def send(self, call: HttpCall) -> str:
        """Send the call and return the reply's text.

        A read is retried if no answer came; any other call, within the deadline, only if it was never sent.

        :raises PinotError: one of its subclasses, see the module docstring.
        """
        until = math.inf if call.kind is CallKind.READ else time.monotonic() + self._seconds(call)
        retrying = Retrying(
            retry=retry_if_exception(lambda error: _may_repeat(call.kind, error)),
            stop=lambda state: (
                state.attempt_number >= ATTEMPTS or time.monotonic() + state.upcoming_sleep >= until
            ),
            wait=wait_random_exponential(multiplier=0.1, max=1.0),
            reraise=True,
        )
        try:
            status, text = retrying(self._once, call, until)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._no_answer(call, error) from None
        except BadReply as error:
            raise self._unread(call, *error.args) from None
        if 200 <= status < 300:
            return text
        raise self._refusal(call, status, text)

    def send_json(self, call: HttpCall) -> JsonValue:
        """Send the call and return the reply as JSON values, None for an empty reply.

        :raises PinotError: also if the reply is not JSON.
        """
        text = self.send(call)
        if not text.strip():
            return None
        try:
            return read_json(text)
        except ValueError as error:
            raise PinotError(
                f"{self._name(call)} did not answer with JSON",
                why=self._shorten(text if isinstance(error, json.JSONDecodeError) else str(error)),
                hint=_WRONG_ADDRESS,
            ) from None

    def get_json(self, path: str, /, **params: str) -> JsonValue:
        """Return the answer to a GET, as `send_json` returns it."""
        return self.send_json(HttpCall("GET", path, CallKind.READ, params=params or None))

    def send_fields(self, call: HttpCall) -> JsonObject:
        """Send the call and return the reply, which must be a JSON object; `{}` for an empty reply."""
        if isinstance(value := self.send_json(call), dict | None):
            return value or {}
        raise PinotError(f"{self._name(call)} did not answer with a JSON object", hint=_WRONG_ADDRESS)

    def get_fields(self, path: str, /, **params: str) -> JsonObject:
        """Return the answer to a GET, as `send_fields` returns it."""
        return self.send_fields(HttpCall("GET", path, CallKind.READ, params=params or None))

    def _seconds(self, call: HttpCall) -> float:
        return self._connection.timeouts.call if call.deadline is None else call.deadline

    def _once(self, call: HttpCall, until: float) -> tuple[int, str]:
        until = min(until, time.monotonic() + self._seconds(call))
        left = max(until - time.monotonic(), 0.001)
        timeout = httpx.Timeout(left, connect=min(left, self._connection.timeouts.connect))
        request = self._client.build_request(
            call.method,
            call.path,
            params=call.params,
            headers=call.headers,
            json=call.json,
            files=call.files,
            timeout=timeout,
        )
        assert isinstance(request.stream, httpx.SyncByteStream)
        request.stream = _InTime(request.stream, until)
        # httpx's own timeouts are for each read, so here we cut off a reply that arrives in small pieces.
        response = self._client.send(request, stream=True)
        try:
            return response.status_code, _text(response, until)
        finally:
            response.close()

    def _name(self, call: HttpCall) -> str:
        return f"{call.method} {self.base_url}{call.path}"

    def _shorten(self, text: str) -> str:
        return self._connection.redact(" ".join(text.split())[:600])

    def _other_address(self) -> str:
        if self.base_url == self._connection.controller_url.rstrip("/"):
            return "check PINOT_CONTROLLER_URL, or start the local stack with `pinot-assets local up`"
        return "check that Pinot runs there, and that this machine can reach it"

    def _no_answer(self, call: HttpCall, error: Exception) -> PinotError:
        reason = self._shorten(f"{type(error).__name__} {error}".strip())
        if isinstance(error, (*NOT_SENT, httpx.InvalidURL)):
            return NoConnection(
                f"no connection for {self._name(call)}",
                why=reason,
                hint=f"this call was not sent: {self._other_address()}",
            )
        if call.kind.reads:
            return PinotUnreachable(
                f"no answer to {self._name(call)}",
                why=reason,
                hint="is Pinot running there? The call only reads, and changed nothing",
            )
        late = isinstance(error, httpx.TimeoutException)
        return _unknown(SwitchStateUnknown if late else CutOff, self._name(call), reason)

    def _unread(self, call: HttpCall, why: str, hint: str) -> PinotError:
        """Return the error for a reply that was not read to its end: after a write the outcome is unknown."""
        if call.kind.reads:
            return PinotError(f"the answer to {self._name(call)} cannot be read", why=why, hint=hint)
        return _unknown(
            SwitchStateUnknown, self._name(call), f"an answer arrived, but it cannot be read: {why}"
        )

    def _refusal(self, call: HttpCall, status: int, text: str) -> PinotError:
        name, reason = self._name(call), self._shorten(error_text(text)) or f"status {status}"
        what = f"{name} was refused with status {status}"
        if status == 401 or (status == 403 and call.kind is not CallKind.UPLOAD):
            return NoRights(
                what,
                why=reason,
                hint="set PINOT_USER and PINOT_PASSWORD, or PINOT_TOKEN, of a user with that permission",
            )
        if status == 404:
            return PinotNotFound(
                what,
                why=reason,
                hint="is that the right Pinot? `pinot-assets tables apply` makes what a table spec describes",
            )
        if status in GATEWAY:
            if call.kind.reads:
                away = NotReady if status == 503 else PinotUnreachable
                return away(
                    what, why=reason, hint="is Pinot running there? The call only reads, and changed nothing"
                )
            kind = SwitchStateUnknown if status == 504 else CutOff
            return _unknown(kind, name, f"status {status}: {reason}")
        if call.kind is CallKind.UPLOAD:
            return (UploadFailed if status >= 500 else PushRefused)(what, why=reason)
        if call.kind is CallKind.LINEAGE and status == 500:
            return SwitchConflict(what, why=reason, hint="read the lineage again, then decide")
        return PinotError(what, why=reason)


def _text(response: httpx.Response, until: float) -> str:
    """Return the reply's body. If Pinot refused the call, only its beginning: the status is what counts.

    :raises BadReply: the body is larger than the limit, or cannot be unpacked.
    """
    refused = not 200 <= response.status_code < 300
    most = ERROR_BYTES if refused else REPLY.bytes
    body = bytearray()
    for chunk in unpacked(response):
        body += chunk
        if len(body) > most:
            if not refused:
                raise BadReply(REPLY.why, REPLY.hint)
            del body[most:]
            break
        if time.monotonic() > until:
            raise httpx.ReadTimeout("the reply did not end before the deadline", request=response.request)
    return body.decode("utf-8", "replace")


def error_text(text: str) -> str:
    """Return a reply's error text: `error` or `message` of JSON, the text of an HTML page, else all of it."""
    try:
        value = read_json(text)
    except ValueError:
        plain = re.sub(r"<(style|script|head)\b.*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL | re.IGNORECASE)
        return " ".join(plain.split())
    if isinstance(value, dict):
        words = value.get("error") or value.get("message")
        if isinstance(words, str):
            return words
    return text


def _unknown(kind: type[SwitchStateUnknown], name: str, reason: str) -> SwitchStateUnknown:
    return kind(
        f"{name} was sent and no answer arrived", why=reason, hint="it may have happened, or may still happen"
    )


def _may_repeat(kind: CallKind, error: BaseException) -> bool:
    repeatable = httpx.TransportError if kind is CallKind.READ else NOT_SENT
    return isinstance(error, repeatable) and not isinstance(error, httpx.UnsupportedProtocol)


class _InTime(httpx.SyncByteStream):
    """A request body that stops at the deadline, because httpx's own timeouts are for each write."""

    def __init__(self, body: httpx.SyncByteStream, until: float) -> None:
        self._body = body
        self._until = until

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._body:
            if time.monotonic() > self._until:
                raise httpx.WriteTimeout("the request was not sent before the deadline")
            yield chunk


def quoted(name: str) -> str:
    """Return a name quoted as one segment of a path."""
    return quote(name, safe="")
