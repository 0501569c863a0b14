"""Front to back through the batches of a log file, in memory that does not grow with the file.

```
position  0        8          12            16       17
          baseOffset  length    (4 bytes)     magic    …  until position + 12 + length
```

The same four rules decide for every format where the batches end (`end` is the file's size):

```
position >= end − 17          stop: no header left
length < 14                   CorruptRecord: nothing can be told about what follows
position > end − 12 − length  stop: the batch is cut off
otherwise                     a batch, of any bytes; its CRC is the reader's to check
```

Source: Kafka's FileLogInputStream.nextBatch. What is left after a stop is `trailing_bytes`.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.errors import CorruptRecord
from engine.host.ports import File
from engine.limits import RESYNC_CHECKED_BYTES_FACTOR, SCAN_CHUNK_BYTES
from engine.records.batch_header import (
    CHECKED_FROM,
    HEADER_BYTES,
    KNOWN_FLAGS,
    LENGTH_OVERHEAD_BYTES,
    MAGIC_AT,
    PROLOGUE_BYTES,
    read_header_start,
    read_length,
)
from engine.records.crc import crc32c
from engine.records.view import RecordBatch, batch_at

#: The smallest `length` of any format: a message of magic 0 without key and value.
LENGTH_MIN = 14

_V2_LENGTH_MIN = HEADER_BYTES - LENGTH_OVERHEAD_BYTES


class BatchScan:
    """The batches of `file` in [start, end), each with its position, once.

    A batch is a view of a buffer that the next step overwrites: copy what is kept. Raises
    CorruptRecord at a length below 14 and at a header that no batch can have, after all batches
    before it; `position` is then where the damage starts.
    """

    def __init__(
        self, file: File, start: int = 0, end: int | None = None, *, chunk_bytes: int
    ) -> None:
        self.file = file
        #: Where the next batch starts; after the last one, where the batches end.
        self.position = start
        #: What lies between the last batch and the end of the file, known after the last one.
        self.trailing_bytes = 0
        self._end = file.size_bytes() if end is None else min(end, file.size_bytes())
        self._chunk_bytes = max(chunk_bytes, PROLOGUE_BYTES)

    def __iter__(self) -> Iterator[tuple[int, RecordBatch]]:
        """Yield (position, batch)."""
        for position, view in self.frames():
            yield position, self.batch(position, view)

    def batch(self, position: int, view: memoryview) -> RecordBatch:
        """Return the batch behind one of the frames; CorruptRecord, and the scan's end, if none."""
        try:
            return batch_at(view, 0)
        except CorruptRecord as error:
            self._stop(position)
            raise error.at(self.file.path, position) from error

    def frames(self) -> Iterator[tuple[int, memoryview]]:
        """Yield (position, the batch's bytes) without looking into them."""
        position, end = self.position, self._end
        buffer = memoryview(bytearray(min(self._chunk_bytes, max(end - position, 1))))
        base = position
        limit = base + self.file.read_into(base, buffer)
        while position < end - PROLOGUE_BYTES:
            if limit - position < PROLOGUE_BYTES:
                base, limit = position, position + self.file.read_into(position, buffer)
                if limit - position < PROLOGUE_BYTES:
                    break  # the file was cut under us
            length = read_length(buffer, position - base)
            if length < LENGTH_MIN:
                self._stop(position)
                raise CorruptRecord(
                    f"a batch size of at least {LENGTH_MIN}",
                    length,
                    path=self.file.path,
                    position=position,
                )
            following = position + LENGTH_OVERHEAD_BYTES + length
            if following > end:
                break
            if following > limit:
                if following - position > len(buffer):
                    buffer = memoryview(bytearray(following - position))
                base, limit = position, position + self.file.read_into(position, buffer)
                if following > limit:
                    break
            self.position = following
            yield position, buffer[position - base : following - base]
            position = following
        self._stop(position)

    def _stop(self, position: int) -> None:
        self.position = position
        self.trailing_bytes = max(self._end - position, 0)


def scan_batches(
    file: File, *, start: int = 0, end: int | None = None, chunk_bytes: int = SCAN_CHUNK_BYTES
) -> BatchScan:
    """Return the batches of a file between two byte positions; `end` None means its end now."""
    return BatchScan(file, start, end, chunk_bytes=chunk_bytes)


def zero_tail_start(file: File, start: int, *, chunk_bytes: int = SCAN_CHUNK_BYTES) -> int | None:
    """Return `start` if everything from there on is zero (and something is), else None.

    Such a tail is what `log.preallocate` and some crashes leave; it holds no data.
    """
    size = file.size_bytes()
    position = start
    while position < size:
        chunk = file.read_at(position, min(chunk_bytes, size - position))
        if not chunk or chunk.count(0) != len(chunk):
            return None
        position += len(chunk)
    return start if position > start else None


def resync(
    file: File, position: int, *, end: int | None = None, chunk_bytes: int = SCAN_CHUNK_BYTES
) -> int | None:
    """Return where the first whole batch of magic 2 at or after `position` starts, or None.

    It is recognised by its magic byte, a length within the file, a header that makes sense, and
    a CRC that fits. Bytes made to look like many nested batches would be read again and again,
    so at most RESYNC_CHECKED_BYTES_FACTOR times the searched bytes are put through the CRC.
    """
    end = file.size_bytes() if end is None else min(end, file.size_bytes())
    budget = RESYNC_CHECKED_BYTES_FACTOR * max(end - position, 0)
    for candidate, length in _candidates(file, position, end, chunk_bytes):
        if length > budget:
            continue
        budget -= length
        if _crc_fits(file, candidate, length, chunk_bytes):
            return candidate
    return None


def _candidates(file: File, start: int, end: int, chunk_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield (position, whole size) wherever the bytes look like the header of a batch."""
    chunk_bytes = max(chunk_bytes, 2 * HEADER_BYTES)
    while end - start >= HEADER_BYTES:
        chunk = file.read_at(start, min(chunk_bytes, end - start))
        if len(chunk) < HEADER_BYTES:
            return
        last = len(chunk) - HEADER_BYTES
        magic_position = chunk.find(2, MAGIC_AT, last + MAGIC_AT + 1)
        while magic_position >= 0:
            at = magic_position - MAGIC_AT
            size = _plausible_size(chunk, at, end - start - at)
            if size:
                yield start + at, size
            magic_position = chunk.find(2, magic_position + 1, last + MAGIC_AT + 1)
        start += last + 1


def _plausible_size(chunk: bytes, at: int, bytes_left: int) -> int:
    """Return the size of the batch whose header may stand at `at`, 0 if none can."""
    base_offset, length, epoch, _, _, attributes, last_delta = read_header_start(chunk, at)
    if length < _V2_LENGTH_MIN or length + LENGTH_OVERHEAD_BYTES > bytes_left:
        return 0
    if base_offset < 0 or epoch < -1 or last_delta < 0 or attributes & ~KNOWN_FLAGS:
        return 0
    return int(length) + LENGTH_OVERHEAD_BYTES


def _crc_fits(file: File, position: int, size: int, chunk_bytes: int) -> bool:
    header = file.read_at(position, CHECKED_FROM)
    if len(header) < CHECKED_FROM:
        return False
    crc = 0
    done = CHECKED_FROM
    while done < size:
        chunk = file.read_at(position + done, min(chunk_bytes, size - done))
        if not chunk:
            return False
        crc = crc32c(chunk, crc)
        done += len(chunk)
    return crc == int.from_bytes(header[MAGIC_AT + 1 : CHECKED_FROM], "big")
