"""The lines of whole version 2 batches in one loop: the tier without compiled code.

Both tiers (`compiled_lines.py` is the other) have the same contract: from the bytes of a batch's
records they print all lines, or return None for records off the fast path. Then nothing has been
printed yet, and the slow path prints record by record what is valid up to the error.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from engine.dump.output import Output
from engine.java_text import encode_printable
from engine.native.multibyte_varint import multibyte_varint

_RECORD = b"| offset: %d %b: %d keySize: %d valueSize: %d sequence: %d headerKeys: [%b]"


class Lines(NamedTuple):
    """What was found while a batch's lines were written: the last offset, and gaps."""

    last_offset: int
    gaps: list[tuple[int, int]]


class BatchNumbers(NamedTuple):
    """The header fields for the lines of a batch. `append_time_ms` is -1 with create times."""

    base_offset: int
    base_timestamp_ms: int
    append_time_ms: int
    base_sequence: int
    record_count: int
    time_label: bytes


class LineTier(Protocol):
    """Prints the records of whole batches."""

    def write(
        self, out: Output, batch: BatchNumbers, raw: bytes | memoryview, start: int, last: int
    ) -> Lines | None:
        """Write the lines of the records in `raw` from `start` on; None if the tier cannot.

        Nothing is written then: the caller decodes record by record. `last` is the offset of the
        previous record, -1 if there is none.
        """
        ...


class PlainLines:
    """Prints records with plain Python."""

    def __init__(self, *, print_data: bool, check_first_gap: bool) -> None:
        self._print_data = print_data
        self._check_first_gap = check_first_gap

    def write(
        self, out: Output, batch: BatchNumbers, raw: bytes | memoryview, start: int, last: int
    ) -> Lines | None:
        """Write the lines of the records in `raw` from `start` to its end, as `LineTier.write`.

        `last` is the offset of the record before, −1 without one. Returns None, with nothing
        written, if a record is damaged: the caller then decodes record by record.
        """
        if batch.base_sequence >= 0 and batch.base_sequence + batch.record_count > 0x7FFFFFFF:
            return None
        try:
            return self._write_lines(out, batch, bytes(raw), start, last)
        except (IndexError, ValueError):
            return None

    def _write_lines(
        self, output: Output, batch: BatchNumbers, raw: bytes, position: int, last: int
    ) -> Lines | None:
        """Decode `raw` and write a line per record; None, with nothing written, if one is damaged.

        `last` is the offset of the previous record, −1 if there is none. The returned gaps are
        pairs of offsets: before the gap, after it.
        """
        out: list[bytes] = []
        gaps: list[tuple[int, int]] = []
        base_offset, base_ms, append_ms, base_sequence, count, label = batch
        contents = self._print_data
        end = len(raw)
        least_delta = 0 if base_sequence >= 0 else -0x80000000
        most_delta = 0x7FFFFFFF - max(base_sequence, 0)
        # Numbers below 64 take one byte; that common case is inlined.
        for _ in range(count):
            size, position = _read_varint(raw, position)
            record_end = position + size
            position += 1
            byte = raw[position]
            if byte < 128:
                delta_ms, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                delta_ms, position = _read_varint(raw, position, 63)
            byte = raw[position]
            if byte < 128:
                delta, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                delta, position = _read_varint(raw, position)
            byte = raw[position]
            if byte < 128:
                key_size, key_at = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                key_size, key_at = _read_varint(raw, position)
            position = key_at + key_size if key_size > 0 else key_at
            value_size, value_at = _read_varint(raw, position)
            position = value_at + value_size if value_size > 0 else value_at
            names, position = (
                _read_header_names(raw, position) if raw[position] else (b"", position + 1)
            )
            if position != record_end or position > end or key_size < -1 or value_size < -1:
                return None
            # Damaged deltas would make sequences wrap wrongly: the slow path handles them.
            if not least_delta <= delta <= most_delta:
                return None
            offset = base_offset + delta
            if offset != last + 1 and (last != -1 or self._check_first_gap):
                gaps.append((last, offset))
            last = offset
            line = _RECORD % (
                offset,
                label,
                base_ms + delta_ms if append_ms < 0 else append_ms,
                key_size,
                value_size,
                base_sequence + delta if base_sequence >= 0 else -1,
                names,
            )
            out.append(line)
            if contents:
                if key_size >= 0:
                    out.append(b" key: ")
                    out.append(encode_printable(raw[key_at : key_at + key_size]))
                if value_size >= 0:
                    out.append(b" payload: ")
                    out.append(encode_printable(raw[value_at : value_at + value_size]))
            out.append(b"\n")
        if position != end:
            return None
        output.add(b"".join(out))
        return Lines(last, gaps)


def _read_varint(raw: bytes, position: int, shift_max: int = 28) -> tuple[int, int]:
    """Decode a zigzag varint; return the number and the position after it.

    Raises IndexError if it has more bits than `shift_max` allows.
    """
    number = raw[position]
    position += 1
    if number > 0x7F:
        number, position = multibyte_varint(raw, position, number, shift_max)
    return (number >> 1) ^ -(number & 1), position


def _read_header_names(raw: bytes, position: int) -> tuple[bytes, int]:
    """Return a record's header names joined by commas, and the position after its headers.

    Raises ValueError or IndexError for damaged headers.
    """
    count, position = _read_varint(raw, position)
    if count < 0:
        raise ValueError
    names = []
    for _ in range(count):
        size, position = _read_varint(raw, position)
        if size < 0:
            raise ValueError
        names.append(encode_printable(raw[position : position + size]))
        size, position = _read_varint(raw, position + size)
        position += max(size, 0)
        if position > len(raw):
            raise ValueError
    return b",".join(names), position
