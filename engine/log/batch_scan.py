"""Read the batches of a log file in order, in memory that does not grow with the file.

```
position  0        8          12            16       17
          baseOffset  length    (4 bytes)     magic    …  until position + 12 + length
```

The same four rules apply to batches of every format (`end` is the file's size):

```
position >= end − 17          stop: there is no header
length < 14                   CorruptRecord: the next batch cannot be located
position > end − 12 − length  stop: the batch is incomplete
otherwise                     a batch; the reader checks its CRC
```

Source: Kafka's FileLogInputStream.nextBatch. The bytes left after a stop are `trailing_bytes`.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.errors import CorruptRecord
from engine.host.ports import File
from engine.limits import SCAN_CHUNK_BYTES
from engine.records.batch_header import LENGTH_OVERHEAD_BYTES, PROLOGUE_BYTES, read_length
from engine.records.view import RecordBatch, batch_at

#: The smallest `length` of any format: a message of magic 0 without key and value.
LENGTH_MIN = 14


class BatchScan:
    """An iterable over the batches of `file` in [start, end) with their positions; iterate it once.

    A batch is a view of a buffer that the next step overwrites: copy the batches that are kept.
    Raises CorruptRecord at a length below 14 and at an impossible header, after it has yielded all
    batches before; `position` is then the start of the damage.
    """

    def __init__(
        self, file: File, start: int = 0, end: int | None = None, *, chunk_bytes: int
    ) -> None:
        """Scan up to `end` (exclusive; None: the end of the file), in reads of `chunk_bytes`."""
        self.file = file
        #: Where the next batch starts; after the last one, where the batches end.
        self.position = start
        #: The bytes between the last batch and the end of the file, known after the last one.
        self.trailing_bytes = 0
        #: The last bytes read, and their position in the file. Batches are views of them.
        self.window = memoryview(b"")
        self.window_start = start
        #: Position where the scan ends (exclusive), fixed when it begins: later appends are not
        #: seen.
        self._end = file.size_bytes() if end is None else min(end, file.size_bytes())
        self._chunk_bytes = max(chunk_bytes, PROLOGUE_BYTES)

    def __iter__(self) -> Iterator[tuple[int, RecordBatch]]:
        """Yield (position in the file, batch) of each batch from `self.position` on.

        The batch is a view of a buffer: it is valid until the next iteration.
        """
        for position, view in self.iter_frames():
            yield position, self.parse_frame(position, view)

    def parse_frame(self, position: int, view: memoryview) -> RecordBatch:
        """Return the parsed batch of a frame that `iter_frames` yielded.

        An invalid header ends the scan: the scan's position becomes `position`, and CorruptRecord
        is raised with the path and the position.
        """
        try:
            return batch_at(view, 0)
        except CorruptRecord as error:
            self._stop(position)
            raise error.at(self.file.path, position) from error

    def iter_frames(self) -> Iterator[tuple[int, memoryview]]:
        """Yield (position, bytes) of each whole batch from `self.position` on, without parsing.

        The bytes are valid until the next iteration. Ends without an error at a batch that the end
        of the file cuts off. Raises CorruptRecord for a length field below the minimum.
        """
        position, end = self.position, self._end
        buffer = memoryview(bytearray(min(self._chunk_bytes, max(end - position, 1))))
        base = position
        limit = base + self.file.read_into(base, buffer)
        self._show(buffer, base, limit)
        while position < end - PROLOGUE_BYTES:
            if limit - position < PROLOGUE_BYTES:
                base, limit = position, self._refill_buffer(buffer, base, position, limit)
                if limit - position < PROLOGUE_BYTES:
                    break  # the file was truncated meanwhile
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
                    larger = memoryview(bytearray(following - position))
                    larger[: limit - position] = buffer[position - base : limit - base]
                    buffer, base = larger, position
                base, limit = position, self._refill_buffer(buffer, base, position, limit)
                if following > limit:
                    break
            self.position = following
            yield position, buffer[position - base : following - base]
            position = self.position
        self._stop(position)

    def pass_to(self, position: int) -> None:
        """Continue the scan at `position`, the start of a batch in the current window.

        The caller has read the batches before `position` from the window itself.
        """
        self.position = position

    def _refill_buffer(self, buffer: memoryview, base: int, position: int, limit: int) -> int:
        """Move the unread bytes to the start of the buffer, and fill the rest from the file.

        Returns the position where the buffered bytes end. A move costs less than a second read of
        the same bytes, which are in the processor's cache.
        """
        kept = limit - position
        buffer[:kept] = buffer[position - base : limit - base]
        end = limit + self.file.read_into(limit, buffer[kept:])
        self._show(buffer, position, end)
        return end

    def _show(self, buffer: memoryview, start: int, end: int) -> None:
        """Make the bytes that were read visible to the caller, with their place in the file."""
        self.window, self.window_start = buffer[: end - start], start

    def _stop(self, position: int) -> None:
        """Store the end of the batches, and the number of bytes from there to the scan's end."""
        self.position = position
        self.trailing_bytes = max(self._end - position, 0)


def scan_batches(
    file: File, *, start: int = 0, end: int | None = None, chunk_bytes: int = SCAN_CHUNK_BYTES
) -> BatchScan:
    """Return the batches of a file between two byte positions; `end` None means its current end."""
    return BatchScan(file, start, end, chunk_bytes=chunk_bytes)


def zero_tail_start(file: File, start: int, *, chunk_bytes: int = SCAN_CHUNK_BYTES) -> int | None:
    """Return `start` if the file has bytes from there on and all of them are zero, else None.

    `log.preallocate` and some crashes leave such a tail: readers must not report it as damage.
    """
    size = file.size_bytes()
    position = start
    # Usually the first bytes are not zero.
    length = PROLOGUE_BYTES
    while position < size:
        chunk = file.read_at(position, min(length, chunk_bytes, size - position))
        if not chunk or chunk.count(0) != len(chunk):
            return None
        position += len(chunk)
        length *= 8
    return start if position > start else None
