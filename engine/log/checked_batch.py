"""The checks of one batch from a producer: each check runs at most once, and its result is kept.

```
header     read by the constructor              append_fast ─┐ passes its results on
checksum   once, over all bytes after it        append       ─┘ runs only the missing checks
opened     once: the decompressed records, or those before a fault, with the fault
walked     once: common properties of the records (`record_walk.py`)
```

Records are decompressed into memory that is reused for the next batch: allocating that much memory
costs as much as decompressing, because of page faults. Therefore the result of `open` is valid only
until the next batch is opened. For one thread; pure except for that memory.
"""

from __future__ import annotations

from typing import TypeAlias

from engine.errors import CorruptRecord
from engine.limits import OPENED_MEMORY_BYTES, OPENED_MEMORY_BYTES_MAX
from engine.native.record_walk import Walked, WalkTier
from engine.records.batch import BatchView
from engine.records.batch_header import CHECKED_FROM, CODEC_BITS, HEADER_BYTES
from engine.records.codec import codec_of
from engine.records.compression import decompress_prefix, select_fast_decompressor
from engine.records.crc import crc32c

#: Decompressed records, and the fault before the first missing one (None if all are there).
Opened: TypeAlias = tuple[bytes | memoryview, CorruptRecord | None]


class OpenedMemory:
    """The memory into which records are decompressed, one per process.

    It grows with the largest batch up to OPENED_MEMORY_BYTES_MAX, and never shrinks.
    """

    memory = memoryview(bytearray(OPENED_MEMORY_BYTES))


class CheckedBatch:
    """Bytes that should be one batch of magic 2; `batch` is None if they are shorter than a header.

    Source: D21.
    """

    # Defaults on the class, because most instances never set them.
    _walked: Walked = None
    _is_walked = False
    _may_open_fast = True
    _opened: Opened | None = None

    def __init__(self, data: memoryview, computed_crc: int | None = None) -> None:
        self.data = data
        self.computed_crc = computed_crc
        self.batch = BatchView(data) if len(data) >= HEADER_BYTES else None

    def store_walk(self, walked: Walked, opened: Opened | None) -> None:
        """Store the result of a walk over the records that compiled code has made at the append.

        A later `walk` or `open` then returns it. `opened` is the result of `open_fast`; None also
        for records that are not compressed.
        """
        self._is_walked = opened is not None or not self.is_compressed
        self._walked = walked
        self._opened = opened
        self._may_open_fast = False

    @property
    def is_compressed(self) -> bool:
        """Return True if the header names a compression codec."""
        return self.batch is not None and self.batch.attributes & CODEC_BITS != 0

    def ensure_valid(self, batch: BatchView) -> None:
        """Raise CorruptRecord if the stored checksum is wrong; only the first call computes it.

        `batch` must cover all checked bytes.
        """
        if self.computed_crc is None:
            batch.ensure_size()
            self.computed_crc = crc32c(batch.raw[CHECKED_FROM:])
        batch.ensure_valid(self.computed_crc)

    def walk(self, limit_bytes: int) -> Walked:
        """Return the result of the walk over the records, which is computed at the first call.

        None if the walk does not support these records, if they cannot be decompressed, or if they
        exceed `limit_bytes`; the caller then parses each record.
        """
        if self._is_walked:
            return self._walked
        assert self.batch is not None
        self._is_walked = True
        count = self.batch.record_count
        if not self.is_compressed:
            self._walked = WalkTier.walk(self.data, HEADER_BYTES, count)
            return self._walked
        data, fault = self.open(limit_bytes)
        if fault is None:
            self._walked = WalkTier.walk(data, 0, count)
        return self._walked

    def open(self, limit_bytes: int) -> Opened:
        """Return the decompressed records, and the fault that ended decompression or None.

        The first call decompresses; later calls return its result. Records that fit into the shared
        memory may exceed `limit_bytes`. Raises UnknownCodec.
        """
        if self._opened is None:
            assert self.batch is not None
            attributes = self.batch.attributes
            if self._may_open_fast:
                self._opened = open_fast(self.data, attributes & CODEC_BITS)
            if self._opened is None:
                self._opened = _decompress(self.data, attributes, limit_bytes)
        return self._opened


def open_fast(data: memoryview, codec: int) -> Opened | None:
    """Return the records of a batch decompressed to the shared memory, with the fault None.

    Returns None if they do not fit, for damaged records, and for compressed forms that few
    producers write: the caller then uses the general decompressor.
    """
    memory = OpenedMemory.memory
    size = select_fast_decompressor(codec)(data[HEADER_BYTES:], memory)
    return None if size is None else (memory[:size], None)


def _decompress(data: memoryview, attributes: int, limit_bytes: int) -> Opened:
    """Decompress the records up to a limit; return them with the fault, None without one.

    The shared memory of `open_fast` grows to the size of this batch, so that later batches of that
    size are decompressed there.
    """
    opened, fault = decompress_prefix(
        codec_of(attributes), data[HEADER_BYTES:], limit_bytes=limit_bytes
    )
    size = len(OpenedMemory.memory)
    while size < len(opened) <= OPENED_MEMORY_BYTES_MAX:
        size = min(4 * size, OPENED_MEMORY_BYTES_MAX)
    if size > len(OpenedMemory.memory):
        # The next batch of this size fits.
        OpenedMemory.memory = memoryview(bytearray(size))
    return opened, None if fault is None else fault.at(None, HEADER_BYTES)
