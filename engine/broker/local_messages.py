"""Convert messages between brokers in one process to and from bytes.

Some handlers decode requests from bytes themselves, and return bytes or slices of files. Brokers in
one process exchange message objects; this module converts them for such handlers.

`serve_encoded` encodes and decodes every message, as a connection does. A run with it must have the
same results as one without it.

Source: D12.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.api.dispatch import ApiRow
from engine.api.exchange import EncodedResponse, EncodedRows
from engine.host.promise import Promise
from engine.host.send_parts import part_bytes
from engine.wire.codec import message_codec
from engine.wire.row_bytes import insert_rows
from engine.wire.structs import Message, Struct


def request_for(row: ApiRow, version: int, request: object) -> object:
    """Convert a request of a broker in this process to the form that the API's handler takes.

    Some handlers take the form of their own decoder, for which the request is encoded first.
    """
    if row.decode is None:
        return request
    assert isinstance(request, Struct)
    return row.decode(
        memoryview(message_codec(f"{row.name}Request", version).encode(request)), version
    )


def message_of_response(row: ApiRow, version: int, response: Message) -> Message:
    """Convert a handler's response, encoded or not, to a message object; its files are released."""
    if isinstance(response, EncodedResponse):
        try:
            body = b"".join(part_bytes(part) for part in response.parts)
        finally:
            release_response(response)
    elif isinstance(response, EncodedRows):
        body = b"".join(insert_rows(row.name, version, *response.rows))
    elif isinstance(response, bytes):
        body = response
    else:
        return response
    return message_codec(f"{row.name}Response", version).decode(memoryview(body))


def release_response(response: Message) -> None:
    """Release the open files of a response that is not sent."""
    if isinstance(response, EncodedResponse) and response.on_sent is not None:
        response.on_sent()


def serve_encoded(
    serve: Callable[[str, int, object], Promise[Message]], name: str, version: int, request: Struct
) -> Promise[Message]:
    """Serve a local request after encoding and decoding it, and the same for its response.

    Tests use it to show that message objects between local brokers equal their encoded form.
    """
    arrived = _encode_and_decode(f"{name}Request", version, request)
    return serve(name, version, arrived).then(
        lambda response: _encode_and_decode(f"{name}Response", version, response)
    )


def _encode_and_decode(name: str, version: int, message: Struct) -> Message:
    """Encode a message and return what its bytes decode to."""
    codec = message_codec(name, version)
    return codec.decode(memoryview(codec.encode(message)))
