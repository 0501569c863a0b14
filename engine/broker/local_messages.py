"""Messages between brokers of one process, and the bytes that they replace.

Some handlers know the form of their API: they read requests from bytes, and
return bytes or regions of files. Brokers of one process exchange messages; here these become what
a connection would deliver.

`encoded_serve` sends every message through its bytes, as a connection does. The same run with and
without it shows where the two differ.

Source: D12.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.api.dispatch import ApiRow
from engine.api.exchange import EncodedResponse, EncodedRows
from engine.host.promise import Promise
from engine.host.send_parts import part_bytes
from engine.wire.codec import message_codec
from engine.wire.row_bytes import with_rows
from engine.wire.structs import Message, Struct


def request_for(row: ApiRow, version: int, request: object) -> object:
    """Return a request in the form that a row's handler takes."""
    if row.decode is None:
        return request
    assert isinstance(request, Struct)
    return row.decode(
        memoryview(message_codec(f"{row.name}Request", version).encode(request)), version
    )


def response_of(row: ApiRow, version: int, response: Message) -> Message:
    """Return a handler's response as a message; its open files are released."""
    if isinstance(response, EncodedResponse):
        try:
            body = b"".join(part_bytes(part) for part in response.parts)
        finally:
            release_response(response)
    elif isinstance(response, EncodedRows):
        body = b"".join(with_rows(row.name, version, *response.rows))
    elif isinstance(response, bytes):
        body = response
    else:
        return response
    return message_codec(f"{row.name}Response", version).decode(memoryview(body))


def release_response(response: Message) -> None:
    """Release the files that a handler's response holds open, where it is not sent."""
    if isinstance(response, EncodedResponse) and response.on_sent is not None:
        response.on_sent()


def encoded_serve(
    serve: Callable[[str, int, object], Promise[Message]], name: str, version: int, request: Struct
) -> Promise[Message]:
    """Serve a local request through its bytes: request and response are encoded and decoded.

    Shows in tests that the values which brokers of one process pass around equal their bytes.
    """
    arrived = _through_bytes(f"{name}Request", version, request)
    return serve(name, version, arrived).then(
        lambda response: _through_bytes(f"{name}Response", version, response)
    )


def _through_bytes(name: str, version: int, message: Struct) -> Message:
    """Return a message as its receiver decodes it from the wire."""
    codec = message_codec(name, version)
    return codec.decode(memoryview(codec.encode(message)))
