"""Headers of requests and responses, and the table of APIs by key.

```
request    int16 api key · int16 api version · int32 correlation id
           [v1+: int16 length, client id; −1 null — plain even in v2] [v2: tagged section]
response   int32 correlation id [v1: tagged section]
```

| | request header | response header |
|---|---|---|
| flexible version of an API | 2 | 1 |
| other versions | 1 | 0 |
| ControlledShutdown v0 | 0 | 0 |
| ApiVersions | as above | always 0, so that a client can read it before it knows anything |

A version that does not exist still has a header version: a broker must read the header to answer.

Source: ApiKeys.requestHeaderVersion, ApiKeys.responseHeaderVersion; KIP-511.
"""

from __future__ import annotations

import struct
from functools import cache, lru_cache
from struct import Struct as Format
from typing import Final, NamedTuple

from engine.limits import HEADER_FORMS_KEPT
from engine.model import new_tuple
from engine.wire import messages
from engine.wire.errors import UnknownMessage
from engine.wire.layout import message_layout
from engine.wire.read_parts import Refused, skip_tags
from engine.wire.reader import Reader
from engine.wire.schema import (
    ENGINE_RELEASE,
    NO_VERSIONS,
    RELEASES,
    Versions,
    api_names,
    parse_versions,
    schema_head,
)

API_VERSIONS_KEY: Final = 18
CONTROLLED_SHUTDOWN_KEY: Final = 7

_INT32: Final = Format(">i")
_INT32_NO_TAGS: Final = Format(">ix")
_PREFIX: Final = Format(">hhi")
_PREFIX_AND_LENGTH: Final = Format(">hhih")
_read_prefix_and_length: Final = _PREFIX_AND_LENGTH.unpack_from


class RequestHeader(NamedTuple):
    """A request's header; `body_position` is the position of its body in the frame."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_position: int


class Api(NamedTuple):
    """An API: its key, its name without `Request`, its versions, and which are flexible.

    `stable` excludes a highest version that may still change.
    """

    key: int
    name: str
    versions: Versions
    stable: Versions
    flexible: Versions


@cache
def apis(release: str = ENGINE_RELEASE) -> dict[int, Api]:
    """Return the APIs of a release by their key."""
    by_key = {}
    for key, name in api_names(release).items():
        _, _, valid_text, flexible, *flags = schema_head(f"{name}Request", release)
        valid = parse_versions(valid_text)
        stable = valid._replace(highest=valid.highest - ("unstable" in flags))
        by_key[key] = Api(key, name, valid, stable, parse_versions(flexible))
    return by_key


def api(key_or_name: int | str, release: str = ENGINE_RELEASE) -> Api:
    """Return an API by its key or its name; raises UnknownMessage."""
    row = (
        apis(release).get(key_or_name)
        if isinstance(key_or_name, int)
        else _apis_by_name(release).get(key_or_name)
    )
    if row is None:
        raise UnknownMessage(f"API {key_or_name}", release)
    return row


@cache
def _apis_by_name(release: str) -> dict[str, Api]:
    """Return the APIs of a release by their name, which is without `Request`."""
    return {row.name: row for row in apis(release).values()}


@lru_cache(maxsize=HEADER_FORMS_KEPT)
def _flexible_versions(api_key: int) -> Versions | None:
    """Return the flexible versions of an API, from the first release that has it.

    None if no release has it.
    """
    for release in RELEASES:
        name = api_names(release).get(api_key)
        if name is not None:
            _, _, _, flexible, *_ = schema_head(f"{name}Request", release)
            return parse_versions(flexible)
    return None


@lru_cache(maxsize=HEADER_FORMS_KEPT)
def request_header_version(api_key: int, api_version: int) -> int:
    """Return the header version of a request; raises UnknownMessage for an unknown key."""
    flexible = _flexible_versions(api_key)
    if flexible is None:
        raise UnknownMessage(f"API {api_key}", RELEASES[-1])
    if flexible.has(api_version):
        return 2
    return 0 if api_key == CONTROLLED_SHUTDOWN_KEY and api_version == 0 else 1


@lru_cache(maxsize=HEADER_FORMS_KEPT)
def response_header_version(api_key: int, api_version: int) -> int:
    """Return the header version of a response; 0 for an unknown API key.

    ApiVersions has header 0 always: a client may not know yet which versions the broker has.
    """
    if api_key == API_VERSIONS_KEY:
        return 0
    return int((_flexible_versions(api_key) or NO_VERSIONS).has(api_version))


def read_request_header(frame: bytes | memoryview) -> RequestHeader:
    """Decode the header of a request frame (without its size); the body is not decoded.

    Raises UnknownMessage for an unknown API key, MalformedMessage for wrong bytes.
    """
    try:
        key, version, correlation_id, length = _read_prefix_and_length(frame)
        form = request_header_version(key, version)
        if form == 0:
            return RequestHeader(key, version, correlation_id, None, _PREFIX.size)
        client_id = None
        position = _PREFIX_AND_LENGTH.size
        if length >= 0:
            stop = position + length
            if stop > len(frame):
                raise Refused
            client_id, position = str(frame[position:stop], "utf-8"), stop
        elif length < -1:
            raise Refused
        if form == 2:
            tags = frame[position]
            position += 1
            if tags:
                position = skip_tags(frame, position, len(frame), tags)
        return new_tuple(RequestHeader, (key, version, correlation_id, client_id, position))
    except (Refused, struct.error, IndexError, UnicodeDecodeError):
        return _decode_header_by_field(frame)


def _decode_header_by_field(frame: bytes | memoryview) -> RequestHeader:
    """Decode a malformed header field by field, for an error that names the field.

    Returns the header if it is valid after all, such as a short one of version 0.
    """
    reader = Reader("RequestHeader", ENGINE_RELEASE, frame, 0)
    key, version = reader.read_fixed("int16"), reader.read_fixed("int16")
    reader.position = 0
    form = request_header_version(key, version)
    header = reader.read_struct(message_layout("RequestHeader", form))
    assert isinstance(header, messages.RequestHeader)
    client_id = header.client_id if form else None
    return RequestHeader(key, version, header.correlation_id, client_id, reader.position)


def encode_request_header(
    api_key: int, api_version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """Return the header of a request; the body follows it."""
    form = request_header_version(api_key, api_version)
    if form == 0:
        return _PREFIX.pack(api_key, api_version, correlation_id)
    raw = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(raw)
    head = _PREFIX_AND_LENGTH.pack(api_key, api_version, correlation_id, length)
    return head + raw + (b"\x00" if form == 2 else b"")


def read_response_header(
    frame: bytes | memoryview, api_key: int, api_version: int
) -> tuple[int, int]:
    """Return the correlation id of a response frame, and the position of its body.

    `api_key` and `api_version` are those of the request. Raises MalformedMessage.
    """
    form = response_header_version(api_key, api_version)
    try:
        (correlation_id,) = _INT32.unpack_from(frame)
        position = _INT32.size
        if form == 1:
            position = skip_tags(frame, position + 1, len(frame), frame[position])
    except (Refused, struct.error, IndexError):
        reader = Reader("ResponseHeader", ENGINE_RELEASE, frame, 0)
        header = reader.read_struct(message_layout("ResponseHeader", form))
        assert isinstance(header, messages.ResponseHeader)
        return header.correlation_id, reader.position
    return correlation_id, position


def response_header_bytes(api_key: int, api_version: int, correlation_id: int) -> bytes:
    """Return the header of a response; the body follows it."""
    form = _INT32_NO_TAGS if response_header_version(api_key, api_version) else _INT32
    return form.pack(correlation_id)
