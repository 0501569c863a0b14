"""The checks of one batch that a producer sent: each is done at most once, and its result kept.

```
header     read when this is made                 append_fast ─┐ passes its results on
checksum   once, over all bytes after it          append       ─┘ does only the missing checks
opened     once: compressed records, or as much of them as can be opened, and the fault
walked     once: what the records have in common (`record_walk.py`)
```

Records are opened into memory that is used again for the next batch: fresh memory of that size
costs as much as opening them, for the kernel hands it out page by page. So `opened` is valid until
the next batch is opened. For one thread; pure, but for that memory.
"""

from __future__ import annotations

from typing import TypeAlias

from engine.errors import CorruptRecord
from engine.limits import OPENED_MEMORY_BYTES, OPENED_MEMORY_BYTES_MAX
from engine.native.record_walk import Walked, WalkTier
from engine.records.batch import BatchView
from engine.records.batch_header import CHECKED_FROM, CODEC_BITS, HEADER_BYTES
from engine.records.codec import codec_of
from engine.records.compression import decompress_prefix, fast_decompressor
from engine.records.crc import crc32c

#: Records as they are without compression, and why they are not more (None if they are all).
Opened: TypeAlias = tuple[bytes | memoryview, CorruptRecord | None]


class OpenedMemory:
    """The memory into which records are decompressed; the process has one.

    It grows with the largest batch up to OPENED_MEMORY_BYTES_MAX, and does not shrink.
    """

    memory = memoryview(bytearray(OPENED_MEMORY_BYTES))


class CheckedBatch:
    """Bytes that should be one batch of magic 2; `batch` is None if they have no room for a header.

    Source: D21.
    """

    # On the class: little of it is ever set.
    _walked: Walked = None
    _is_walked = False
    _may_open_fast = True
    _opened: Opened | None = None

    def __init__(self, data: memoryview, computed_crc: int | None = None) -> None:
        self.data = data
        self.computed_crc = computed_crc
        self.batch = BatchView(data) if len(data) >= HEADER_BYTES else None

    def note_walk(self, walked: Walked, opened: Opened | None) -> None:
        """Note the result of `append_fast` for records with a good checksum.

        `opened` is the result of `open_fast`, None also for records that are not compressed.
        """
        self._is_walked = opened is not None or not self.is_compressed
        self._walked = walked
        self._opened = opened
        self._may_open_fast = False

    @property
    def is_compressed(self) -> bool:
        """Return whether the header names a codec."""
        return self.batch is not None and self.batch.attributes & CODEC_BITS != 0

    def ensure_valid(self, batch: BatchView) -> None:
        """Raise CorruptRecord for a wrong checksum; `batch` must cover all checked bytes."""
        if self.computed_crc is None:
            batch.ensure_size()
            self.computed_crc = crc32c(batch.raw[CHECKED_FROM:])
        batch.ensure_valid(self.computed_crc)

    def walk(self, limit_bytes: int) -> Walked:
        """Return the walk over the records; None if they need the general path.

        None, too, for records that cannot be decompressed, or that exceed `limit_bytes`.
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
        """Return the records without compression; a limit below the memory's is passed over.

        Raises UnknownCodec.
        """
        if self._opened is None:
            assert self.batch is not None
            attributes = self.batch.attributes
            if self._may_open_fast:
                self._opened = open_fast(self.data, attributes & CODEC_BITS)
            if self._opened is None:
                self._opened = _open(self.data, attributes, limit_bytes)
        return self._opened


def open_fast(data: memoryview, codec: int) -> Opened | None:
    """Return the opened records of a batch in the shared memory, None if they do not fit there.

    None for damaged records, too, or those compressed in a form that few producers write.
    """
    memory = OpenedMemory.memory
    size = fast_decompressor(codec)(data[HEADER_BYTES:], memory)
    return None if size is None else (memory[:size], None)


def _open(data: memoryview, attributes: int, limit_bytes: int) -> Opened:
    """Decompress the records up to a limit; return them with the fault, None for no fault.

    The shared memory for decompression grows to the size of this batch, to spare later batches of
    that size an allocation.
    """
    opened, fault = decompress_prefix(
        codec_of(attributes), data[HEADER_BYTES:], limit_bytes=limit_bytes
    )
    size = len(OpenedMemory.memory)
    while size < len(opened) <= OPENED_MEMORY_BYTES_MAX:
        size = min(4 * size, OPENED_MEMORY_BYTES_MAX)
    if size > len(OpenedMemory.memory):
        # The next one of this size fits.
        OpenedMemory.memory = memoryview(bytearray(size))
    return opened, None if fault is None else fault.at(None, HEADER_BYTES)
