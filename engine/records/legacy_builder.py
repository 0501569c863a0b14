"""Build messages of magic 0 and 1, plain or wrapped, as Kafka's own builder does.

The layout is shown in `legacy.py`. Source: `MemoryRecordsBuilder`, `LegacyRecord`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import NamedTuple

from engine.host.ports import Buffer
from engine.records.builder import BatchRefused
from engine.records.codec import Codec
from engine.records.compression import compress
from engine.records.legacy import APPEND_TIME_FLAG
from engine.records.record import NO_TIMESTAMP, Record, TimestampType

_OFFSET_SIZE_CRC = struct.Struct(">qiI")
_MAGIC_ATTRIBUTES = struct.Struct(">bb")
_TIME = struct.Struct(">q")
_SIZE = struct.Struct(">i")
_CRC_BYTES = 4


class LegacySettings(NamedTuple):
    """Settings for building messages.

    The inner offsets of a magic 1 wrapper are relative to `base_offset`; `append_time_ms` is used
    only with append time, which magic 0 does not have.
    """

    magic: int = 1
    codec: Codec = Codec.NONE
    level: int | None = None
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    append_time_ms: int = NO_TIMESTAMP
    base_offset: int = 0

    @property
    def has_append_time(self) -> bool:
        """Return True if messages get the broker's append time instead of their own timestamps."""
        return self.magic > 0 and self.timestamp_type is TimestampType.LOG_APPEND_TIME

    def check(self) -> None:
        """Raise BatchRefused for settings that magic 0 and 1 do not support."""
        if self.magic not in (0, 1):
            raise BatchRefused("magic 0 or 1", self.magic)
        if self.magic == 1 and self.timestamp_type is TimestampType.NONE:
            raise BatchRefused("magic 1 needs create or append time", self.timestamp_type.label)
        if self.codec is Codec.ZSTD:
            raise BatchRefused("a codec of magic 0 and 1", self.codec.label)


def build_messages(records: Iterable[Record], settings: LegacySettings) -> bytearray:
    """Return the records as consecutive messages, or as one wrapper if there is a codec.

    Returns no bytes for no records. Raises BatchRefused for headers, which these formats lack, for
    timestamps below −1 and for offsets that do not rise.
    """
    settings.check()
    is_wrapped = settings.codec is not Codec.NONE
    shift = settings.base_offset if is_wrapped and settings.magic == 1 else 0
    out = bytearray()
    last_offset, max_time = settings.base_offset - 1, NO_TIMESTAMP
    for record in records:
        _check_record(record, last_offset)
        last_offset = record.offset
        time = settings.append_time_ms if settings.has_append_time else record.timestamp_ms
        max_time = max(max_time, time)
        write_message(
            out, record.offset - shift, record.key, record.value, time, _uncompressed(settings)
        )
    if not out or not is_wrapped:
        return out
    wrapped = compress(settings.codec, out, settings.level, settings.magic)
    wrapper = bytearray()
    write_message(wrapper, last_offset, None, wrapped, max_time, settings)
    return wrapper


def write_message(
    out: bytearray,
    offset: int,
    key: Buffer | None,
    value: Buffer | None,
    timestamp_ms: int,
    settings: LegacySettings,
) -> None:
    """Append one message to `out`; with a codec in the settings, `value` is already compressed."""
    flags = settings.codec | APPEND_TIME_FLAG * settings.has_append_time
    checked = bytearray(_MAGIC_ATTRIBUTES.pack(settings.magic, flags))
    try:
        if settings.magic > 0:
            checked += _TIME.pack(timestamp_ms)
        for content in (key, value):
            checked += _SIZE.pack(-1 if content is None else len(content))
            checked += content or b""
        out += _OFFSET_SIZE_CRC.pack(offset, _CRC_BYTES + len(checked), zlib.crc32(checked))
    except struct.error as error:
        raise BatchRefused("message fields within their widths", error) from error
    out += checked


def _uncompressed(settings: LegacySettings) -> LegacySettings:
    """Return the settings for messages inside a wrapper: the same without the codec."""
    return settings._replace(codec=Codec.NONE)


def _check_record(record: Record, last_offset: int) -> None:
    """Raise BatchRefused for headers, offsets that do not rise, or times below -1."""
    if record.headers:
        raise BatchRefused("no headers in magic 0 and 1", len(record.headers))
    if record.offset <= last_offset:
        raise BatchRefused(f"an offset from {last_offset + 1}", record.offset)
    if record.timestamp_ms < NO_TIMESTAMP:
        raise BatchRefused("a time from 0, or -1 for none", record.timestamp_ms)
