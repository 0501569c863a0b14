"""Records of __cluster_metadata and __remote_log_metadata as texts.

```
cluster metadata   {"type":"FEATURE_LEVEL_RECORD","version":0,"data":{…}}
remote metadata    RemoteLogSegmentMetadata{remoteLogSegmentId=…}
```

The records have no key. For a value that cannot be decoded the text is a sentence with the reason.

Source: ClusterMetadataLogMessageParser, RemoteMetadataLogMessageParser, AbstractApiMessageSerde.
"""

from __future__ import annotations

from typing import Final

from engine.errors import WireError
from engine.wire.codec import message_codec
from engine.wire.framed_records import FRAME_VERSION, FramedRecord, framed_types
from engine.wire.json_form import json_node, json_text
from engine.wire.layout import attribute_name
from engine.wire.remote_log_text import remote_log_text
from engine.wire.schema import message_schema
from engine.wire.tool_reader import ToolFailure, ToolReader, nearest_version

_INT16_MAX: Final = 0x7FFF

#: The Java interface of a record, by release, which is named in the error for a null value.
_RECORD_CLASS: Final = {
    "3.9.1": "org.apache.kafka.common.record.Record",
    "4.3.0": "org.apache.kafka.common.record.internal.Record",
}


def format_cluster_metadata(
    release: str, key: bytes | memoryview | None, value: bytes | memoryview | None, offset: int
) -> tuple[str | None, str | None]:
    """Return None for the key, and the payload text of a metadata record, as Kafka's tool prints.

    An error of the record becomes its text.
    """
    try:
        if value is None:
            raise _parse_failure("Error while reading frame version")
        record = _decode_record("cluster_metadata", release, value)
    except ToolFailure as failure:
        return None, f"Error at {offset}, skipping. {failure.java_message or 'null'}"
    node = {
        "type": attribute_name(record.message.message_name).upper(),
        "version": record.version,
        "data": json_node(record.message, nearest_version(record.message, record.version)),
    }
    return None, json_text(node)


def format_remote_log_metadata(
    release: str, key: bytes | memoryview | None, value: bytes | memoryview | None, offset: int
) -> tuple[str | None, str | None]:
    """Return None for the key, and the payload text of a record of remote log metadata.

    An error of the record becomes its text, as Kafka's tool prints it.
    """
    try:
        if value is None:
            raise ToolFailure(
                "java.lang.NullPointerException",
                'Cannot invoke "java.nio.ByteBuffer.remaining()" because the return value of '
                f'"{_RECORD_CLASS[release]}.value()" is null',
            )
        return None, remote_log_text(_decode_record("remote_log_metadata", release, value).message)
    except ToolFailure as failure:
        return None, f"Error at offset {offset}, skipping. {failure.java_message or 'null'}"


def _parse_failure(message: str) -> ToolFailure:
    """Return a MetadataParseException with this message, as Kafka's tool throws it."""
    name = "org.apache.kafka.server.common.serialization.MetadataParseException"
    return ToolFailure(name, message)


def _decode_record(kind: str, release: str, value: bytes | memoryview) -> FramedRecord:
    """Decode a framed record; raises ToolFailure with the tool's error text."""
    types = framed_types(kind, release)
    # Any message of the topic can be named: the reader reads only the frame.
    frame = ToolReader(message_schema(types[0], release), value, 0, 0)
    frame_version = _read_int16(frame, "frame version")
    if frame_version == 0:
        raise _parse_failure(
            "Could not deserialize metadata record with frame version 0. Note that upgrades from "
            "the preview release of KRaft in 2.8 to newer versions are not supported."
        )
    if frame_version != FRAME_VERSION:
        raise _parse_failure(
            "Could not deserialize metadata record due to unknown frame version "
            f"{frame_version}(only frame version 1 is supported)"
        )
    type_id, version = _read_int16(frame, "type"), _read_int16(frame, "version")
    name = types.get(type_id)
    if name is None:
        raise _parse_failure(
            "org.apache.kafka.common.errors.UnsupportedVersionException: "
            f"Unknown metadata id {type_id}"
        )
    try:
        message, end = message_codec(name, version, release).decode_at(value, frame.position)
    except WireError:
        reader = ToolReader(message_schema(name, release), value, frame.position, version)
        try:
            message, end = reader.read(), reader.position
        except ToolFailure as failure:
            raise _parse_failure(f"Failed to deserialize record with type {type_id}") from failure
    if end != len(value):
        raise _parse_failure(f"Found {len(value) - end} byte(s) of garbage after {type_id}")
    return FramedRecord(type_id, version, message)


def _read_int16(frame: ToolReader, what: str) -> int:
    """Read a varint of the frame and narrow it to an int16; raises ToolFailure.

    `what` names the number in the error's text.
    """
    try:
        value = frame.read_varint()
    except ToolFailure as failure:
        raise _parse_failure(f"Error while reading {what}") from failure
    if value > _INT16_MAX:
        raise _parse_failure(f"Value for {what} was too large.")
    return (value & 0xFFFF ^ 0x8000) - 0x8000
