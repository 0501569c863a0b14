"""Records of __cluster_metadata and __remote_log_metadata: a frame around one message.

```
unsigned varint   frame version, always 1
unsigned varint   type: the message's API key within its topic
unsigned varint   version of the message
…                 the message, up to the end of the value
```

Source: AbstractApiMessageSerde, MetadataRecordSerde, RemoteLogMetadataSerde.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from engine.wire.codec import message_codec
from engine.wire.errors import MalformedMessage, TrailingBytes, UnknownMessage
from engine.wire.reader import Reader
from engine.wire.schema import ENGINE_RELEASE, message_names, message_schema
from engine.wire.structs import Struct
from engine.wire.writer import varint_bytes

FRAME_VERSION: Final = 1

_REMOTE: Final = (
    "RemoteLogSegmentMetadataRecord",
    "RemoteLogSegmentMetadataUpdateRecord",
    "RemotePartitionDeleteMetadataRecord",
    "RemoteLogSegmentMetadataSnapshotRecord",
)


class FramedRecord(NamedTuple):
    """A decoded record with the type and version of its frame."""

    type: int
    version: int
    message: Struct


@cache
def framed_types(kind: str, release: str = ENGINE_RELEASE) -> dict[int, str]:
    """Return the message name by record type, for `cluster_metadata` or `remote_log_metadata`."""
    if kind == "remote_log_metadata":
        return dict(enumerate(_REMOTE))
    names = [name for name in message_names(release) if name.endswith("Record")]
    schemas = [message_schema(name, release) for name in names if name not in _REMOTE]
    return {schema.api_key: schema.name for schema in schemas if schema.kind == "metadata"}


def decode_framed_record(
    kind: str, value: bytes | memoryview, release: str = ENGINE_RELEASE
) -> FramedRecord:
    """Decode a value of the topic's kind (see `framed_types`).

    Raises UnknownMessage, UnsupportedVersion, MalformedMessage.
    """
    types = framed_types(kind, release)
    # Any message of the topic can be named: the reader reads only the frame.
    reader = Reader(types[0], release, value, 0)
    frame_version = reader.read_varint()
    if frame_version != FRAME_VERSION:
        expected = f"frame version {FRAME_VERSION}"
        raise MalformedMessage(kind, "", 0, expected, frame_version)
    type_id, version = reader.read_varint(), reader.read_varint()
    if type_id not in types:
        raise UnknownMessage(f"{kind} record type {type_id}", release)
    message, end = message_codec(types[type_id], version, release).decode_at(value, reader.position)
    if end != len(value):
        raise TrailingBytes(types[type_id], "", end, "the end", f"{len(value) - end} bytes more")
    return FramedRecord(type_id, version, message)


def encode_framed_record(message: Struct, version: int) -> bytes:
    """Encode a message in its frame: the frame's version, the record's type and its version."""
    schema = message_schema(message.message_name, message.release)
    out = bytearray(varint_bytes(FRAME_VERSION))
    out += varint_bytes(schema.api_key) + varint_bytes(version)
    message_codec(schema.name, version, schema.release).append(message, out)
    return bytes(out)
