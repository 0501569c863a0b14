"""The rows that a message ends with, encoded apart from it, and put behind it again.

```
head │ count │ rows …            count: int32, or from the first flexible version on n + 1 as varint
head │ count │ rows … │ 0        … and behind the rows no tagged fields
```
"""

from __future__ import annotations

import copy
from typing import Any

from engine.wire.codec import MessageCodec, message_codec
from engine.wire.writer import varint_bytes

_INT32_BYTES = 4


def encode_rows(api_name: str, version: int, message: Any, field: str) -> bytes:
    """Return the bytes of a response's rows, which are its last field."""
    codec = message_codec(f"{api_name}Response", version)
    last = codec.layout.placed("positional")[-1]
    assert (last.attribute, last.is_array) == (field, True), (api_name, field)
    empty = copy.copy(message)
    setattr(empty, field, [])
    tail_bytes = int(codec.layout.flexible)
    head_bytes = len(codec.encode(empty)) - len(_count_bytes(codec, 0)) - tail_bytes
    whole = codec.encode(message)
    start = head_bytes + len(_count_bytes(codec, len(getattr(message, field))))
    return whole[start : len(whole) - tail_bytes]


def with_rows(
    api_name: str, version: int, message: Any, count: int, parts: list[bytes]
) -> list[bytes]:
    """Return a response that has no rows, with so many that are encoded."""
    codec = message_codec(f"{api_name}Response", version)
    empty = codec.encode(message)
    tail = b"\0" if codec.layout.flexible else b""
    head = empty[: len(empty) - len(tail) - len(_count_bytes(codec, 0))]
    return [head + _count_bytes(codec, count), *parts, tail]


def _count_bytes(codec: MessageCodec, count: int) -> bytes:
    return varint_bytes(count + 1) if codec.layout.flexible else count.to_bytes(_INT32_BYTES)
