"""Read the batches of a split past all damage: good batches are yielded, problems are noted.

| found | problem, and where reading continues |
|---|---|
| wrong CRC | `bad_crc`; at its end, or at a whole batch inside if its length is wrong |
| an impossible length | `bad_batch`; at the next whole batch |
| the same at the end of the log, no whole batch follows | `torn_tail`: an unfinished last write |
| an impossible base offset | `bad_offset`; at its end |
| missing or repeated offsets | `lost`, `gap`, `overlap`: see `batch_order.py` |
| an impossible leader epoch | `bad_epoch`; the batch is yielded |
| records that cannot be decoded | `bad_records`, noted by the reader of records |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, cast

from engine.analysis.batch_order import BatchOrder, OffsetSpan
from engine.analysis.problem import Problem
from engine.analysis.splits import Split
from engine.errors import CorruptRecord
from engine.host.ports import File
from engine.limits import RUN_CHUNK_BYTES, SCAN_CHUNK_BYTES, SEARCH_CHUNK_BYTES
from engine.log.batch_scan import BatchScan, scan_batches, zero_tail_start
from engine.log.batch_search import find_end_after_bad_crc, find_end_after_bad_length
from engine.native.batch_runs import BatchRun, RunFinder
from engine.records.batch_header import CHECKED_FROM, MAGIC, MAGIC_AT
from engine.records.control import MARKER_BATCH_BYTES
from engine.records.crc import crc32c
from engine.records.view import RecordBatch

#: Position, batch, and whether its CRC is valid.
Single: TypeAlias = tuple[int, RecordBatch, bool]

#: Problem codes of batches that readers do not get; other codes are about places and offsets.
BAD_BATCH_CODES = frozenset(("bad_batch", "bad_crc", "bad_offset", "bad_records"))


class SplitReader:
    """Reads the batches of one split, and collects their problems."""

    def __init__(self, file: File, split: Split) -> None:
        """Create a reader of the batches in a split of a segment; the caller closes `file`."""
        self._file = file
        self.split = split
        #: Largest end position of a batch that starts in the split: the last batch may extend
        #: beyond the split's end.
        self._file_end = split.end if split.is_last else file.size_bytes()
        #: Grows while the batches are read.
        self.problems: list[Problem] = []
        #: Position of each damage, and whether it may have held a transaction marker.
        self.damages: list[tuple[int, bool]] = []
        #: Whether all batches were read.
        self.is_whole = False
        self._order = BatchOrder(file, split, self.note)

    @property
    def span(self) -> OffsetSpan:
        """Return which offsets were read up to now; see `BatchOrder.span`."""
        return self._order.span

    @property
    def is_compacted(self) -> bool:
        """Return True if the topic is compacted by its configuration, or a batch read showed it."""
        return self._order.is_compacted

    def batches(self, *, keep_bad: bool = False) -> Iterator[Single]:
        """Yield each batch as (position, batch, whether the CRC is valid).

        Damaged bytes are skipped and noted in `problems`. With `keep_bad` batches with a wrong CRC
        or base offset are yielded too.
        """
        return cast("Iterator[Single]", self._read_pieces(SCAN_CHUNK_BYTES, keep_bad=keep_bad))

    def runs(self, finder: Callable[[], RunFinder | None]) -> Iterator[BatchRun | Single]:
        """Yield the good batches; consecutive ones without faults together as one run.

        A run is valid until the iterator's next step. `finder` returns the compiled code that finds
        runs; None while that is not loaded.
        """
        return self._read_pieces(RUN_CHUNK_BYTES, finder)

    def _read_pieces(
        self,
        chunk_max: int,
        finder: Callable[[], RunFinder | None] | None = None,
        *,
        keep_bad: bool = False,
    ) -> Iterator[BatchRun | Single]:
        """Yield runs, where `finder` finds them, and single batches.

        After damage, a new scan starts at the next good position.
        """
        position = self.split.start
        while position < self.split.end:
            # For a small split in a large file, read only a little beyond the split's end.
            chunk = min(max(self.split.end - position, SEARCH_CHUNK_BYTES), chunk_max)
            scan = scan_batches(self._file, start=position, end=self._file_end, chunk_bytes=chunk)
            try:
                for at, view in scan.iter_frames():
                    if at >= self.split.end:
                        self.is_whole = True
                        return
                    if finder is not None and view[MAGIC_AT] == MAGIC:
                        run = self._take_run_at(at, scan, finder)
                        if run is not None:
                            yield run
                            continue
                    batch = scan.parse_frame(at, view)
                    valid = self._has_valid_crc(batch)
                    following = scan.position if valid else self._skip_bad_crc(at, batch)
                    accepted = valid and self._order.accept(at, batch)
                    if valid and not accepted:
                        self.damages.append((at, batch.is_control))
                    if accepted or keep_bad:
                        yield at, batch, valid
                    if following != scan.position:
                        break
                else:
                    following = self._after_last(scan.position)
            except CorruptRecord as error:
                following = self._skip_damage(scan.position, error.expected, error.got)
            position = following
        self.is_whole = True

    def _take_run_at(
        self, at: int, scan: BatchScan, finder: Callable[[], RunFinder | None]
    ) -> BatchRun | None:
        """Return the run of batches that starts at position `at`, and move the scan to its end.

        None if no run starts there: the caller then reads a single batch.
        """
        expected, found = self._order.run_start, finder()
        if expected is None or found is None:
            return None
        window, window_start = scan.window, scan.window_start
        start, limit = at - window_start, self.split.end - window_start
        run = found.find(window, start, limit, window_start, *expected)
        right = 0
        for begin, end, crc in run.iter_checksums():
            if crc32c(window[begin + CHECKED_FROM : end]) != crc:
                # End the run before the first batch with a wrong CRC.
                run = found.find(window, start, limit, window_start, *expected, frames_max=right)
                break
            right += 1
        if not right:
            return None
        self._order.accept_run(run, window_start + run.last_start)
        scan.pass_to(window_start + run.end)
        return run

    def _after_last(self, position: int) -> int:
        """Return the position to continue from once a scan has no more whole batches.

        A truncated batch within the split is noted as damage, and skipped.
        """
        if position >= self.split.end:
            return position
        return self._skip_damage(position, "a batch that ends within the file", "not")

    def note(self, position: int, size_bytes: int, code: str, message: str) -> None:
        """Append a problem of this split to `problems`."""
        split = self.split
        self.problems.append(
            Problem(split.topic, split.partition, split.path, position, size_bytes, code, message)
        )

    def _has_valid_crc(self, batch: RecordBatch) -> bool:
        """Return True if a batch's CRC matches; False also if it is too damaged to compute it."""
        try:
            return batch.is_crc_valid()
        except CorruptRecord:
            return False

    def _skip_bad_crc(self, position: int, batch: RecordBatch) -> int:
        """Note a batch with a wrong CRC; return the position to continue from."""
        stated_end = position + batch.size_bytes
        following = find_end_after_bad_crc(
            self._file,
            position,
            stated_end,
            end=self._file_end,
            next_offset=self._order.next_offset,
        )
        code, message = "bad_crc", f"the stored CRC is {batch.crc}, that of the bytes is another"
        try:
            batch.is_crc_valid()
        except CorruptRecord as error:
            code, message = "bad_batch", str(error)
        self.note(position, min(following, self.split.end) - position, code, message)
        self._order.see_damage()
        # A length that leads to the next batch is right, and all transaction markers have one size.
        may_be_marker = following != stated_end or batch.size_bytes == MARKER_BATCH_BYTES
        self.damages.append((position, may_be_marker))
        return following

    def _skip_damage(self, position: int, expected: str, got: object) -> int:
        """Note damaged bytes at `position`; return the position of the next whole batch.

        It is the split's end if there is none. `expected` and `got` describe the damage.
        """
        code, message = "bad_batch", f"expected {expected}, got {got}"
        is_zero = self.split.is_last and zero_tail_start(self._file, position) is not None
        batch_position = None
        if is_zero:
            message = "zero bytes up to the end, as preallocation and some crashes leave them"
        else:
            batch_position = find_end_after_bad_length(
                self._file, position, end=self._file_end, next_offset=self._order.next_offset
            )
        following = self.split.end if batch_position is None else batch_position
        following = min(following, self.split.end)
        is_open = self.split.is_last and self.split.next_base is None
        if is_zero or (batch_position is None and is_open):
            code = "torn_tail"
        self.note(position, following - position, code, message)
        self._order.see_damage()
        # An unfinished last write is no part of the log. Offsets that are missing after it, in a
        # closed segment, are noted on their own.
        if code != "torn_tail":
            self.damages.append((position, True))
        return following
