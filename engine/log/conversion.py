"""Batches written anew: another codec, the format of today, or that of an old consumer. Pure.

```
up      messages of magic 0 and 1 from old producers    → one batch of magic 2
codec   a batch whose topic wants another compression   → the same records, compressed anew
down    any batch for a consumer that knows magic 0 or 1 only; transactions' markers, headers
        and what a leader added are lost
```

Source: Kafka's LogValidator.buildRecordsAndAssignOffsets and RecordsUtil.downConvert.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.errors import ApiError
from engine.records.batch import MAGIC
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.codec import Codec
from engine.records.legacy_builder import LegacySettings, build_messages
from engine.records.record import Record, TimestampType
from engine.records.view import RecordBatch, batches_in


class UnsupportedCompressionType(ApiError):
    """The codec does not exist in the format that a client can read or write."""

    def __init__(self, codec: Codec, magic: int) -> None:
        super().__init__(
            76,
            "UNSUPPORTED_COMPRESSION_TYPE",
            f"{codec.label} does not exist in message format {magic}",
        )
        self.codec = codec
        self.magic = magic


def settings_for(
    batch: RecordBatch,
    *,
    base_offset: int,
    codec: Codec,
    level: int | None,
    leader_epoch: int,
    append_time_ms: int | None,
) -> BatchSettings:
    """Return how a batch is written anew; `append_time_ms` None keeps the producer's times."""
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


def rebuilt(records: Iterable[Record], settings: BatchSettings) -> bytearray:
    """Return one batch of these records, at consecutive offsets from the base offset."""
    builder = BatchBuilder(settings)
    for record in records:
        builder.append(record.timestamp_ms, record.key, record.value, record.headers)
    return builder.build()


def down_converted(
    data: memoryview, magic: int, *, first_offset: int = 0, limit_bytes: int
) -> bytearray:
    """Return batches as a consumer of magic 0 or 1 reads them; a cut last batch is left out.

    Batches of that format or an older one stay as they are, transactions' markers go, and of
    uncompressed ones the records below `first_offset`, which the consumer asked for. May be
    empty. Errors: UnsupportedCompressionType for zstd; CorruptRecord, DecompressedTooLarge.
    """
    out = bytearray()
    for batch in batches_in(data, allow_partial_tail=True):
        if batch.magic <= magic:
            out += batch.raw
        elif not batch.is_control:
            out += _down(batch, magic, first_offset, limit_bytes)
    return out


def _down(batch: RecordBatch, magic: int, first_offset: int, limit_bytes: int) -> bytearray:
    codec = batch.codec
    if codec is Codec.ZSTD:
        raise UnsupportedCompressionType(codec, magic)
    records = [
        record._replace(headers=())
        for record in batch.read_records(limit_bytes=limit_bytes)
        if codec is not Codec.NONE or record.offset >= first_offset
    ]
    if not records:
        return bytearray()
    is_append_time = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    # Only magic 2 has the offset that its records once began with.
    base_offset = batch.base_offset if batch.magic >= MAGIC else records[0].offset
    settings = LegacySettings(
        magic=magic,
        codec=codec,
        timestamp_type=(
            TimestampType.LOG_APPEND_TIME if is_append_time else TimestampType.CREATE_TIME
        ),
        append_time_ms=batch.max_timestamp_ms,
        base_offset=base_offset,
    )
    return build_messages(records, settings)
