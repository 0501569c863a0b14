"""Encode the rows of a response separately, and insert them into it later.

```
head │ count │ rows … │ fields of fixed size │ 0
```

The count is an int32, or n + 1 as a varint in flexible versions, which have no tagged fields (0).
"""

from __future__ import annotations

import copy

from engine.wire.codec import MessageCodec, message_codec
from engine.wire.layout import FIXED
from engine.wire.structs import Message
from engine.wire.writer import varint_bytes

_INT32_BYTES = 4


def encode_rows(api_name: str, version: int, message: Message, field: str) -> bytes:
    """Return the bytes of the rows of a response's array, without the response around them.

    Only fixed-size fields may follow the array `field`. `insert_rows` joins such rows.
    """
    codec = message_codec(f"{api_name}Response", version)
    empty = copy.copy(message)
    setattr(empty, field, [])
    tail_bytes = _tail_bytes(codec, field)
    head_bytes = len(codec.encode(empty)) - len(_count_bytes(codec, 0)) - tail_bytes
    whole = codec.encode(message)
    start = head_bytes + len(_count_bytes(codec, len(getattr(message, field))))
    return whole[start : len(whole) - tail_bytes]


def insert_rows(
    api_name: str, version: int, message: Message, field: str, row_count: int, parts: list[bytes]
) -> list[bytes]:
    """Return an encoded response with `row_count` encoded rows inserted into its empty array.

    Large responses are encoded row by row over several turns of the loop, and joined here.
    """
    codec = message_codec(f"{api_name}Response", version)
    empty = codec.encode(message)
    tail_at = len(empty) - _tail_bytes(codec, field)
    head = empty[: tail_at - len(_count_bytes(codec, 0))]
    return [head + _count_bytes(codec, row_count), *parts, empty[tail_at:]]


def _tail_bytes(codec: MessageCodec, field: str) -> int:
    """Return the size in bytes of the fixed-size fields and tag count after the array."""
    fields = codec.layout.placed("positional")
    attributes = [each.attribute for each in fields]
    following = fields[attributes.index(field) + 1 :]
    assert all(each.type in FIXED and not each.is_array for each in following), (codec, field)
    return sum(FIXED[each.type].size for each in following) + codec.layout.flexible


def _count_bytes(codec: MessageCodec, count: int) -> bytes:
    """Return an encoded count: int32, in flexible versions a varint of count + 1."""
    return varint_bytes(count + 1) if codec.layout.flexible else count.to_bytes(_INT32_BYTES)
