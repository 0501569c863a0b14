"""Find batches in a buffer: choose the view by the magic, and compute the batch's end.

```
offset  at 0   int64
length  at 8   int32  bytes after it, at least 14 (the smallest message, magic 0)
…
magic   at 16  int8   below 2: legacy.LegacyBatch; 2 and above: batch.BatchView
```

A magic above 2 exists only in damaged data. Kafka reads it as 2 in files and refuses it in
requests, and so do `batch_at` and `batches_in`. Source: `FileLogInputStream`,
`ByteBufferLogInputStream`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from engine.errors import CorruptRecord
from engine.records.batch import BatchView
from engine.records.batch_header import (
    LENGTH_AT,
    LENGTH_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    PROLOGUE_BYTES,
    read_length,
)
from engine.records.legacy import MESSAGE_BYTES_MIN, LegacyBatch

RecordBatch: TypeAlias = BatchView | LegacyBatch


def batch_at(buffer: memoryview, position: int) -> RecordBatch:
    """Return the view of the batch at `position`; the buffer must contain the complete batch.

    If a batch of magic 2 states a length shorter than its header, the buffer must contain the bytes
    of a complete header: its fields are read from the following bytes, as in Kafka. Raises
    CorruptRecord.
    """
    size = size_at(buffer, position)
    left = len(buffer) - position
    if size is None or size > left:
        needed = size or PROLOGUE_BYTES
        raise CorruptRecord(f"a batch of {needed} bytes", f"{left} bytes", position=position)
    if _signed(buffer[position + MAGIC_AT]) < MAGIC:
        return LegacyBatch(buffer, position)
    return BatchView(buffer, position)


def size_at(buffer: memoryview, position: int) -> int | None:
    """Return the size in bytes of the batch at `position`, None if PROLOGUE_BYTES are not left.

    Raises CorruptRecord for a length below that of the smallest message.
    """
    return None if len(buffer) - position < PROLOGUE_BYTES else _read_size(buffer, position)


def _read_size(buffer: memoryview, position: int) -> int:
    """Return a batch's size in bytes, offset and length fields included, from its length field.

    Raises CorruptRecord for a length below that of the smallest message.
    """
    length = read_length(buffer, position)
    if length < MESSAGE_BYTES_MIN:
        raise CorruptRecord(
            f"a batch length of at least {MESSAGE_BYTES_MIN}",
            length,
            position=position + LENGTH_AT,
        )
    return int(length) + LENGTH_OVERHEAD_BYTES


def batches_in(
    buffer: memoryview, *, allow_partial_tail: bool, position: int = 0
) -> Iterator[RecordBatch]:
    """Yield the consecutive batches from `position` to the end of a request's or response's data.

    A truncated last batch (fetch responses may have one) ends the iteration if
    `allow_partial_tail`, and otherwise raises CorruptRecord, as do a bad length and a magic other
    than 0, 1 and 2.
    """
    while position < len(buffer):
        left = len(buffer) - position
        # Length and magic are checked even if the batch is truncated after them.
        size = _read_size(buffer, position) if left >= LENGTH_OVERHEAD_BYTES else None
        magic = MAGIC
        if left < PROLOGUE_BYTES:
            size = None
        else:
            magic = _signed(buffer[position + MAGIC_AT])
            if not 0 <= magic <= MAGIC:
                raise CorruptRecord("magic 0, 1 or 2", magic, position=position + MAGIC_AT)
        if size is None or size > left:
            if allow_partial_tail:
                return
            raise CorruptRecord(
                f"a batch of {size or PROLOGUE_BYTES} bytes", f"{left} bytes", position=position
            )
        # `batch_at` would repeat the checks of size and magic made above.
        yield LegacyBatch(buffer, position) if magic < MAGIC else BatchView(buffer, position)
        position += size


def _signed(byte: int) -> int:
    """Return a byte (0 to 255) as Java's signed byte."""
    return byte - 256 if byte > 127 else byte
