"""Messages of magic 0 and 1, plain or wrapped in a compressed message.

```
offset       at 0    int64    of a wrapper: that of its last inner message
messageSize  at 8    int32    bytes after it, at least 14
crc          at 12   uint32   CRC-32 of 16…end
magic        at 16   int8     0 or 1
attributes   at 17   int8     bits 0–2 codec, bit 3 append time (magic 1)
timestamp    at 18   int64    magic 1 only; of a wrapper: the largest inner one
key          at 18 or 26      int32 size (-1 null) | bytes
value        after key        int32 size (-1 null) | bytes; of a wrapper: the messages
```

| wrapper | inner offsets                                        | inner timestamps          |
|---------|------------------------------------------------------|---------------------------|
| magic 0 | absolute                                             | none                      |
| magic 1 | from 0: absolute = wrapper − last inner + inner; in  | the message's; with       |
|         | a wrapper at 0 (old clients) they are absolute       | append time the wrapper's |

Inner messages may have either magic, and are not themselves compressed. Damaged sizes are returned
unchanged until the bytes after them are accessed, as Kafka's tools do.
Source: `LegacyRecord`, `AbstractLegacyRecordBatch.DeepRecordsIterator`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import ClassVar

from engine.errors import CorruptRecord
from engine.limits import DECOMPRESSED_BATCH_BYTES_MAX
from engine.records.batch_header import LENGTH_OVERHEAD_BYTES
from engine.records.codec import Codec, codec_of
from engine.records.compression import decompress
from engine.records.decode import int64
from engine.records.record import (
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Header,
    Record,
    TimestampType,
)

MESSAGE_BYTES_MIN = 14
APPEND_TIME_FLAG = 0x08
CHECKED_FROM = 16

_OFFSET = struct.Struct(">q")
_OFFSET_AND_SIZE = struct.Struct(">qi")
_SIZE = struct.Struct(">i")
_CRC = struct.Struct(">I")
_TIME = struct.Struct(">q")
_CRC_AT, _MAGIC_AT, _ATTRIBUTES_AT, _TIME_AT = 12, 16, 17, 18
_KEY_AT_V0, _KEY_AT_V1 = 18, 26


class SizeBeyondMessage(CorruptRecord):
    """The size of a key or value exceeds the remaining bytes of its message."""

    def __init__(self, size_bytes: int, left_bytes: int, position: int) -> None:
        super().__init__(f"at most {left_bytes} bytes", size_bytes, position=position)
        self.size_bytes = size_bytes
        self.left_bytes = left_bytes


class InnerMessageTooSmall(CorruptRecord):
    """A message inside a wrapper is shorter than its fixed fields."""


class LegacyMessage:
    """One message of magic 0 or 1 inside a buffer: plain, a wrapper, or from inside a wrapper.

    Fields are read at each access; a field beyond the message's end raises CorruptRecord then.
    """

    __slots__ = ("_buffer", "_computed_crc", "_place", "_position", "_size", "_wrapper", "offset")

    #: Fields that magic 0 and 1 do not have.
    headers: ClassVar[tuple[Header, ...]] = ()
    sequence: ClassVar[int] = NO_SEQUENCE

    def __init__(self, buffer: memoryview, position: int = 0) -> None:
        """Read offset and size. Raises CorruptRecord if the buffer ends before the fixed fields."""
        left = len(buffer) - position
        if left < LENGTH_OVERHEAD_BYTES + MESSAGE_BYTES_MIN:
            raise CorruptRecord(
                f"a message of at least {LENGTH_OVERHEAD_BYTES + MESSAGE_BYTES_MIN} bytes",
                f"{left} bytes",
                position=position,
            )
        offset, size = _OFFSET_AND_SIZE.unpack_from(buffer, position)
        self.offset: int = offset
        self._buffer = buffer
        self._position = position
        self._size: int = size + LENGTH_OVERHEAD_BYTES
        #: Position to name in errors: for a message of a wrapper that of the wrapper.
        self._place = position
        #: The compressed message of magic 1 that has this one in it; None for others.
        self._wrapper: LegacyMessage | None = None
        #: CRC of the bytes; None until first needed.
        self._computed_crc: int | None = None

    @classmethod
    def create_inner(
        cls, wrapper: LegacyMessage, buffer: memoryview, position: int
    ) -> LegacyMessage:
        """Return the message at a position of a wrapper's decompressed value.

        A wrapper's timestamp type applies to its inner messages of magic 1.
        """
        message = cls(buffer, position)
        message._place = wrapper._place
        if message.magic == 1:
            message._wrapper = wrapper
        return message

    @property
    def size_bytes(self) -> int:
        """Return the size of the whole message, offset and size fields included."""
        return self._size

    @property
    def crc(self) -> int:
        """Return the stored CRC-32, unsigned; `computed_crc` returns the correct one."""
        crc: int
        (crc,) = _CRC.unpack_from(self._buffer, self._position + _CRC_AT)
        return crc

    @property
    def magic(self) -> int:
        """Return the magic byte as a signed number, without a check."""
        byte = self._buffer[self._position + _MAGIC_AT]
        return byte - 256 if byte > 127 else byte

    @property
    def attributes(self) -> int:
        """Return the attribute bits; see the module's table."""
        return self._buffer[self._position + _ATTRIBUTES_AT]

    @property
    def codec(self) -> Codec:
        """Return the codec of the value; raises CorruptRecord for an unknown codec."""
        try:
            return codec_of(self.attributes)
        except CorruptRecord as error:
            raise error.at(None, self._place) from None

    @property
    def timestamp_type(self) -> TimestampType:
        """Return the timestamp type: NONE for magic 0, a wrapper's type for inner messages."""
        if self.magic == 0:
            return TimestampType.NONE
        if self._wrapper:
            return self._wrapper.timestamp_type
        if self.attributes & APPEND_TIME_FLAG:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def timestamp_ms(self) -> int:
        """Return the message's timestamp, −1 for magic 0; the wrapper's if that has append time."""
        if self.magic == 0:
            return NO_TIMESTAMP
        wrapper = self._wrapper
        if wrapper and wrapper.timestamp_type is TimestampType.LOG_APPEND_TIME:
            return wrapper.timestamp_ms
        return self._read(_TIME, self._position + _TIME_AT)

    @property
    def key_size(self) -> int:
        """Return the stored size of the key in bytes.

        The size is negative for a null key, and too large in a damaged message.
        """
        return self._read(_SIZE, self._key_at)

    @property
    def key(self) -> bytes | None:
        """Return the key, None for null."""
        return self._read_sized(self._key_at)

    @property
    def value_size(self) -> int:
        """Return the stored size of the value in bytes.

        The size is negative for a null value, and too large in a damaged message.
        """
        return self._read(_SIZE, self._value_at)

    @property
    def value(self) -> bytes | None:
        """Return the value, None for null; of a wrapper, the compressed messages."""
        return self._read_sized(self._value_at)

    def is_crc_valid(self) -> bool:
        """Return True if the stored checksum equals the checksum of the bytes."""
        return self.crc == self.computed_crc()

    def computed_crc(self) -> int:
        """Return the CRC-32 of the bytes that the checksum covers.

        Computed at the first call, then kept.
        """
        if self._computed_crc is None:
            self._require_whole()
            start = self._position
            checked = self._buffer[start + CHECKED_FROM : start + self._size]
            self._computed_crc = zlib.crc32(checked)
        return self._computed_crc

    def to_record(self) -> Record:
        """Return the message as a record; raises CorruptRecord for damaged sizes."""
        return Record(
            offset=self.offset,
            timestamp_ms=self.timestamp_ms,
            timestamp_type=self.timestamp_type,
            key=self.key,
            value=self.value,
            crc=self.crc,
            is_crc_valid=self.is_crc_valid(),
        )

    @property
    def _key_at(self) -> int:
        """Return the position in the buffer of the key's size."""
        return self._position + (_KEY_AT_V0 if self.magic == 0 else _KEY_AT_V1)

    @property
    def _value_at(self) -> int:
        """Return the position in the buffer of the value's size; a null key has no bytes."""
        return self._key_at + _SIZE.size + max(self.key_size, 0)

    def _read(self, form: struct.Struct, at: int) -> int:
        """Return the number at a buffer position; raise CorruptRecord beyond the message's end."""
        self._require_whole()
        if at + form.size > self._position + self._size:
            raise CorruptRecord(
                f"{form.size} more bytes of the message", "its end", position=self._place
            )
        value: int
        (value,) = form.unpack_from(self._buffer, at)
        return value

    def _read_sized(self, at: int) -> bytes | None:
        """Return the bytes after an int32 length, None for a negative length."""
        size = self._read(_SIZE, at)
        if size < 0:
            return None
        start = at + _SIZE.size
        left = self._position + self._size - start
        if size > left:
            raise SizeBeyondMessage(size, left, self._place)
        return bytes(self._buffer[start : start + size])

    def _require_whole(self) -> None:
        """Raise CorruptRecord if the message is too small, or longer than the buffer."""
        left = len(self._buffer) - self._position
        if not LENGTH_OVERHEAD_BYTES + MESSAGE_BYTES_MIN <= self._size <= left:
            raise CorruptRecord(
                f"a message of {MESSAGE_BYTES_MIN + LENGTH_OVERHEAD_BYTES} to {left} bytes",
                self._size,
                position=self._place,
            )


class LegacyBatch(LegacyMessage):
    """A message of a log, plain or a wrapper, with the interface of a batch.

    It has the attributes of a `BatchView`; those that magic 2 introduced have their null values.
    """

    __slots__ = ()

    leader_epoch: ClassVar[int] = -1
    producer_id: ClassVar[int] = -1
    producer_epoch: ClassVar[int] = -1
    base_sequence: ClassVar[int] = NO_SEQUENCE
    last_sequence: ClassVar[int] = NO_SEQUENCE
    has_producer_id: ClassVar[bool] = False
    is_transactional: ClassVar[bool] = False
    is_control: ClassVar[bool] = False
    has_delete_horizon: ClassVar[bool] = False
    delete_horizon_ms: ClassVar[int | None] = None
    record_count: ClassVar[int | None] = None

    @property
    def position(self) -> int:
        """Return the position of the message's first byte in its buffer."""
        return self._position

    @property
    def base_offset(self) -> int:
        """Return the offset of the first record; a wrapper is decompressed to find it."""
        return next(self.iter_messages()).offset

    @property
    def last_offset(self) -> int:
        """Return the last record's offset (inclusive): a wrapper's own offset."""
        return self.offset

    @property
    def next_offset(self) -> int:
        """Return the offset after the last record."""
        return int64(self.offset + 1)

    @property
    def timestamp_type(self) -> TimestampType:
        """Return the timestamp type; raises CorruptRecord if the magic is neither 0 nor 1."""
        self._require_known_magic()
        return super().timestamp_type

    @property
    def max_timestamp_ms(self) -> int:
        """Return the largest record timestamp, −1 for magic 0.

        Raises CorruptRecord for a higher magic.
        """
        self._require_known_magic()
        return self.timestamp_ms

    @property
    def is_compressed(self) -> bool:
        """Return True for a wrapper; raises CorruptRecord for an unknown codec."""
        return self.codec is not Codec.NONE

    @property
    def raw(self) -> memoryview:
        """Return the bytes of the whole message.

        Raises CorruptRecord if the buffer lacks some of them.
        """
        self._require_whole()
        return self._buffer[self._position : self._position + self._size]

    def ensure_valid(self) -> None:
        """Raise CorruptRecord if the stored checksum is not that of the bytes."""
        computed = self.computed_crc()
        if computed != self.crc:
            raise CorruptRecord(f"CRC {computed}", self.crc, position=self._position + _CRC_AT)

    def records(self, *, limit_bytes: int = DECOMPRESSED_BATCH_BYTES_MAX) -> Iterator[Record]:
        """Yield the message as a record, or the records it wraps, as Kafka's `iterator` does.

        A wrapper is completely decompressed and parsed before the first record is yielded.
        Checksums are not verified. Raises CorruptRecord, DecompressedTooLarge.
        """
        for message in self.iter_messages(limit_bytes=limit_bytes):
            yield message.to_record()

    def read_records(self, *, limit_bytes: int = DECOMPRESSED_BATCH_BYTES_MAX) -> list[Record]:
        """Return the list of all records that `records` yields, or raise its errors."""
        return list(self.records(limit_bytes=limit_bytes))

    def salvage_records(
        self, *, limit_bytes: int = DECOMPRESSED_BATCH_BYTES_MAX
    ) -> Iterator[Record]:
        """Yield the records as `records` does: nothing can be salvaged from a damaged wrapper.

        The relative offsets inside a wrapper become absolute only with the last message.
        """
        return self.records(limit_bytes=limit_bytes)

    def iter_messages(
        self, *, limit_bytes: int = DECOMPRESSED_BATCH_BYTES_MAX
    ) -> Iterator[LegacyMessage]:
        """Yield the message, or the messages that it wraps, with absolute offsets.

        Bytes after the last complete inner message are ignored, as in Kafka. The sizes of keys and
        values are not checked.
        """
        self._require_known_magic()
        if self.codec is Codec.NONE:
            yield self
            return
        inner = self._unwrap(limit_bytes)
        base = self._inner_base_offset(inner)
        for message in inner:
            message.offset = int64(base + message.offset)
            if message.codec is not Codec.NONE:
                raise CorruptRecord(
                    "inner messages without compression", message.codec.label, position=self._place
                )
            yield message

    def _unwrap(self, limit_bytes: int) -> list[LegacyMessage]:
        """Decompress a wrapper's value; return its complete inner messages.

        A truncated message at the end is left out. Raises CorruptRecord if no message is complete.
        """
        value = self.value
        if value is None:
            raise CorruptRecord("compressed messages", "a null value", position=self._place)
        try:
            data = decompress(self.codec, value, magic=self.magic, limit_bytes=limit_bytes)
        except CorruptRecord as error:
            raise error.at(None, self._place) from error
        buffer = memoryview(data)
        inner, position = [], 0
        while position + LENGTH_OVERHEAD_BYTES <= len(buffer):
            (size,) = _SIZE.unpack_from(buffer, position + _OFFSET.size)
            if size < MESSAGE_BYTES_MIN:
                raise InnerMessageTooSmall(
                    f"inner messages of at least {MESSAGE_BYTES_MIN} bytes",
                    size,
                    position=self._place,
                )
            end = position + LENGTH_OVERHEAD_BYTES + size
            if end > len(buffer):
                break
            inner.append(LegacyMessage.create_inner(self, buffer, position))
            position = end
        if not inner:
            raise CorruptRecord("inner messages", "none", position=self._place)
        return inner

    def _inner_base_offset(self, inner: list[LegacyMessage]) -> int:
        """Return the number to add to the relative offsets of a wrapper's inner messages.

        It is 0 for magic 0, whose inner offsets are absolute, and for a wrapper with offset 0.
        """
        if self.magic == 0 or self.offset == 0:
            return 0
        last_inner = inner[-1].offset
        if self.offset < last_inner:
            raise CorruptRecord(
                f"a wrapper offset of at least {last_inner}, its last message's",
                self.offset,
                position=self._place,
            )
        return self.offset - last_inner

    def _require_known_magic(self) -> None:
        """Raise CorruptRecord if the magic is neither 0 nor 1, the two formats before batches."""
        if self.magic not in (0, 1):
            raise CorruptRecord("magic 0 or 1", self.magic, position=self._position + _MAGIC_AT)
