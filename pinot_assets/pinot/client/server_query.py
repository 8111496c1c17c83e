"""Asks one server for a list of segments. The broker is not involved, so hidden segments answer, too.

So we can query staged segments that no other query sees. Servers take such a query at their gRPC port
(`pinot.server.grpc.enable`, on by default), as from brokers and Pinot's Spark connector.
Source: `server.proto` of pinot-common, `org.apache.pinot.core.transport.grpc.GrpcQueryServer`.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from secrets import randbits
from typing import ClassVar, Final, Protocol, cast

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

from pinot_assets.core.connections import PinotConnection
from pinot_assets.core.untrusted import ANSWER
from pinot_assets.errors import PinotError, PinotUnreachable, SpecError
from pinot_assets.pinot.client.data_table import DataTable, read_data_table

_PACKAGE: Final = "org.apache.pinot.common.proto"
_METHOD: Final = f"/{_PACKAGE}.PinotQueryServer/Submit"


def ask_server(address: str, sql: str, segments: Sequence[str], connection: PinotConnection) -> DataTable:
    """Return one server's answer about these segments.

    :param address: `host:port` of its gRPC query port.
    :param sql: names the table with its type: `SELECT COUNT(*) FROM orders_OFFLINE`.
    :param segments: the server's segments to read.
    :param connection: gives the credentials, the deadline of a query, and whether to use TLS.
    :raises ValueError: no segment is named; Pinot would answer that there are no rows.
    :raises PinotUnreachable: no connection, or no answer in time.
    :raises PinotError: the server refused, left segments out, or sent an answer that cannot be read.
    :raises SpecError: verification of certificates is off, or the certificates cannot be read.
    """
    if not segments:
        raise ValueError("no segment is named")
    request = _REQUEST(metadata=_metadata(connection), sql=sql, segments=list(segments)).SerializeToString()
    with _channel(address, connection) as channel:
        submit: grpc.UnaryStreamMultiCallable[bytes, _Response] = channel.unary_stream(
            _METHOD, response_deserializer=_RESPONSE.FromString
        )
        try:
            # Two answers are already an error, so do not wait for more.
            stream = submit(request, timeout=connection.timeouts.query)
            answers = [answer.payload for answer in islice(stream, 2)]
            stream.cancel()
        except grpc.RpcError as error:
            raise _refusal(address, error, connection) from error
    if len(answers) != 1:
        raise PinotError(f"{address} gave {'several answers' if answers else 'no answer'} to one query")
    return _whole(address, read_data_table(answers[0]), segments)


def require_askable(connection: PinotConnection) -> None:
    """Check the settings for queries to servers, without a call to one.

    :raises SpecError: as `ask_server`.
    """
    if connection.grpc_is_secure:
        _credentials(connection)


def _whole(address: str, table: DataTable, segments: Sequence[str]) -> DataTable:
    """Return the answer, if it is complete.

    :raises PinotError: it has an error, or does not cover all segments.
    """
    if table.exceptions:
        code, text = next(iter(table.exceptions.items()))
        raise PinotError(f"{address} answered with error {code}", why=text.partition("\n")[0][:300])
    if table.segments_queried != len(set(segments)):
        raise PinotError(
            f"{address} used {table.segments_queried:,} of {len(set(segments)):,} segments",
            why="it has not loaded the others, and does not report that",
        )
    if table.segments_invalid:
        raise PinotError(
            f"{address} left {table.segments_invalid:,} of {len(set(segments)):,} segments out",
            why="they lack a column of the query: it was added after they had been loaded",
            hint="reload the table's segments, so that its servers add it",
        )
    return table


def _metadata(connection: PinotConnection) -> dict[str, str]:
    # Servers count and cancel queries by this number, so two queries at a time need different ones.
    number = str(randbits(62))
    meta = {"requestId": number, "brokerId": "pinot-assets", "enableStreaming": "false", "payloadType": "sql"}
    if connection.auth is not None:
        meta["authorization"] = connection.auth.header
    return meta


def _channel(address: str, connection: PinotConnection) -> grpc.Channel:
    # As for HTTP, use no proxy from the environment: it would see the query and the credentials.
    options: list[tuple[str, int | str]] = [
        ("grpc.max_receive_message_length", ANSWER.bytes),
        ("grpc.enable_http_proxy", 0),
    ]
    if connection.grpc.server_name is not None:
        options.append(("grpc.ssl_target_name_override", connection.grpc.server_name))
    if not connection.grpc_is_secure:
        return grpc.insecure_channel(address, options)
    return grpc.secure_channel(address, _credentials(connection), options)


def _credentials(connection: PinotConnection) -> grpc.ChannelCredentials:
    tls = connection.grpc_tls
    if not tls.verify:
        raise SpecError(
            "pinot-assets sends no query by gRPC to a server whose certificate it cannot verify",
            hint="set PINOT_GRPC_CA_BUNDLE to the certificate of the authority",
        )
    trusted = _content(tls.ca_bundle or ssl.get_default_verify_paths().cafile)
    certificate = _content(tls.client_cert)
    key = _content(tls.client_key) or certificate
    return grpc.ssl_channel_credentials(trusted, key, certificate)


def _content(path: str | None) -> bytes | None:
    try:
        return Path(path).read_bytes() if path is not None else None
    except OSError as error:
        raise SpecError(
            f"the TLS file {path} cannot be used", why=str(error), hint="name readable PEM files"
        ) from error


def _refusal(address: str, error: grpc.RpcError, connection: PinotConnection) -> PinotError:
    code, details = error.code(), connection.redact(str(error.details()))
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        return PinotUnreachable(
            f"the server at {address} did not answer by gRPC",
            why=f"{code.name}: {details}",
            hint="is pinot.server.grpc.enable on, and can this machine connect to the port? "
            + (
                (
                    "The connection uses TLS: is pinot.server.grpctls set so, and does the "
                    "certificate name the host? Change it with PINOT_GRPC_TLS, PINOT_GRPC_CA_BUNDLE "
                    "and PINOT_GRPC_SERVER_NAME"
                )
                if connection.grpc_is_secure
                else "The connection does not use TLS; change it with PINOT_GRPC_TLS"
            ),
        )
    too_large = code is grpc.StatusCode.RESOURCE_EXHAUSTED
    return PinotError(
        f"the server at {address} refused a query",
        why=f"{code.name}: {details}",
        hint=ANSWER.hint if too_large else None,
    )


class _Response(Protocol):
    """What we use of a class that protobuf makes when this module is imported."""

    FromString: ClassVar[Callable[[bytes], _Response]]
    payload: bytes


def _messages() -> tuple[Callable[..., Message], type[_Response]]:
    """Return the classes `ServerRequest` and `ServerResponse`, with only the fields that we use."""
    file = descriptor_pb2.FileDescriptorProto(
        name="pinot_assets/server.proto", package=_PACKAGE, syntax="proto3"
    )
    kinds = descriptor_pb2.FieldDescriptorProto
    for name in ("ServerRequest", "ServerResponse"):
        message = file.message_type.add(name=name)
        entry = message.nested_type.add(name="MetadataEntry")
        entry.options.map_entry = True
        for number, key in enumerate(("key", "value"), 1):
            entry.field.add(name=key, number=number, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
        message.field.add(
            name="metadata",
            number=1,
            type=kinds.TYPE_MESSAGE,
            label=kinds.LABEL_REPEATED,
            type_name=f".{_PACKAGE}.{name}.MetadataEntry",
        )
    request, response = file.message_type
    request.field.add(name="sql", number=2, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    request.field.add(name="segments", number=3, type=kinds.TYPE_STRING, label=kinds.LABEL_REPEATED)
    response.field.add(name="payload", number=2, type=kinds.TYPE_BYTES, label=kinds.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made = message_factory.GetMessageClassesForFiles([file.name], pool)
    return made[f"{_PACKAGE}.ServerRequest"], cast("type[_Response]", made[f"{_PACKAGE}.ServerResponse"])


_REQUEST, _RESPONSE = _messages()
