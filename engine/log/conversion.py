"""Rebuild batches: with another codec, in magic 2, or in the format of an old consumer. Pure.

```
up      messages of magic 0 and 1 from old producers    → one batch of magic 2
codec   a batch whose topic wants another compression   → the same records, recompressed
down    any batch for a consumer that knows magic 0 or 1 only; transaction markers, headers
        and the leader's fields are lost
```

The size of a response to an old consumer is fixed before its batches are converted: the size of
the stored batches, or of the first converted batch if that is larger. Converted batches beyond it
are truncated, and missing bytes are filled with an incomplete batch: the consumer drops both, and
fetches again.

Source: Kafka's LogValidator.buildRecordsAndAssignOffsets, RecordsUtil.downConvert,
LazyDownConversionRecords, LazyDownConversionRecordsSend; KIP-283.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from engine.errors import ApiError
from engine.kafka_errors import UNSUPPORTED_COMPRESSION_TYPE
from engine.limits import DOWN_CONVERSION_CHUNK_BYTES
from engine.records.batch_header import HEADER_BYTES, LENGTH_OVERHEAD_BYTES
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.codec import Codec
from engine.records.legacy_builder import LegacySettings, build_messages
from engine.records.record import Record, TimestampType
from engine.records.view import RecordBatch, batches_in

_OVERFLOW = struct.Struct(">qi")

#: Called with the number of records of each converted batch; None: not called.
OnConverted: TypeAlias = Callable[[int], None] | None


class UnsupportedCompressionType(ApiError):
    """The codec does not exist in the format that a client can read or write."""

    def __init__(self, codec: Codec, magic: int) -> None:
        super().__init__(
            UNSUPPORTED_COMPRESSION_TYPE,
            f"{codec.label} does not exist in message format {magic}",
        )
        self.codec = codec
        self.magic = magic


def batch_settings_for(
    batch: RecordBatch,
    *,
    base_offset: int,
    codec: Codec,
    level: int | None,
    leader_epoch: int,
    append_time_ms: int | None,
) -> BatchSettings:
    """Return the header fields for a batch that is rebuilt from the records of `batch`.

    `append_time_ms` None keeps the producer's timestamps (CreateTime).
    """
    is_append_time = append_time_ms is not None
    return BatchSettings(
        base_offset=base_offset,
        codec=codec,
        level=level,
        timestamp_type=(
            TimestampType.LOG_APPEND_TIME if is_append_time else TimestampType.CREATE_TIME
        ),
        append_time_ms=-1 if append_time_ms is None else append_time_ms,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
        leader_epoch=leader_epoch,
    )


def build_batch(records: Iterable[Record], settings: BatchSettings) -> bytearray:
    """Return one batch with the given records, at consecutive offsets from the base offset."""
    builder = BatchBuilder(settings)
    for record in records:
        builder.append(record.timestamp_ms, record.key, record.value, record.headers)
    return builder.build()


def down_convert_to_size(
    data: memoryview,
    magic: int,
    *,
    first_offset: int = 0,
    limit_bytes: int,
    on_converted: OnConverted = None,
) -> bytearray:
    """Return stored batches converted to an old consumer's format, in at least as many bytes.

    The size of a Fetch response is announced before the conversion, as the size of `data`: bytes
    that are missing at the end are filled with an incomplete batch, which consumers ignore. A zstd
    batch after the first chunk ends the records. Raises the errors of `down_convert`.
    """
    out = bytearray()
    size_bytes = None
    for chunk in _iter_chunks(data):
        try:
            out += down_convert(
                chunk,
                magic,
                first_offset=first_offset,
                limit_bytes=limit_bytes,
                on_converted=on_converted,
            )
        except UnsupportedCompressionType:
            if size_bytes is None:
                raise
            break
        if out and size_bytes is None:
            size_bytes = max(len(data), len(out))
        if size_bytes is not None and len(out) >= size_bytes:
            break
    if size_bytes is None:
        has_batches = next(batches_in(data, allow_partial_tail=True), None) is not None
        size_bytes = LENGTH_OVERHEAD_BYTES if has_batches else 0
    while len(out) < size_bytes:
        _append_overflow_batch(out, size_bytes - len(out))
    del out[size_bytes:]
    return out


def _iter_chunks(data: memoryview) -> Iterator[memoryview]:
    """Yield the first batch, then chunks of whole batches that are converted together."""
    start = end = 0
    for batch in batches_in(data, allow_partial_tail=True):
        batch_end = batch.position + batch.size_bytes
        is_first_ended = start == 0 and end > 0
        if end > start and (is_first_ended or batch_end - start > DOWN_CONVERSION_CHUNK_BYTES):
            yield data[start:end]
            start = end
        end = batch_end
    if end > start:
        yield data[start:end]


def _append_overflow_batch(out: bytearray, left_bytes: int) -> None:
    """Append the start of a batch that ends one byte after the response, so consumers drop it.

    `left_bytes` is the number of bytes from here to the announced end of the response.
    """
    size = max(LENGTH_OVERHEAD_BYTES, min(left_bytes + 1, DOWN_CONVERSION_CHUNK_BYTES))
    out += _OVERFLOW.pack(-1, max(left_bytes + 1, HEADER_BYTES))
    out += bytes(size - LENGTH_OVERHEAD_BYTES)


def down_convert(
    data: memoryview,
    magic: int,
    *,
    first_offset: int = 0,
    limit_bytes: int,
    on_converted: OnConverted = None,
) -> bytearray:
    """Return batches in the format of a consumer that reads magic 0 or 1 (old Fetch versions).

    An incomplete last batch is dropped. Batches of that format or an older one are unchanged,
    transaction markers are removed, and uncompressed batches lose the records below `first_offset`,
    the consumer's fetch offset. May be empty. `on_converted` is called with the number of records
    of each converted batch.

    Raises UnsupportedCompressionType for zstd, CorruptRecord and DecompressedTooLarge.
    """
    out = bytearray()
    for batch in batches_in(data, allow_partial_tail=True):
        if batch.magic <= magic:
            out += batch.raw
        elif not batch.is_control:
            records = _records_to_convert(batch, magic, first_offset, limit_bytes)
            out += _build_legacy_messages(batch, records, magic)
            if on_converted is not None:
                on_converted(len(records))
    return out


def _records_to_convert(
    batch: RecordBatch, magic: int, first_offset: int, limit_bytes: int
) -> list[Record]:
    """Return the records of a batch that a consumer of an older magic gets, without headers.

    An uncompressed batch loses the records below `first_offset`, the fetch offset. Raises
    UnsupportedCompressionType for zstd, which magic 0 and 1 do not have.
    """
    codec = batch.codec
    if codec is Codec.ZSTD:
        raise UnsupportedCompressionType(codec, magic)
    return [
        record._replace(headers=())
        for record in batch.read_records(limit_bytes=limit_bytes)
        if codec is not Codec.NONE or record.offset >= first_offset
    ]


def _build_legacy_messages(batch: RecordBatch, records: list[Record], magic: int) -> bytearray:
    """Return records of a batch of magic 2 as messages of magic 0 or 1; empty without records."""
    if not records:
        return bytearray()
    is_append_time = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    settings = LegacySettings(
        magic=magic,
        codec=batch.codec,
        timestamp_type=(
            TimestampType.LOG_APPEND_TIME if is_append_time else TimestampType.CREATE_TIME
        ),
        append_time_ms=batch.max_timestamp_ms,
        base_offset=records[0].offset,
    )
    return build_messages(records, settings)
