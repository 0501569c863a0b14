"""Reading the batches of a split past all damage: what is whole is yielded, the rest noted.

| found | then |
|---|---|
| wrong CRC | `bad_crc`; the batch is passed over, the next one starts where it ends |
| a length that no batch has | `bad_batch`; the next whole batch is searched for |
| the same, and no whole batch follows | `torn_tail`: a cut-off or zero end of a segment |
| records that do not hold | `bad_records`, noted by the reader of records |
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from engine.analysis.splits import Split
from engine.errors import CorruptRecord
from engine.host.ports import File
from engine.log.batch_scan import scan_batches, zero_tail_start
from engine.log.batch_search import resync
from engine.records.view import RecordBatch


class Problem(NamedTuple):
    """One damaged place; the fields are the columns of the problems table."""

    topic: str
    partition: int
    segment: str
    position: int
    bytes: int
    code: str
    message: str


class SplitReader:
    """The batches of one split."""

    def __init__(self, file: File, split: Split) -> None:
        self._file = file
        self._split = split
        # A batch may reach behind the split's end, into bytes that belong to it alone.
        self._file_end = split.end if split.is_last else file.size_bytes()
        self.problems: list[Problem] = []

    def batches(self, *, keep_bad_crc: bool = False) -> Iterator[tuple[int, RecordBatch, bool]]:
        """Yield (position, batch, whether its CRC is right); bad ones only if they are kept."""
        position = self._split.start
        while position < self._split.end:
            scan = scan_batches(self._file, start=position, end=self._file_end)
            try:
                for position, batch in scan:
                    if position >= self._split.end:
                        return
                    valid = self._has_valid_crc(position, batch)
                    if valid or keep_bad_crc:
                        yield position, batch, valid
                position = scan.position
                if position < self._split.end:
                    position = self._pass_over(position, "a batch that ends within the file", "not")
            except CorruptRecord as error:
                position = self._pass_over(scan.position, error.expected, error.got)

    def note(self, position: int, size_bytes: int, code: str, message: str) -> None:
        """Note a damaged place."""
        split = self._split
        self.problems.append(
            Problem(split.topic, split.partition, split.path, position, size_bytes, code, message)
        )

    def _has_valid_crc(self, position: int, batch: RecordBatch) -> bool:
        try:
            valid = batch.is_crc_valid()
        except CorruptRecord as error:
            self.note(position, batch.size_bytes, "bad_batch", str(error))
            return False
        if not valid:
            message = f"the stored CRC is {batch.crc}, that of the bytes is another"
            self.note(position, batch.size_bytes, "bad_crc", message)
        return valid

    def _pass_over(self, position: int, expected: str, got: object) -> int:
        """Note damage and return where to go on: the next whole batch, or the split's end."""
        batch_position = resync(self._file, position + 1, end=self._file_end)
        following = self._split.end if batch_position is None else max(batch_position, position + 1)
        code, message = "bad_batch", f"expected {expected}, got {got}"
        if batch_position is None and self._split.is_last:
            code = "torn_tail"
            if zero_tail_start(self._file, position) is not None:
                message = "zero bytes up to the end, as preallocation and some crashes leave them"
        self.note(position, following - position, code, message)
        return following
