"""Keys and values of __consumer_offsets, __transaction_state and __share_group_state.

```
key    int16 type, then the type's key message
value  int16 version, then the type's value message in this version; null is a tombstone
```

Source: CoordinatorRecordSerde, TransactionLog. In 3.9.1 the type is the version of the key message;
in 4.3.0 key messages have only version 0.
"""

from __future__ import annotations

from struct import Struct as Format
from typing import Final, NamedTuple

from engine.wire.codec import MessageCodec, message_codec
from engine.wire.errors import FrameTruncated, UnknownMessage
from engine.wire.schema import ENGINE_RELEASE
from engine.wire.structs import Struct

_INT16: Final = Format(">h")

#: Kind of topic → release → type → message name without `Key` or `Value`.
RECORD_TYPES: Final[dict[str, dict[str, dict[int, str]]]] = {
    "offsets": {
        "3.9.1": {
            0: "OffsetCommit",
            1: "OffsetCommit",
            2: "GroupMetadata",
            3: "ConsumerGroupMetadata",
            4: "ConsumerGroupPartitionMetadata",
            5: "ConsumerGroupMemberMetadata",
            6: "ConsumerGroupTargetAssignmentMetadata",
            7: "ConsumerGroupTargetAssignmentMember",
            8: "ConsumerGroupCurrentMemberAssignment",
        },
        "4.3.0": {
            0: "LegacyOffsetCommit",
            1: "OffsetCommit",
            2: "GroupMetadata",
            3: "ConsumerGroupMetadata",
            4: "ConsumerGroupPartitionMetadata",
            5: "ConsumerGroupMemberMetadata",
            6: "ConsumerGroupTargetAssignmentMetadata",
            7: "ConsumerGroupTargetAssignmentMember",
            8: "ConsumerGroupCurrentMemberAssignment",
            10: "ShareGroupMemberMetadata",
            11: "ShareGroupMetadata",
            12: "ShareGroupTargetAssignmentMetadata",
            13: "ShareGroupTargetAssignmentMember",
            14: "ShareGroupCurrentMemberAssignment",
            15: "ShareGroupStatePartitionMetadata",
            16: "ConsumerGroupRegularExpression",
            17: "StreamsGroupMetadata",
            19: "StreamsGroupMemberMetadata",
            20: "StreamsGroupTargetAssignmentMetadata",
            21: "StreamsGroupTargetAssignmentMember",
            22: "StreamsGroupCurrentMemberAssignment",
            23: "StreamsGroupTopology",
        },
    },
    "transaction_log": {"3.9.1": {0: "TransactionLog"}, "4.3.0": {0: "TransactionLog"}},
    "share_group_state": {"4.3.0": {0: "ShareSnapshot", 1: "ShareUpdate"}},
}


class CoordinatorRecord(NamedTuple):
    """A decoded record. `value` is None and `value_version` −1 for a tombstone."""

    type: int
    key: Struct
    value_version: int
    value: Struct | None


def key_version(type_id: int, release: str) -> int:
    """Return the version of the key message of a coordinator's record type.

    In 3.9.1 the version and the type are the same number; later releases have only version 0.
    """
    return type_id if release == "3.9.1" else 0


def _split_version(message: str, raw: bytes | memoryview) -> tuple[int, bytes | memoryview]:
    """Return the leading int16 of a key or value, and the bytes after it."""
    if len(raw) < _INT16.size:
        raise FrameTruncated(message, "", 0, "an int16", f"{len(raw)} bytes")
    (version,) = _INT16.unpack_from(raw)
    return version, raw[_INT16.size :]


def decode_coordinator_record(
    kind: str,
    key: bytes | memoryview,
    value: bytes | memoryview | None,
    release: str = ENGINE_RELEASE,
    *,
    allows_more: bool = False,
) -> CoordinatorRecord:
    """Decode a record of a coordinator's topic.

    `kind` is a key of RECORD_TYPES. With `allows_more` bytes after key and value are ignored, as
    Kafka's coordinators do; otherwise they are an error. Raises UnknownMessage for a type that the
    release lacks, UnsupportedVersion for a value's version, MalformedMessage for wrong bytes.
    """
    type_id, key_body = _split_version(kind, key)
    name = RECORD_TYPES[kind].get(release, {}).get(type_id)
    if name is None:
        raise UnknownMessage(f"{kind} record type {type_id}", release)
    key_codec = message_codec(f"{name}Key", key_version(type_id, release), release)
    key_struct = _decode(key_codec, key_body, allows_more=allows_more)
    if value is None:
        return CoordinatorRecord(type_id, key_struct, -1, None)
    version, body = _split_version(f"{name}Value", value)
    value_codec = message_codec(f"{name}Value", version, release)
    value_struct = _decode(value_codec, body, allows_more=allows_more)
    return CoordinatorRecord(type_id, key_struct, version, value_struct)


def _decode(codec: MessageCodec, body: bytes | memoryview, *, allows_more: bool) -> Struct:
    """Decode a key or value, the bytes after its version.

    With `allows_more`, bytes after the message are ignored; otherwise they raise TrailingBytes.
    """
    message: Struct = codec.decode_at(body, 0)[0] if allows_more else codec.decode(body)
    return message


def encode_key(key: Struct, type_id: int) -> bytes:
    """Encode the key of a coordinator's record: an int16 type and a key message."""
    out = bytearray(_INT16.pack(type_id))
    codec = message_codec(key.message_name, key_version(type_id, key.release), key.release)
    codec.append(key, out)
    return bytes(out)


def encode_value(value: Struct, version: int) -> bytes:
    """Encode the value of a coordinator's record: an int16 version and a value message."""
    out = bytearray(_INT16.pack(version))
    message_codec(value.message_name, version, value.release).append(value, out)
    return bytes(out)
