"""Checks a partition directory, or a whole log directory, without changing anything.

One scan of each .log feeds all checks at once:

```
.log ─▶ batches ─┬─ offsets, leader epochs, transactions     over the whole partition
                 └─ offset index, time index                 segment by segment
```

Damage does not end a check: a batch with a wrong checksum is left out, and after bytes that are not
a batch the next valid one is searched.

Source: invariants L1–L5; the codes are listed in `findings.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from engine.errors import CorruptFile, CorruptRecord
from engine.host.ports import File, Files
from engine.inspection.check_epochs import EpochCheck, compare_epochs
from engine.inspection.check_indexes import OffsetIndexCheck, TimeIndexCheck
from engine.inspection.check_offsets import OffsetCheck
from engine.inspection.check_records import record_problem
from engine.inspection.check_side_files import (
    check_metadata,
    check_names,
    check_snapshots,
    read_epochs,
)
from engine.inspection.check_transactions import TransactionCheck
from engine.inspection.fast_batches import FastBatches
from engine.inspection.findings import Finding, Findings, Severity
from engine.limits import DAMAGES_OF_A_SEGMENT_MAX, SCAN_CHUNK_BYTES
from engine.log.batch_scan import BatchScan, scan_batches, zero_tail_start
from engine.log.batch_search import find_end_after_bad_crc, find_end_after_bad_length
from engine.log.directory import leader_epoch_checkpoint, offset_checkpoint
from engine.log.directory.log_dir import (
    LogDir,
    LogDirState,
    PartitionFolder,
    duplicate_partitions,
)
from engine.log.offset_index import OffsetIndex, read_offset_index
from engine.log.segment_files import SegmentFiles
from engine.log.time_index import TimeIndex, read_time_index
from engine.log.txn_index import TransactionIndex, read_txn_index
from engine.naming import COMPACTED_TOPICS, FileKind
from engine.records.batch_header import MAGIC
from engine.records.view import RecordBatch

#: Checkpoints with offsets that the log had reached, and their meaning.
_REACHED = {
    offset_checkpoint.RECOVERY_POINTS: "recovery point: all below it was flushed",
    offset_checkpoint.HIGH_WATERMARKS: "high watermark: all below it was committed",
}


class VerifyOptions(NamedTuple):
    """Options: `compacted` None detects whether the log is; `deep` also reads all records."""

    compacted: bool | None = None
    deep: bool = False


class PartitionReport(NamedTuple):
    """The result of the check of a partition; offsets are None without any batch."""

    name: str
    path: str
    segments: int
    batches: int
    size_bytes: int
    first_offset: int | None
    next_offset: int | None
    findings: tuple[Finding, ...]

    @property
    def problems(self) -> int:
        """Return the number of findings that make the check fail."""
        return sum(finding.is_problem for finding in self.findings)


def verify_partition(
    files: Files,
    partition: PartitionFolder,
    state: LogDirState | None = None,
    options: VerifyOptions | None = None,
    *,
    on_read: Callable[[int], object] | None = None,
) -> PartitionReport:
    """Check the files of a partition directory and return the report.

    `state` is that of its log directory, None if unknown: with it the log end is compared with the
    checkpoints. `on_read` gets the number of log bytes read since its last call.
    """
    options = options or VerifyOptions()
    if options.compacted is None and _is_known_compacted(partition, state):
        options = options._replace(compacted=True)
    place = partition.topic_partition
    reached = None if state is None or place is None else state.reached_offset(place)
    report = _PartitionScan(files, partition, options, on_read).run(reached)
    if state is None:
        return report
    return report._replace(
        findings=(*report.findings, *_short_log_finding(partition, state, report))
    )


def verify_log_dir(log_dir: LogDir) -> list[Finding]:
    """Return the findings on a log directory itself, without those on its partitions."""
    findings = Findings()
    for problem in log_dir.state.problems:
        path = getattr(problem, "path", log_dir.path)
        findings.add(Severity.ERROR, "checkpoint-corrupt", path, str(problem))
    for partition in log_dir.partitions:
        if not partition.is_kept:
            message = "waits for its removal and was not checked"
            findings.add(Severity.NOTE, "partition-deleted", partition.files.path, message)
    for name in log_dir.unknown:
        path = f"{log_dir.path}/{name}"
        findings.add(Severity.NOTE, "unknown-file", path, "none of Kafka's names")
    return findings.all()


def verify_duplicates(dirs: list[LogDir]) -> list[Finding]:
    """Return a finding for each live copy of a partition that is in several log directories."""
    findings = Findings()
    for partition, paths in duplicate_partitions(dirs).items():
        for path in paths:
            message = f"{partition} is live in {len(paths)} log directories"
            findings.add(Severity.ERROR, "partition-duplicate", path, message, got=paths)
    return findings.all()


class _PartitionScan:
    """One check of one partition."""

    def __init__(
        self,
        files: Files,
        partition: PartitionFolder,
        options: VerifyOptions,
        on_read: Callable[[int], object] | None,
    ) -> None:
        """`on_read` gets numbers of bytes as they are read; None if no progress is shown."""
        self._files = files
        self._on_read = on_read
        self._partition = partition
        self._layout = partition.files
        self._options = options
        self._findings = Findings()
        self._offsets = OffsetCheck(self._findings, compacted=options.compacted)
        self._epochs = EpochCheck(self._findings)
        self._transactions = TransactionCheck(self._findings)
        #: Number of checked batches.
        self._batches = 0
        #: Path and base offset of the present segment; True if it is the last one.
        self._path = ""
        self._segment_base = 0
        self._is_last = False
        #: Checks of the present segment's indexes; None for an index that is absent or unreadable.
        self._index: OffsetIndexCheck | None = None
        self._time_index: TimeIndexCheck | None = None
        #: Bytes of the present segment that were reported to `on_read`.
        self._reported_bytes = 0

    def _notify_read(self, position: int) -> None:
        """Report the bytes of the segment read since the last report."""
        if self._on_read is not None and position > self._reported_bytes:
            self._on_read(position - self._reported_bytes)
        self._reported_bytes = position

    def run(self, reached_offset: int | None) -> PartitionReport:
        """Check the partition and return its report.

        `reached_offset` is an offset that its log has reached by the checkpoints, None if unknown.
        """
        check_names(self._findings, self._layout)
        check_metadata(self._findings, self._files, self._layout)
        for segment in self._layout.segments:
            self._is_last = segment is self._layout.segments[-1]
            self._check_segment(segment)
            self._notify_read(segment.log_bytes)
        self._offsets.finish(reached_offset)
        end_offset = self._end_offset()
        self._compare_epochs(end_offset)
        check_snapshots(self._findings, self._files, self._layout, end_offset)
        return PartitionReport(
            self._partition.name,
            self._layout.path,
            len(self._layout.segments),
            self._batches,
            self._layout.log_bytes,
            self._offsets.first_offset,
            self._offsets.next_offset,
            tuple(self._findings.all()),
        )

    def _end_offset(self) -> int:
        """Return the offset after the last batch, or the base of an empty last segment."""
        segments = self._layout.segments
        base = segments[-1].base_offset if segments else 0
        return max(self._offsets.next_offset or 0, base)

    def _compare_epochs(self, end_offset: int) -> None:
        """Compare `leader-epoch-checkpoint` with the epochs of the batches."""
        path = self._layout.file_path(leader_epoch_checkpoint.FILE_NAME)
        entries = read_epochs(self._findings, self._files, self._layout)
        if entries is not None:
            compare_epochs(
                self._findings,
                path,
                runs=self._epochs.runs,
                entries=entries,
                end_offset=end_offset,
            )
        elif self._epochs.runs and not self._findings.has(path, "epochs-"):
            message = "the batches have leader epochs, but there is no checkpoint of them"
            self._findings.add(Severity.WARNING, "epochs-absent", path, message)

    def _check_segment(self, segment: SegmentFiles) -> None:
        """Read a segment and pass its batches to all checks."""
        self._reported_bytes = 0
        self._path = self._layout.segment_path(segment, FileKind.LOG)
        self._segment_base = segment.base_offset
        self._offsets.enter(self._path, segment.base_offset)
        self._epochs.enter(self._path)
        self._open_indexes(segment)
        file = self._files.open(self._path)
        try:
            self._check_batches(file)
        finally:
            file.close()
        if self._index:
            self._index.finish()
        if self._time_index:
            self._time_index.finish()
        self._transactions.leave()

    def _open_indexes(self, segment: SegmentFiles) -> None:
        """Read the three indexes; report those that are missing or unreadable."""
        self._index = self._time_index = None
        path = self._layout.segment_path(segment, FileKind.INDEX)
        if self._has_index(segment, FileKind.INDEX):
            index = read_offset_index(self._files, path, segment.base_offset)
            is_closed = not self._is_last or not index.padding_bytes
            self._check_form(path, "index", index, is_closed=is_closed)
            self._index = OffsetIndexCheck(self._findings, path, index, is_closed=is_closed)
        path = self._layout.segment_path(segment, FileKind.TIMEINDEX)
        if self._has_index(segment, FileKind.TIMEINDEX):
            times = read_time_index(self._files, path, segment.base_offset)
            is_closed = not self._is_last or not times.padding_bytes
            self._check_form(path, "timeindex", times, is_closed=is_closed)
            self._time_index = TimeIndexCheck(
                self._findings, path, times, is_closed=is_closed, is_ended=not self._is_last
            )
        self._transactions.enter(
            self._path,
            self._layout.segment_path(segment, FileKind.TXNINDEX),
            self._read_transaction_index(segment),
        )

    def _read_transaction_index(self, segment: SegmentFiles) -> TransactionIndex | None:
        """Return a segment's transaction index, None if it has none; report a corrupt one."""
        if FileKind.TXNINDEX not in segment.sizes:
            return None
        path = self._layout.segment_path(segment, FileKind.TXNINDEX)
        try:
            index = read_txn_index(self._files, path)
        except CorruptFile as error:
            self._findings.add(Severity.WARNING, "txnindex-corrupt", path, str(error))
            return TransactionIndex(())
        problem = index.find_problem(segment.base_offset)
        if index.leftover_bytes:
            problem = f"{index.leftover_bytes} bytes after the last whole entry"
        if problem:
            self._findings.add(Severity.WARNING, "txnindex-corrupt", path, problem)
        return index

    def _has_index(self, segment: SegmentFiles, kind: FileKind) -> bool:
        """Return True if a segment has the index of this kind; report a missing one.

        An empty last segment may lack it.
        """
        if kind in segment.sizes:
            return True
        # A broker creates the indexes of a new segment when it first needs them.
        if segment.log_bytes or not self._is_last:
            path = self._layout.segment_path(segment, kind)
            code = f"{kind.value[1:]}-absent"
            self._findings.add(Severity.WARNING, code, path, "the segment has no such index")
        return False

    def _check_form(
        self, path: str, name: str, index: OffsetIndex | TimeIndex, *, is_closed: bool
    ) -> None:
        """Report faults within an index for which a broker rebuilds it when it loads the log.

        They are only a note in the index of an open segment, which a broker writes late.
        """
        severity, code = Severity.WARNING, f"{name}-corrupt"
        if not is_closed and not index.leftover_bytes:
            severity, code = Severity.NOTE, f"{name}-stale"
        problem = index.find_problem()
        if problem:
            self._findings.add(severity, code, path, problem)
        if index.hides_entries:
            message = "bytes other than zero lie after an entry of zeros"
            self._findings.add(severity, code, path, message)

    def _check_batches(self, file: File) -> None:
        """Pass all batches of a .log to the checks, continuing after damage if possible.

        After `DAMAGES_OF_A_SEGMENT_MAX` attempts the remaining bytes are reported as unread.
        """
        start: int | None = 0
        for _ in range(DAMAGES_OF_A_SEGMENT_MAX):
            size_bytes = file.size_bytes()
            scan = scan_batches(file, start=start or 0)
            damage = None
            try:
                start = self._pass_batches(scan)
            except CorruptRecord as error:
                damage = error
            else:
                if start is not None:
                    continue
            if damage is None and not scan.trailing_bytes:
                return
            if damage is None and self._is_last and file.size_bytes() > size_bytes:
                # The file has grown: a broker is writing the batch that seems torn.
                start = scan.position
                continue
            start = self._skip_damage(file, scan.position, scan.trailing_bytes, damage)
            if start is None:
                return
        message = f"more than {DAMAGES_OF_A_SEGMENT_MAX} damaged places: the rest was not read"
        self._report_error("segment-unread", message, start or 0)

    def _pass_batches(self, scan: BatchScan) -> int | None:
        """Pass batches to the checks, on the fast path where possible.

        Returns the position to continue from if a batch with a wrong CRC has a wrong size as well,
        None at the end.
        """
        fast = FastBatches(self._offsets, self._epochs, self._index, self._time_index)
        try:
            for position, view in scan.iter_frames():
                if position - self._reported_bytes >= SCAN_CHUNK_BYTES:
                    self._notify_read(position)
                if not self._options.deep and fast.take(position, view):
                    self._batches += 1
                    continue
                fast.leave()
                batch = scan.parse_frame(position, view)
                if self._pass_batch(position, batch):
                    fast.enter(self._segment_base)
                    continue
                stated_end = position + batch.size_bytes
                following = find_end_after_bad_crc(
                    scan.file, position, stated_end, next_offset=self._next_offset()
                )
                self._see_damage(position, following)
                if following != stated_end:
                    return following
        finally:
            fast.leave()
        return None

    def _next_offset(self) -> int:
        """Return the lowest offset that a batch after the current damage can have.

        It is the one after the last valid batch, or the segment's base offset.
        """
        return max(self._offsets.next_offset or 0, self._segment_base)

    def _skip_damage(
        self, file: File, at: int, left: int, damage: CorruptRecord | None
    ) -> int | None:
        """Report damage at a position; return the next valid batch's position, None for the end.

        `left` is the number of bytes that remain in the segment from there on.
        """
        tail = Severity.WARNING if self._is_last else Severity.ERROR
        if zero_tail_start(file, at) is not None:
            message = f"{left} zero bytes at the end"
            self._findings.add(tail, "zero-tail", self._path, message, position=at)
            return None
        following = find_end_after_bad_length(file, at, next_offset=self._next_offset())
        if following is None and damage is None:
            message = f"{left} bytes of a batch that does not end in the file"
            self._findings.add(tail, "torn-tail", self._path, message, position=at)
            self._offsets.see_damage()
            self._transactions.see_damage()
            return None
        self._see_damage(at, following or at + left)
        expected, got = "a batch within the file", f"one that ends after its {at + left} bytes"
        if damage is not None:
            expected, got = damage.expected, str(damage.got)
        code = "batch-size" if damage is None or "size" in expected else "batch-header"
        self._report_error(code, f"expected {expected}, got {got}", at, expected=expected, got=got)
        if following is None:
            self._report_error("bytes-skipped", f"{left} bytes up to the end are no batch", at)
        else:
            message = f"{following - at} bytes up to position {following} are no batch"
            self._report_error("bytes-skipped", message, at)
        return following

    def _pass_batch(self, position: int, batch: RecordBatch) -> bool:
        """Pass a batch to all checks; return False if its bytes cannot be trusted.

        That is if its CRC is wrong or its magic negative: it is then reported, and no check sees
        it.
        """
        self._batches += 1
        magic = batch.magic
        if not 0 <= magic <= MAGIC:
            message = f"magic {magic}: no broker and no client reads it"
            self._report_error("batch-magic", message, position, expected="0, 1 or 2", got=magic)
        if magic < 0 or not _is_whole(batch):
            if magic >= 0:
                message = "the checksum is not that of the bytes"
                self._report_error("batch-crc", message, position)
            return False
        if self._options.deep:
            problem = record_problem(batch)
            if problem:
                self._report_error("batch-records", problem, position)
        self._offsets.see(position, batch)
        self._epochs.see(position, batch)
        self._transactions.see(position, batch, is_complete=self._offsets.is_complete)
        if self._index:
            self._index.see(position, batch.last_offset)
        if self._time_index:
            self._time_index.see(batch.last_offset, batch.max_timestamp_ms)
        return True

    def _see_damage(self, start: int, end: int) -> None:
        """Make every check skip the damaged bytes [start, end)."""
        self._offsets.see_damage()
        self._transactions.see_damage()
        if self._index:
            self._index.see_damage(start, end)
        if self._time_index:
            self._time_index.see_damage()

    def _report_error(
        self, code: str, message: str, position: int, *, expected: object = None, got: object = None
    ) -> None:
        """Report an error at a position in the segment."""
        self._findings.add(
            Severity.ERROR,
            code,
            self._path,
            message,
            position=position,
            expected=expected,
            got=got,
        )


def _is_whole(batch: RecordBatch) -> bool:
    """Return True if the batch's CRC is valid; False also if the CRC cannot be read."""
    try:
        return batch.is_crc_valid()
    except CorruptRecord:
        return False


def _short_log_finding(
    partition: PartitionFolder, state: LogDirState, report: PartitionReport
) -> list[Finding]:
    """Return a finding for each checkpointed offset that lies behind the end of the log.

    The list is empty if there is none.
    """
    segments = partition.files.segments
    end_offset = max(report.next_offset or 0, segments[-1].base_offset if segments else 0)
    findings = Findings()
    for checkpoint, meaning in _REACHED.items():
        reached = state.offset(checkpoint, partition.topic_partition)
        if reached is not None and reached > end_offset:
            findings.add(
                Severity.WARNING,
                "log-short",
                partition.files.path,
                f"the log ends at offset {end_offset}, but {reached} is its {meaning}",
                offset=end_offset,
                expected=reached,
                got=end_offset,
            )
    return findings.all()


def _is_known_compacted(partition: PartitionFolder, state: LogDirState | None) -> bool:
    """Return True if the topic's name or the cleaner's checkpoint shows that it is compacted."""
    key = partition.topic_partition
    if key is None:
        return False
    return key.topic in COMPACTED_TOPICS if state is None else state.is_compacted(key)
