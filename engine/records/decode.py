"""Decode the records of a magic 2 batch, as strictly as Kafka and as fast as plain Python can.

```
length          varint    bytes after it
attributes      int8      unused
timestampDelta  varlong   from the batch's base timestamp
offsetDelta     varint    from the batch's base offset
keyLength       varint    -1 null        key
valueLength     varint    -1 null        value
headerCount     varint
  keyLength     varint    never negative key, UTF-8
  valueLength   varint    -1 null        value
```

Two functions read the same bytes: `decode_records` runs an inline loop over records of common shape
and passes any other record to `read_record`, which alone decides what is an error. Source:
`DefaultRecord.readFrom`, `DefaultRecordBatch.RecordIterator`.

`record_spans.py` reads the same layout, up to the value, for records that are copied unchanged.
Change both together; `tests/property/test_cleaner_model.py` compares them.

A third function, `skim_records`, skips keys, values and headers, and is less strict: a record's
length is not checked. Source: `DefaultRecord.readPartiallyFrom`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from engine.errors import CorruptRecord
from engine.model import new_tuple
from engine.native.multibyte_varint import VARINT_SHIFT_MAX, VARLONG_SHIFT_MAX, multibyte_varint
from engine.records.record import (
    NO_SEQUENCE,
    SEQUENCE_MAX,
    Header,
    Record,
    TimestampType,
    increment_sequence,
)
from engine.records.varint import (
    VarintTooLong,
    VarintTruncated,
    read_varint,
    read_varlong,
)

# Below this base, its sum with any delta that the inline loop reads fits into an int64.
PLAIN_BASE_MAX = 1 << 62

# A surrogate in UTF-8, perhaps truncated: Java replaces it by one U+FFFD, Python each byte.
_SURROGATE = rb"\xed[\xa0-\xbf][\x80-\xbf]?"
_REPLACEMENT = "�".encode()

_NONE: tuple[Header, ...] = ()
_INT64_SIGN = 1 << 63
_INT64_MASK = (1 << 64) - 1


class Origin(NamedTuple):
    """Header fields of a batch that apply to its records, and the position of the records.

    `append_time_ms` replaces all record timestamps unless it is None. `place` is the position of
    the records' first byte in the surrounding buffer, for errors; if `is_decompressed`, the
    position of the compressed block.
    """

    record_count: int
    base_offset: int
    base_timestamp_ms: int
    base_sequence: int
    append_time_ms: int | None
    place: int
    is_decompressed: bool

    def corrupt(self, expected: str, got: object, position: int) -> CorruptRecord:
        """Return the CorruptRecord for a position in the records.

        If they were compressed, its message has the position, and its position is that of the
        records.
        """
        if self.is_decompressed:
            where = f"{expected} at byte {position} of the decompressed records"
            return CorruptRecord(where, got, position=self.place)
        return CorruptRecord(expected, got, position=self.place + position)


class RecordsEndEarly(CorruptRecord):
    """The data of a batch ends inside a record, or before all its records."""


def decode_records(
    data: bytes, origin: Origin, fault: CorruptRecord | None = None
) -> Iterator[Record]:
    """Yield the records in `data`; raise an error at the record at which Kafka would.

    The last record is yielded only if no bytes follow it. `fault` is the reason why `data` is
    incomplete; it is raised in place of an error about the end.
    """
    base_offset, base_sequence = origin.base_offset, origin.base_sequence
    kind, base_time, factor = _time_rule(origin)
    has_producer = base_sequence >= 0
    may_wrap = max(abs(base_offset), abs(base_time)) >= PLAIN_BASE_MAX
    new, position, last = new_tuple, 0, origin.record_count - 1
    for index in range(origin.record_count):
        start = position
        # A slice past the end is short, but still moves the position past `end`: one
        # comparison at the record's end checks every length.
        try:
            raw = data[position]
            position += 1
            if raw > 0x7F:
                raw, position = multibyte_varint(data, position, raw, VARINT_SHIFT_MAX)
            end = -1 if raw & 1 else position + (raw >> 1)
            time = data[position + 1]
            position += 2
            if time > 0x7F:
                time, position = multibyte_varint(data, position, time, VARLONG_SHIFT_MAX)
            delta = data[position]
            position += 1
            if delta > 0x7F:
                delta, position = multibyte_varint(data, position, delta, VARINT_SHIFT_MAX)
            raw = data[position]
            position += 1
            if raw > 0x7F:
                raw, position = multibyte_varint(data, position, raw, VARINT_SHIFT_MAX)
            key = None if raw & 1 else data[position : (position := position + (raw >> 1))]
            raw = data[position]
            position += 1
            if raw > 0x7F:
                raw, position = multibyte_varint(data, position, raw, VARINT_SHIFT_MAX)
            value = None if raw & 1 else data[position : (position := position + (raw >> 1))]
            raw = data[position]
            position += 1
            headers, position = _read_headers(data, position, raw) if raw else (_NONE, position)
        except IndexError:
            end = -1
        if position != end or delta & 1 or may_wrap:
            record, position = _read_strictly(data, start, origin, fault)
        else:
            delta >>= 1
            time = base_time + factor * ((time >> 1) ^ -(time & 1))
            sequence = (base_sequence + delta) & SEQUENCE_MAX if has_producer else NO_SEQUENCE
            record = new(
                Record,
                (base_offset + delta, time, kind, key, value, headers, sequence, None, None),
            )
        if index == last:
            _check_end(data, position, origin, fault)
        yield record


def _time_rule(origin: Origin) -> tuple[TimestampType, int, int]:
    """Return the records' timestamp type, base time, and the factor of their deltas.

    The factor is 0 for append time: all records then have the batch's time.
    """
    if origin.append_time_ms is None:
        return TimestampType.CREATE_TIME, origin.base_timestamp_ms, 1
    return TimestampType.LOG_APPEND_TIME, origin.append_time_ms, 0


def _read_headers(data: bytes, position: int, raw: int) -> tuple[tuple[Header, ...], int]:
    """Return 1 to 63 headers, whose count is in the byte `raw`, and the position after them.

    IndexError for another number, and for malformed ones.
    """
    if raw > 0x7F or raw & 1:
        raise IndexError
    headers = []
    for _ in range(raw >> 1):
        raw = data[position]
        position += 1
        if raw > 0x7F:
            raw, position = multibyte_varint(data, position, raw, VARINT_SHIFT_MAX)
        if raw & 1:
            raise IndexError
        key = data[position : (position := position + (raw >> 1))]
        raw = data[position]
        position += 1
        if raw > 0x7F:
            raw, position = multibyte_varint(data, position, raw, VARINT_SHIFT_MAX)
        value = None if raw & 1 else data[position : (position := position + (raw >> 1))]
        headers.append((decode_header_key(key), value))
    if position > len(data):
        raise IndexError
    return tuple(headers), position


def read_headers_fast(data: bytes, position: int) -> tuple[Header, ...] | None:
    """Return the headers whose count is at a position, None if they need the strict decoder."""
    try:
        raw = data[position]
        return _read_headers(data, position + 1, raw)[0] if raw else _NONE
    except IndexError:
        return None


def decode_header_key(key: bytes) -> str:
    """Return a header's key, with malformed UTF-8 replaced as Java does."""
    try:
        return key.decode()
    except UnicodeDecodeError:
        import re

        return re.sub(_SURROGATE, _REPLACEMENT, key).decode(errors="replace")


def _check_end(data: bytes, position: int, origin: Origin, fault: CorruptRecord | None) -> None:
    """Raise `fault`, or CorruptRecord for bytes after the last record.

    `fault` is the reason why the data is incomplete, None if it is complete.
    """
    if fault is not None:
        raise fault
    if position != len(data):
        raise origin.corrupt(
            f"the end after {origin.record_count} records",
            f"{len(data) - position} bytes",
            position,
        )


def _read_strictly(
    data: bytes, start: int, origin: Origin, fault: CorruptRecord | None
) -> tuple[Record, int]:
    """Return the record at `start` and the position after it.

    Any error raised is Kafka's exact one. `fault`, the reason why the data is incomplete, is raised
    instead of RecordsEndEarly if not None.
    """
    try:
        return read_record(data, start, origin)
    except RecordsEndEarly:
        if fault is not None:
            raise fault from None
        raise


def read_record(data: bytes, start: int, origin: Origin) -> tuple[Record, int]:
    """Return the record at `start` and the position after it, with all of Kafka's strict checks.

    Raises RecordsEndEarly and CorruptRecord.
    """
    try:
        size, position = read_varint(data, start)
    except VarintTruncated as error:
        raise _ends_early(origin, "another record", "the end", start) from error
    except VarintTooLong as error:
        placed = origin.corrupt(error.expected, error.got, start)
        if origin.is_decompressed:
            raise placed from error
        # The only error of a record that Kafka's reader of buffers does not wrap.
        raise VarintTooLong(placed.expected, placed.got, position=placed.position) from error
    left = len(data) - position
    if size > left:
        raise _ends_early(origin, f"a record of {size} bytes", f"{left} bytes", start)
    body = data[position : position + max(size, 0)]
    try:
        record, consumed = _read_body(body, origin)
    except CorruptRecord as error:
        at = position + (error.position or 0)
        raise origin.corrupt(error.expected, error.got, at) from error
    if consumed != size:
        raise origin.corrupt(f"a record of {size} bytes", f"{consumed} bytes", start)
    return record, position + size


def skim_records(
    data: bytes, origin: Origin, fault: CorruptRecord | None = None
) -> Iterator[Record]:
    """Yield the records in decompressed `data` without headers, with empty keys and values.

    Like Kafka's leader, it parses every record but copies no contents. A null key or value remains
    None. `fault` has the meaning it has in `decode_records`.
    """
    position, last = 0, origin.record_count - 1
    for index in range(origin.record_count):
        start = position
        try:
            record, position = _skim_record(data, position, origin)
        except (VarintTruncated, RecordsEndEarly) as error:
            if fault is not None:
                raise fault from None
            raise _ends_early(origin, "another record", "the end", start) from error
        except CorruptRecord as error:
            raise origin.corrupt(error.expected, error.got, start) from error
        if index == last:
            _check_end(data, position, origin, fault)
        yield record


def _skim_record(data: bytes, position: int, origin: Origin) -> tuple[Record, int]:
    """Parse one record without its contents.

    Return it (key and value empty or None) and its end.
    """
    _, position = read_varint(data, position)
    time, position = read_varlong(data, position + 1)
    delta, position = read_varint(data, position)
    key_size, position = _skim_sized(data, position)
    value_size, position = _skim_sized(data, position)
    header_count, position = read_varint(data, position)
    if header_count < 0:
        raise CorruptRecord("a number of headers", header_count, position=position)
    for _ in range(header_count):
        size, position = _skim_sized(data, position)
        if size < 0:
            raise CorruptRecord("a header key", "null", position=position)
        _, position = _skim_sized(data, position)
    kind, base_time, factor = _time_rule(origin)
    record = Record(
        offset=int64(origin.base_offset + delta),
        timestamp_ms=int64(base_time + factor * time),
        timestamp_type=kind,
        key=b"" if key_size >= 0 else None,
        value=b"" if value_size >= 0 else None,
    )
    return record, position


def _skim_sized(data: bytes, position: int) -> tuple[int, int]:
    """Read the length varint of a key, value or header.

    Return the length and the position after it. The position returned is after the contents. A
    negative length, null, has no contents. Raises RecordsEndEarly if the contents end after the
    data.
    """
    size, position = read_varint(data, position)
    end = position + max(size, 0)
    if end > len(data):
        raise RecordsEndEarly(f"{size} bytes", f"{len(data) - position} bytes", position=position)
    return size, end


def _ends_early(origin: Origin, expected: str, got: str, position: int) -> RecordsEndEarly:
    """Return RecordsEndEarly; its position counts from the batch's start, not the records'."""
    placed = origin.corrupt(expected, got, position)
    return RecordsEndEarly(placed.expected, placed.got, position=placed.position)


def _read_body(body: bytes, origin: Origin) -> tuple[Record, int]:
    """Decode a record from the bytes after its length; return it and its end position in `body`."""
    if not body:
        raise CorruptRecord("the attributes of a record", "the end", position=0)
    time, position = read_varlong(body, 1)
    delta, position = read_varint(body, position)
    key, position = _read_sized(body, position)
    value, position = _read_sized(body, position)
    header_count, position = read_varint(body, position)
    if not 0 <= header_count <= len(body) - position:
        raise CorruptRecord(
            f"a number of headers up to {len(body) - position}", header_count, position=position
        )
    headers = []
    for _ in range(header_count):
        header, position = _read_header(body, position)
        headers.append(header)
    kind, base_time, factor = _time_rule(origin)
    has_producer = origin.base_sequence >= 0
    record = Record(
        offset=int64(origin.base_offset + delta),
        timestamp_ms=int64(base_time + factor * time),
        timestamp_type=kind,
        key=key,
        value=value,
        headers=tuple(headers),
        sequence=increment_sequence(origin.base_sequence, delta) if has_producer else NO_SEQUENCE,
    )
    return record, position


def _read_header(body: bytes, position: int) -> tuple[Header, int]:
    """Return one header and the position after it; raise CorruptRecord for a null key."""
    at = position
    key, position = _read_sized(body, position)
    if key is None:
        raise CorruptRecord("a header key", "null", position=at)
    value, position = _read_sized(body, position)
    return (decode_header_key(key), value), position


def _read_sized(body: bytes, position: int) -> tuple[bytes | None, int]:
    """Read a length varint and that many bytes; return the bytes and the position after them.

    The bytes are None for a negative length. Raises CorruptRecord if fewer bytes are left.
    """
    at = position
    size, position = read_varint(body, position)
    if size < 0:
        return None, position
    if size > len(body) - position:
        raise CorruptRecord(f"at most {len(body) - position} bytes", size, position=at)
    return body[position : position + size], position + size


def int64(value: int) -> int:
    """Return the value wrapped to 64 bits, as Java's sums of damaged fields wrap."""
    return ((value + _INT64_SIGN) & _INT64_MASK) - _INT64_SIGN
