"""The line of a record, with the additions for control records.

Source: DumpLogSegments of 3.9.1 and 4.3.0. A line is printed in steps (metadata, control record,
contents): an error in a later step leaves the earlier ones printed.
"""

from __future__ import annotations

from engine.dump.batch_line import ShallowBatch
from engine.dump.options import DumpOptions
from engine.dump.output import Output
from engine.java_text import encode_printable
from engine.records.legacy import LegacyMessage, SizeBeyondMessage
from engine.records.record import Record

_V2 = b"| offset: %d %b: %d keySize: %d valueSize: %d sequence: %d headerKeys: [%b]"
_LEGACY = b"| offset: %d %b: %d keySize: %d valueSize: %d isValid: %b crc: %d"


def format_line_start(batch: ShallowBatch, record: Record) -> bytes:
    """Return the dump line of a version 2 record up to its headers, without key and payload."""
    headers = b",".join([encode_printable(_raw(name)) for name, _ in record.headers])
    return _V2 % (
        record.offset,
        batch.time_label,
        record.timestamp_ms,
        record.key_size,
        record.value_size,
        record.sequence,
        headers,
    )


def format_legacy_metadata(batch: ShallowBatch, message: LegacyMessage, is_four: bool) -> bytes:
    """Return the first part of the line of a message of magic 0 or 1.

    Its sizes are as stored, even if damaged. `is_four` selects the line of 4.3 instead of 3.9.
    """
    line = _LEGACY % (
        message.offset,
        batch.time_label,
        message.timestamp_ms,
        message.key_size,
        message.value_size,
        b"true" if message.is_crc_valid() else b"false",
        message.crc,
    )
    # Kafka 3.9 prints a closing brace without an opening one.
    return line if is_four else line + b"}"


def _control(record: Record, is_four: bool) -> bytes:
    """Return the end of a control record's line; imports the code for it only when needed."""
    from engine.dump.control_line import format_control

    return format_control(record, is_four).encode()


def _raw(name: str) -> bytes:
    """Return a header name's original bytes: its surrogate escapes are bytes that are not UTF-8."""
    # Names that are not UTF-8 have their bytes as surrogate escapes.
    return name.encode("utf-8", "surrogateescape")


def write_record(
    out: Output, batch: ShallowBatch, record: Record | LegacyMessage, options: DumpOptions
) -> None:
    """Write the line of a record: metadata, end of a control record, key and payload.

    The options can leave out the metadata, and add key and payload.
    """
    prefix = b"| "
    if not options.skip_record_metadata:
        prefix = b" "
        if isinstance(record, LegacyMessage):
            out.add(format_legacy_metadata(batch, record, options.is_four))
        else:
            out.add(format_line_start(batch, record))
            if batch.is_control:
                out.add(_control(record, options.is_four))
    if options.print_data and not batch.is_control:
        out.add(_format_contents(record, options, prefix))
    out.add(b"\n")


def _format_contents(record: Record | LegacyMessage, options: DumpOptions, prefix: bytes) -> bytes:
    """Return the part of a record's line with key and payload, decoded by the options' decoder.

    `prefix` precedes the first of them.
    """
    raw_key: bytes | None = None
    try:
        raw_key = record.key
        raw_value = record.value
    except SizeBeyondMessage as error:
        has_key = record.key_size >= 0
        key, value = options.decoder.unreadable(record.offset, has_key, raw_key, error)
    else:
        key, value = options.decoder.texts(record.offset, raw_key, raw_value)
    shown = b""
    if key is not None:
        shown = b"%bkey: %b" % (prefix, key)
        prefix = b" "
    if value is not None:
        # Kafka 3.9 prints a blank instead of a bar before a payload without a key.
        shown += b"%bpayload: %b" % (prefix if options.is_four else b" ", value)
    return shown
