"""The envelope of a value whose schema is in a registry.

```
0          at 0   int8    always 0
schema id  at 1   int32
protobuf   at 5           path to the message in the schema: a varint count (0 means one index, 0),
                          then that many indexes, from the outermost message inwards
value
```

Source: Confluent's wire format.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.errors import EngineError
from engine.records.varint import VarintTooLong, VarintTruncated, read_varint

_HEAD_BYTES = 5
_MESSAGE_DEPTH_MAX = 32


class WrongEnvelope(EngineError):
    """The message indexes of a protobuf value are invalid."""


class Envelope(NamedTuple):
    """A value and the id of its schema, from Confluent's wire format."""

    schema_id: int
    content: bytes


def open_envelope(raw: bytes) -> Envelope | None:
    """Return schema id and content of an envelope, None if the bytes are no envelope."""
    if len(raw) < _HEAD_BYTES or raw[0]:
        return None
    return Envelope(int.from_bytes(raw[1:_HEAD_BYTES], "big", signed=True), raw[_HEAD_BYTES:])


def split_message_indexes(content: bytes) -> tuple[tuple[int, ...], bytes]:
    """Return the message indexes of an enveloped Protobuf value, and the value's bytes.

    The indexes lead from the schema's outermost messages to a nested one. A count of 0 is the short
    form of (0,), the first message. Raises WrongEnvelope.
    """
    try:
        count, position = read_varint(content, 0)
        if not 0 <= count <= _MESSAGE_DEPTH_MAX:
            raise WrongEnvelope(f"{count} message indexes")
        if not count:
            return (0,), content[position:]
        indexes = []
        for _ in range(count):
            index, position = read_varint(content, position)
            indexes.append(index)
    except (VarintTruncated, VarintTooLong) as error:
        raise WrongEnvelope(f"no message indexes: {error}") from error
    return tuple(indexes), content[position:]
