"""Read a segment in chunks of whole batches, as large as a cleaner's buffer.

The buffer is a part of log.cleaner.io.buffer.size; it grows for a batch that does not fit, and
shrinks with the next segment.

Source: Kafka's Cleaner.growBuffersOrFail.
"""

from __future__ import annotations

from engine.errors import CorruptRecord
from engine.host.ports import File
from engine.records.batch import BatchView
from engine.records.batch_header import CHECKED_FROM
from engine.records.crc import crc32c
from engine.records.view import RecordBatch, batches_in


class ChunkReader:
    """Reads one segment's .log; batches are views of memory that the next read overwrites."""

    def __init__(self, file: File, *, buffer_bytes: int, batch_bytes_max: int) -> None:
        """Read chunks of `buffer_bytes`, more for a larger batch."""
        self._file = file
        #: Size up to which the memory grows without a check of the batch's own length.
        self._batch_bytes_max = max(batch_bytes_max, buffer_bytes)
        self._memory = bytearray(buffer_bytes)
        #: Size of the file when the reading began.
        self.size_bytes = file.size_bytes()

    def read_batches(self, position: int) -> list[RecordBatch]:
        """Return the next whole batches; at least one unless `position` is the end of the file.

        The buffer grows for a batch that is larger than the buffer. Raises CorruptRecord for a
        wrong checksum.
        """
        while True:
            batches = self._read_whole_batches(position)
            if batches or position >= self.size_bytes:
                return batches
            self._grow_buffer(position)

    def _read_whole_batches(self, position: int) -> list[RecordBatch]:
        """Read the whole batches from a position on into the buffer; verify their checksums.

        An empty list if the first batch is larger than the buffer. Raises CorruptRecord.
        """
        length = self._file.read_into(position, self._memory)
        view = memoryview(self._memory)[:length]
        try:
            batches = list(batches_in(view, allow_partial_tail=True))
            for batch in batches:
                if isinstance(batch, BatchView):
                    start = batch.position
                    batch.ensure_valid(
                        crc32c(view[start + CHECKED_FROM : start + batch.size_bytes])
                    )
                else:
                    batch.ensure_valid()
        except CorruptRecord as error:
            raise error.at(self._file.path, position) from error
        return batches

    def _grow_buffer(self, position: int) -> None:
        """Double the memory, at most to the size of the next batch.

        Raises CorruptRecord if the file ends within the batch.
        """
        size = len(self._memory)
        left = self.size_bytes - position
        if size >= left:
            raise CorruptRecord(
                "whole batches to the end", f"{left} bytes", path=self._file.path, position=position
            )
        if size >= self._batch_bytes_max:
            # The batch is larger than the current limit: it was written under an earlier one.
            header = memoryview(self._memory)[8:12]
            self._batch_bytes_max = int.from_bytes(header, "big") + 12
            if self._batch_bytes_max > left:
                raise CorruptRecord(
                    f"a batch of at most {left} bytes",
                    self._batch_bytes_max,
                    path=self._file.path,
                    position=position,
                )
        self._memory = bytearray(min(2 * size, self._batch_bytes_max))
