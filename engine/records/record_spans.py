"""Positions of the records in a magic 2 batch, for copying most of them unchanged.

```
│ length · attributes · timestampDelta │ offsetDelta · key · value · headers │
start                                  after_time                            end
```

The layout is that of `decode.py`. This loop is separate because a call for each number, or a
`Record` for each record, takes three times as long: it reads only the fields that a cleaning needs,
neither the value nor the fields after it. Only for records on the fast path; for others it returns
None, and `decode_records` decodes them. The batch's checksum was verified before, and its records
were validated at append.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.model import new_tuple
from engine.native.multibyte_varint import VARINT_SHIFT_MAX, VARLONG_SHIFT_MAX, multibyte_varint
from engine.records.fast_records import varint_bytes


class RecordSpan(NamedTuple):
    """Positions of one record in a block, and the fields for a cleaning; `end` is exclusive."""

    start: int
    after_time: int
    end: int
    time_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


def find_spans_fast(data: bytes, count: int) -> list[RecordSpan] | None:
    """Return the positions of the `count` records that fill the decompressed block `data`.

    None for an uncommon form or damage: the cleaner then decodes the records one by one.
    """
    spans: list[RecordSpan] = []
    add, new, size, position, last_delta = spans.append, new_tuple, len(data), 0, -1
    try:
        for _ in range(count):
            start = position
            raw = data[position]
            position += 1
            if raw > 0x7F:
                raw, position = multibyte_varint(data, position, raw, VARINT_SHIFT_MAX)
            end = position + (raw >> 1)
            if raw & 1 or end > size:
                return None
            time = data[position + 1]
            position += 2
            if time > 0x7F:
                time, position = multibyte_varint(data, position, time, VARLONG_SHIFT_MAX)
            after_time = position
            delta = data[position]
            position += 1
            if delta > 0x7F:
                delta, position = multibyte_varint(data, position, delta, VARINT_SHIFT_MAX)
            raw = data[position]
            position += 1
            if raw > 0x7F:
                raw, position = multibyte_varint(data, position, raw, VARINT_SHIFT_MAX)
            key = None if raw & 1 else data[position : (position := position + (raw >> 1))]
            # A length of −1 is one byte, as are all small ones below 0.
            value = data[position]
            if position >= end or delta & 1 or delta <= last_delta:
                return None
            last_delta = delta
            time = (time >> 1) ^ -(time & 1)
            has_value = value > 0x7F or not value & 1
            add(new(RecordSpan, (start, after_time, end, time, delta >> 1, key, has_value)))
            position = end
    except IndexError:
        return None
    return spans if position == size else None


def copy_spans(data: bytes, spans: Sequence[RecordSpan], time_shift: int) -> bytes:
    """Return the encoded records at these spans, their time deltas moved by `time_shift` ms."""
    view = memoryview(data)
    pieces: list[bytes | memoryview] = []
    if not time_shift:
        start = end = spans[0].start
        for span in spans:
            if span.start != end:
                pieces.append(view[start:end])
                start = span.start
            end = span.end
        pieces.append(view[start:end])
        return b"".join(pieces)
    for span in spans:
        head = b"\0" + varint_bytes(span.time_delta + time_shift)
        length = len(head) + span.end - span.after_time
        pieces += (varint_bytes(length), head, view[span.after_time : span.end])
    return b"".join(pieces)
